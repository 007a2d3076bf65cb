package sim_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

// served asks without a network, many times as fast.
func served(p *sim.Provider, path, body string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func minded(t *testing.T, mind sim.Mind) *sim.Provider {
	t.Helper()
	p := sim.New(sim.Options{Models: map[string]sim.Mind{"m": mind}, MaxIntents: 10, MaxEntries: 1 << 20})
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestEveryLieOfTheTableIsToldInATest(t *testing.T) {
	t.Parallel()
	told := []string{"error_200", "id_repeated", "delta_without_index", "empty_choices", "stream_ignored"} // by tests of their own
	for _, tt := range tellings() {
		name, _, _ := strings.Cut(tt.lie, "=")
		told = append(told, name)
	}
	classes := map[string]bool{}
	for _, f := range sim.Faults() {
		if f.Lie && !slices.Contains(told, f.Name) {
			t.Errorf("no test tells the lie %s", f.Name)
		}
		if f.Lie && f.Short == "" {
			t.Errorf("the lie %s is not explained", f.Name)
		}
		classes[f.Class] = true
	}
	for n := range 33 {
		if class := fmt.Sprint(n + 1); !classes[class] {
			t.Errorf("no lie is of class %s", class)
		}
	}
}

// What a lie has nothing to befall in is answered honestly, and not called a lie.
func TestALieLeavesAloneWhatItCannotBefall(t *testing.T) {
	t.Parallel()
	always := []string{
		"think_in_content", "reasoning_eats", "cut_says_stop", "refuses", "refusal_as_text", "filtered", "empty_choices", "error_200",
		"content_blocks", "id_repeated", "model_swapped", "fingerprint_changed", "count_drifts",
	}
	honest := minded(t, sim.Mind{})
	_, want := served(honest, onChat, chatWords)
	for _, f := range sim.Faults() {
		if !f.Lie || slices.Contains(always, f.Name) {
			continue
		}
		lie := sim.Lie{Fault: f.Name}
		if f.Argument == sim.ArgParameter {
			lie.Argument = "temperature"
		}
		p := minded(t, sim.Mind{Lies: []sim.Lie{lie}})
		status, got := served(p, onChat, chatWords)
		if changed := difference(flat(t, want), flat(t, got)); status != 200 || len(changed) > 0 || p.Ledger()[0].Lies != "" {
			t.Errorf("%s: %d, changed\n%sand the ledger says %q; want nothing changed", f.Name, status, lines(changed), p.Ledger()[0].Lies)
		}
	}
}

// numbered asks for a small JSON value.
const numbered = `{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":"N: %d"}],` +
	`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`

func TestRatesHoldWithinTheBoundsOfChance(t *testing.T) {
	t.Parallel()
	n := 2000.0
	if testing.Short() {
		n = 400
	}
	for _, rate := range []float64{0.04, 0.5} {
		for _, name := range []string{"fence", "system_refused", "upgraded"} {
			t.Run(fmt.Sprint(name, rate), func(t *testing.T) {
				t.Parallel()
				p := minded(t, sim.MustParseMind(fmt.Sprintf("%s,seed=11", lieAt(name, rate))))
				for i := range int(n) {
					served(p, onChat, fmt.Sprintf(numbered, i))
				}
				told := 0
				for _, e := range p.Ledger() {
					if e.Lies != "" {
						told++
					}
				}
				// Five standard deviations: one honest run in two million is beyond.
				if off, most := math.Abs(float64(told)-n*rate), 5*math.Sqrt(n*rate*(1-rate)); off > most {
					t.Errorf("%s at %v was told %d times of %.0f; want %v within %.0f", name, rate, told, n, n*rate, most)
				}
			})
		}
	}
}

func lieAt(name string, rate float64) string {
	if name == "upgraded" {
		return fmt.Sprintf("upgraded=0@%v", rate)
	}
	return fmt.Sprintf("%s=%v", name, rate)
}

// lied is which of n requests were lied to, and how.
func lied(p *sim.Provider, n int) string {
	before := len(p.Ledger())
	for i := range n {
		served(p, onChat, fmt.Sprintf(numbered, i))
	}
	var all []string
	for _, e := range p.Ledger()[before:] {
		all = append(all, e.Lies)
	}
	return strings.Join(all, "|")
}

func TestTheSameSeedLiesToTheSameRequests(t *testing.T) {
	t.Parallel()
	const mind = "fence=0.3,stringly=0.3,model_swapped=0.3"
	seen := map[string]string{}
	seeds := 200
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		text := fmt.Sprint(mind, ",seed=", seed)
		got := lied(minded(t, sim.MustParseMind(text)), 12)
		if again := lied(minded(t, sim.MustParseMind(text)), 12); again != got {
			t.Fatalf("seed %d lied %s and then %s", seed, got, again)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("seed %d lies as %s does", seed, other)
		}
		seen[got] = fmt.Sprint(seed)
	}
}

func TestARepeatIsAnsweredAsTheFirstUnlessTheMindIsFlaky(t *testing.T) {
	t.Parallel()
	for text, flaky := range map[string]bool{"fence=0.5,seed=3": false, "fence=0.5,seed=3,flaky": true} {
		p := minded(t, sim.MustParseMind(text))
		first := map[bool]int{}
		for range 40 {
			_, got := served(p, onChat, chatJSON)
			first[strings.Contains(got, "```")]++
		}
		if (len(first) == 2) != flaky {
			t.Errorf("%s: %v fenced of 40 repeats; want both only if it is flaky", text, first)
		}
		p.Reset()
		again := map[bool]int{}
		for range 40 {
			_, got := served(p, onChat, chatJSON)
			again[strings.Contains(got, "```")]++
		}
		if again[true] != first[true] {
			t.Errorf("%s: %v and after a reset %v; want the same", text, first, again)
		}
	}
}

func TestLiesAreIndependentOfEachOther(t *testing.T) {
	t.Parallel()
	p := minded(t, sim.MustParseMind("fence=0.5,model_swapped=0.5"))
	counts := map[string]int{}
	for one := range strings.SplitSeq(lied(p, 800), "|") {
		counts[one]++
	}
	for _, told := range []string{"", "fence", "model_swapped", "fence,model_swapped"} {
		if n := counts[told]; n < 140 || n > 260 {
			t.Errorf("%q was told %d times of 800; want about 200: %v", told, n, counts)
		}
	}
}

func TestLiesCombine(t *testing.T) {
	t.Parallel()
	srv := liar(t, "prose,think_in_content,fence,wrap,stringly,enum_drift,model_swapped,cut_says_stop=0.000001,system_dropped")
	_, got := asked(t, srv, onChat, chatJSON)
	want := "<think>They want an answer to that.</think>Sure! Here is the result:\n```json\n" +
		`{"parameters":{"severity":"Low","count":"5","ok":"False","city":"Umeå","tags":["a","b"],"probe":"Severity: low"}}` +
		"\n```\nLet me know if you need anything else."
	if is := flat(t, got); is[chatText] != want || is["model"] != "m-lite" {
		t.Errorf("got %v of %v; want %s", is[chatText], is["model"], want)
	}
	if e := srv.Ledger()[0]; e.Lies != "system_dropped,stringly,enum_drift,wrap,fence,prose,think_in_content,model_swapped" {
		t.Errorf("the ledger says %q", e.Lies)
	}
}

func TestAnAnswerOfStatus200MayBeAnError(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ body, where, want string }{
		onChat:      {chatWords, "error.type", "server_error"},
		onResponses: {responsesJSON, "error.type", "server_error"},
		onMessages:  {messagesJSON, "error.type", "overloaded_error"},
	} {
		srv := liar(t, "error_200")
		status, got := asked(t, srv, path, c.body)
		if is := flat(t, got); status != 200 || is[c.where] != c.want || srv.Ledger()[0].Lies != "error_200" {
			t.Errorf("%s: %d %s; want an error within a 200", path, status, got)
		}
	}
}

func TestAnAnswerMayBeWithoutAnyChoice(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ body, want string }{
		onChat: {chatWords, `"choices":[]`}, onResponses: {responsesJSON, `"output":[]`}, onMessages: {messagesJSON, `"content":[]`},
	} {
		if status, got := asked(t, liar(t, "empty_choices"), path, c.body); status != 200 || !strings.Contains(got, c.want) || !strings.Contains(got, `"usage":{`) {
			t.Errorf("%s: %d %s; want %s and a usage", path, status, got, c.want)
		}
	}
}

func TestResponseIdsAreUniqueUnlessTheyAreRepeated(t *testing.T) {
	t.Parallel()
	for mind, unique := range map[string]bool{"honest": true, "id_repeated": false} {
		for path, body := range map[string]string{onChat: chatWords, onResponses: responsesJSON, onMessages: messagesJSON} {
			srv := liar(t, mind)
			_, a := asked(t, srv, path, body)
			_, b := asked(t, srv, path, body)
			if x, y := decode(t, a)["id"], decode(t, b)["id"]; x == nil || (x != y) != unique {
				t.Errorf("%s %s: ids %v and %v; want them unique: %t", mind, path, x, y, unique)
			}
		}
	}
}
