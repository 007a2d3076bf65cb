package verification_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/verification"
)

var update = flag.Bool("update", false, "write docs/verification.md anew")

// page is where the table of classes stands.
var page = filepath.Join("..", "docs", "verification.md")

// The marks between which the page is printed.
const (
	printedFrom = "<!-- Printed by: go test ./verification -run TestWhichStageCatchesEachClass -update -->\n"
	printedTo   = "<!-- The end of what is printed. -->\n"
)

// fault is one way in which a target goes wrong.
type fault struct {
	class string // of docs/sim.md; may be empty
	lie   string // in the words of sim
	// world is what the contract or the target needs for it: stop, tool, map, hosted, types.
	world string
	// rated says that it can also come once in a while.
	rated bool
	// drift says that it shows only to who knew the target before.
	drift bool
}

// faults are the classes of docs/sim.md, and what was found while they were tried.
var faults = []fault{
	{class: "1", lie: "fence", rated: true},
	{class: "2", lie: "prose", rated: true},
	{class: "3", lie: "wrap", rated: true},
	{class: "4", lie: "tool_envelope", rated: true},
	{class: "5", lie: "schema_ignored", rated: true},
	{class: "6", lie: "free_text", rated: true},
	{class: "7", lie: "upgraded:40"},
	{class: "8", lie: "surface_broken"},
	{class: "9", lie: "max_tokens_refused"},
	{class: "9", lie: "max_tokens_refused", world: "map"},
	{class: "10", lie: "temperature_fixed"},
	{class: "11", lie: "stop_refused", world: "stop"},
	{class: "11", lie: "stop_ignored", world: "stop"},
	{class: "12", lie: "param_unsupported:temperature"},
	{class: "13", lie: "role_developer_refused"},
	{class: "14", lie: "late_system_refused"},
	{class: "15", lie: "system_refused"},
	{class: "16", lie: "system_dropped"},
	{class: "17", lie: "stringly", rated: true},
	{class: "18", lie: "double_encoded", rated: true},
	{class: "19", lie: "enum_drift", rated: true},
	{class: "20", lie: "finish_lies", world: "tool"},
	{class: "21", lie: "delta_without_index", world: "tool"},
	{class: "22", lie: "tool_call_id_refused", world: "tool"},
	{class: "23", lie: "null_content_refused", world: "tool"},
	{class: "23", lie: "empty_content_refused", world: "tool"},
	{class: "24", lie: "reasoning_eats", rated: true},
	{class: "25", lie: "cut_to_empty", rated: true},
	{class: "26", lie: "cut_says_stop", rated: true},
	{class: "27", lie: "think_in_content", rated: true},
	{class: "28", lie: "refuses", rated: true},
	{class: "28", lie: "refusal_as_text", rated: true},
	{class: "28", lie: "filtered", rated: true},
	{class: "29", lie: "empty_choices", rated: true},
	{class: "29", lie: "error_200", rated: true},
	{class: "30", lie: "schema_subset_refused", world: "types"},
	{class: "30", lie: "bounds_ignored", world: "hosted"},
	{class: "31", lie: "prefill_refused"},
	{class: "32", lie: "escape_corrupt", rated: true},
	{class: "33", lie: "context_cut:4096", world: "long"},
	{lie: "trailing", rated: true},
	{lie: "float_integers", rated: true},
	{lie: "duplicate_names", rated: true},
	{lie: "content_blocks", rated: true},
	{lie: "developer_dropped"},
	{lie: "late_system_dropped"},
	{lie: "tools_dropped", world: "tool"},
	{lie: "bad_param_accepted"},
	{lie: "count_drifts"},
	{lie: "id_repeated"},
	{lie: "model_swapped", rated: true},
	{lie: "fingerprint_changed", drift: true},
	{lie: "stream_ignored"},
}

// Sizes of verifications with a fault of 5 %.
const (
	few   = 10
	many  = 60
	seeds = 10
	rare  = 0.05
)

// worldOf is the contract that a fault needs in order to show.
func worldOf(t *testing.T, f fault, cases int, rate string) *contract.Contract {
	switch f.world {
	case "stop":
		return contractOf(t, cases, rate, "max_output_tokens: 400}", "max_output_tokens: 400, stop: [HALT]}")
	case "tool":
		return contractOf(t, cases, rate, "media: json", "media: tool_call\n  finish: [tool]", "response_schema: output.schema, ", "")
	case "long":
		return contractOf(t, cases, rate, longCase)
	case "types":
		return contractOf(t, cases, rate, "human: {type: boolean}", `human: {type: [boolean, "null"]}`)
	}
	return contractOf(t, cases, rate)
}

// adapted is the target that a fault needs in order to show.
func adapted(t *testing.T, f fault, url string, on api) verification.Target {
	target := targetAt(t, url, on)
	opts := openai.Options{BaseURL: url + "/v1", Model: "m", API: openai.API(on), Tokenizer: "remote", Price: price}
	switch f.world {
	case "map":
		opts.Map = map[string]string{"max_output_tokens": "max_tokens"}
	case "hosted":
		opts.SelfHosted = true
	}
	if on == messages || opts.Map == nil && !opts.SelfHosted {
		return target
	}
	provider, err := openai.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	target.Provider = provider
	return target
}

// can reports whether a protocol has what the fault is about.
func (f fault) can(on api) bool {
	switch f.world {
	case "stop":
		return on != responses
	case "map", "hosted":
		return on != messages && (on == chat || f.world == "hosted")
	}
	return true
}

// caught says which stage catches a fault that is always there.
func caught(t *testing.T, f fault, on api) string {
	if !f.can(on) {
		return "cannot be asked for"
	}
	srv := liar(t, f.lie)
	c := worldOf(t, f, many, "0.95")
	if f.lie == "id_repeated" {
		c = contractOf(t, many, "0.95", "repeats: 1", "repeats: 2")
	}
	r := run(t, verification.Params{Contract: c, Target: adapted(t, f, srv.URL(), on)},
		verification.Repeatable(verification.Options{Recorder: recorder(t), Parallel: 1}, 1))
	told := slices.ContainsFunc(srv.Ledger(), func(e sim.Entry) bool { return e.Lies != "" })
	switch {
	case r.State == onejob.RunCertified && !told:
		return "does not befall"
	case r.State == onejob.RunCertified && f.drift:
		return "not in one run"
	case r.State == onejob.RunCertified:
		t.Errorf("%s by %s passes a full verification:\n%s", f.lie, on, table(t, r))
		return "MISSED"
	}
	return catcher(r)
}

// catcher names the stage, what in it, the class and the number of calls.
func catcher(r verification.Result) string {
	stage, class := "S4", ""
	for _, s := range r.Report.Stages {
		if s.Verdict != contract.VerdictFail && s.Verdict != contract.VerdictInconclusive {
			continue
		}
		if stage = string(s.Stage); s.Gate != nil {
			for name := range s.Gate.Classes {
				class = name
			}
		}
		for _, p := range s.Probes {
			class = p.Class
		}
		if s.Name == r.Reason || s.Stage == verification.StageProbes {
			break
		}
	}
	text := stage + " " + r.Reason
	if class != "" && class != r.Reason {
		text += ": " + class
	}
	return fmt.Sprintf("%s (%d)", text, r.Report.Calls)
}

// missed is how often a fault that comes once in twenty answers is certified.
func missed(t *testing.T, f fault, cases int) int {
	n := 0
	for seed := range uint64(seeds) {
		mind := sim.Mind{Lies: []sim.Lie{{Fault: f.lie, Rate: rare}}, Seed: seed + 1}
		c := contractOf(t, cases, map[int]string{few: "0.7", many: "0.95"}[cases])
		r := run(t, verification.Params{Contract: c, Target: indoor(t, mind)}, verification.Repeatable(verification.Options{Parallel: 1}, seed+1))
		if r.State == onejob.RunCertified {
			n++
		}
	}
	return n
}

// row is a line of the table.
func row(t *testing.T, f fault) string {
	at := map[int]string{few: "", many: ""}
	for _, cases := range []int{few, many} {
		if f.rated {
			at[cases] = fmt.Sprintf("%d of %d", missed(t, f, cases), seeds)
		}
	}
	name := "`" + f.lie + "`"
	if f.world != "" {
		name += " " + map[string]string{"stop": "(stop required)", "tool": "(media tool_call)", "map": "(mapped to max_tokens)", "hosted": "(bounds are sent)", "types": "(a nullable member)", "long": "(a case of 4,381 tokens)"}[f.world]
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", f.class, name, caught(t, f, chat), caught(t, f, responses), caught(t, f, messages), at[few], at[many])
}

func TestWhichStageCatchesEachClass(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a quarter of a minute of CPU")
	}
	rows := make([]string, len(faults))
	t.Run("Rows", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.lie+f.world, func(t *testing.T) {
				t.Parallel()
				rows[i] = row(t, f)
			})
		}
	})
	before, after := printed(t)
	want := before + printedFrom + tableHead() + strings.Join(rows, "") + "\n" + printedTo + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != want {
		t.Errorf("%s is not what the classes show: go test ./verification -run TestWhichStageCatchesEachClass -update: %v\n%s", page, err, strings.Join(rows, ""))
	}
}

func tableHead() string {
	return fmt.Sprintf("\n| class | fault | by chat completions | by responses | by messages | missed at 5 %%, %d cases | %d cases |\n|---|---|---|---|---|---|---|\n", few, many)
}

// printed returns what stands around the table.
func printed(t *testing.T) (before, after string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), printedFrom)
	_, after, closed := strings.Cut(rest, printedTo)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	return before, after
}

// Every class of the fake provider is in the table, and each number up to 33.
func TestTheTableOfClassesIsWhole(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	classes := map[string]bool{}
	for _, f := range faults {
		name, _, _ := strings.Cut(f.lie, ":")
		tried[name], classes[f.class] = true, true
	}
	for _, f := range sim.Faults() {
		if f.Lie && !tried[f.Name] {
			t.Errorf("%s is not tried", f.Name)
		}
	}
	for class := 1; class <= 33; class++ {
		if !classes[fmt.Sprint(class)] {
			t.Errorf("class %d is not tried", class)
		}
	}
}
