package sim_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

func mustSteps(texts ...string) []sim.Step { return sim.MustParse(texts...) }

func TestAMindIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                            "honest",
		"honest":                      "honest",
		"fence":                       "fence",
		"fence=1":                     "fence",
		"fence:0.04,prose , seed = 7": "fence=0.04,prose,seed=7",
		"param_unsupported:temperature,param_unsupported=seed@0.5": "param_unsupported=temperature,param_unsupported=seed@0.5",
		"upgraded=20,context_cut,window=8192,flaky":                "upgraded=20,context_cut,window=8192,flaky",
		"upgraded=20@0.5": "upgraded=20@0.5",
	} {
		m, err := sim.ParseMind(text)
		if err != nil || m.String() != says {
			t.Errorf("ParseMind(%q) = %s, %v; want %s", text, m, err, says)
		}
		again, err := sim.ParseMind(says)
		if err != nil || again.String() != says {
			t.Errorf("ParseMind(%q) = %s, %v; want itself", says, again, err)
		}
		step, err := sim.Parse("late=1s," + says)
		if err != nil || step.String() != "late=1s,"+says || step.Mind == nil {
			t.Errorf("Parse of a step with %q = %s, %v", says, step, err)
		}
	}
	var minds map[string]sim.Mind
	const text = `{"m":"fence=0.5,seed=2"}`
	if err := json.Unmarshal([]byte(text), &minds); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(minds); err != nil || string(got) != text {
		t.Errorf("%s became %s, %v", text, got, err)
	}
}

func TestAMindThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"fences", "fence=0", "fence=1.1", "fence=often", "fence=NaN", "fence,", "fence,fence=0.5", "honest=yes", "flaky=1", "seed=-1", "seed", "window=0",
		"param_unsupported", "param_unsupported=0.5", "param_unsupported=temperature@2", "upgraded=-1", "context_cut=1", "late=1s",
	} {
		if got, err := sim.ParseMind(text); err == nil {
			t.Errorf("ParseMind(%q) = %s; want an error", text, got)
		}
		if got, err := sim.Parse("late=1s," + text); err == nil {
			t.Errorf("Parse of a step with %q = %s; want an error", text, got)
		}
	}
	for _, lie := range []sim.Lie{{Fault: "fences"}, {Fault: "fence", Rate: 2}, {Fault: "fence", Rate: -1}, {Fault: "fence", Argument: "x"}, {Fault: "param_unsupported"}, {Fault: "late"}} {
		mind := sim.Mind{Lies: []sim.Lie{lie}}
		for name, opts := range map[string]sim.Options{"Models": {Models: map[string]sim.Mind{"m": mind}}, "Default": {Default: sim.Step{Mind: &mind}}} {
			if srv, err := sim.Start("", opts); err == nil {
				t.Errorf("%s with %v started", name, lie)
				_ = srv.Close()
			}
		}
	}
}

func TestAStepsLiesTakeThePlaceOfTheModels(t *testing.T) {
	t.Parallel()
	srv := liar(t, "fence")
	srv.Script(mustSteps("ok", "prose", "honest", "late=1ms,wrap,stringly")...)
	for _, want := range []string{"fence", "prose", "", "stringly,wrap", "fence"} {
		if _, _ = asked(t, srv, onChat, chatJSON); srv.Ledger()[len(srv.Ledger())-1].Lies != want {
			t.Errorf("the ledger says %+v; want %q", srv.Ledger()[len(srv.Ledger())-1], want)
		}
	}
	r := request(t, srv.URL(), "k", chatJSON)
	r.URL.Path = onChat
	r.Header.Set("Sim-Fault", "double_encoded,seed=3")
	if _, got := do(t, r); !strings.Contains(got, `\\\"a\\\"`) {
		t.Errorf("got %s; want what the header says", got)
	}
}

func TestAScriptedLieNeedsNoModel(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	srv.Script(mustSteps("fence")...)
	if _, got := asked(t, srv, onChat, chatJSON); !strings.Contains(got, "```") {
		t.Errorf("got %s; want it fenced", got)
	}
	if _, got := asked(t, srv, onChat, chatJSON); strings.Contains(got, "```") || !strings.Contains(got, `"content":"Severity: low\n`) {
		t.Errorf("got %s; want the prompt, as ever", got)
	}
	srv.Script(mustSteps("fence")...)
	if status, got := asked(t, srv, "/v1/charges", `{"amount":7}`); status != 200 || !strings.Contains(got, `"amount":7`) {
		t.Errorf("got %d %s; a plain request is never lied to", status, got)
	}
}

func TestAnotherProcessChangesTheModels(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	order := func(body string) int {
		status, _ := asked(t, srv, "/sim/models", body)
		return status
	}
	if got := order(`{"models":{"m":"fence,seed=7","n":""}}`); got != 204 {
		t.Fatalf("the change got %d", got)
	}
	if _, got := asked(t, srv, onChat, chatJSON); !strings.Contains(got, "```") {
		t.Errorf("got %s; want it fenced", got)
	}
	if _, got := get(t, srv.URL()+"/sim/models"); at(decode(t, got), "models", "m") != "fence,seed=7" || at(decode(t, got), "models", "n") != "honest" {
		t.Errorf("the models are %s", got)
	}
	for _, bad := range []string{`{"models":{"m":"fences"}}`, `{"model":{}}`, `{`} {
		if got := order(bad); got != 400 {
			t.Errorf("%s got %d; want 400", bad, got)
		}
	}
	if got := order(`{"models":{"n":null}}`); got != 204 {
		t.Fatalf("the removal got %d", got)
	}
	if status, _ := asked(t, srv, onChat, strings.Replace(chatJSON, `"m"`, `"n"`, 1)); status != 404 {
		t.Errorf("a removed model answers %d", status)
	}
	srv.Reset()
	if _, got := asked(t, srv, onChat, chatJSON); strings.Contains(got, "```") {
		t.Errorf("after a reset %s; want the model that the options say", got)
	}
	if err := srv.SetModel("m", sim.Mind{Lies: []sim.Lie{{Fault: "fences"}}}); err == nil {
		t.Error("an unknown lie was taken")
	}
	if err := srv.SetModel("z", sim.MustParseMind("prose")); err != nil || srv.Models()["z"].String() != "prose" {
		t.Errorf("the models are %v, %v", srv.Models(), err)
	}
	srv.RemoveModel("z")
	if _, found := srv.Models()["z"]; found {
		t.Error("a removed model is still there")
	}
}

func TestTheOldAnswersStayWhereNoModelHasAMind(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	for _, path := range []string{"/v1/embeddings", "/v1/messages/count_tokens", "/v1/models"} {
		if status, got := asked(t, srv, path, `{"amount":7}`); status != 200 || !strings.Contains(got, `"object":"charge"`) {
			t.Errorf("%s: %d %s; want a plain answer", path, status, got)
		}
	}
}

func TestTheLedgerFileRemembersTheLies(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ledger")
	opts := sim.Options{LedgerFile: file, Models: map[string]sim.Mind{"m": sim.MustParseMind("fence")}}
	srv := sim.ForTest(t, opts)
	_, _ = asked(t, srv, onChat, chatJSON)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if e := sim.ForTest(t, opts).Ledger()[0]; e.Lies != "fence" || e.Model != "m" {
		t.Errorf("the entry is %+v", e)
	}
}

func TestAResponseInTheBackgroundIsLiedAboutToo(t *testing.T) {
	t.Parallel()
	srv := liar(t, "fence")
	_, begun := asked(t, srv, onResponses, limited(responsesJSON, `"background":true`))
	id, _ := decode(t, begun)["id"].(string)
	_, got := get(t, srv.URL()+"/v1/responses/"+id)
	if text, _ := flat(t, got)[responseText].(string); !strings.HasPrefix(text, "```json") || decode(t, got)["status"] != "completed" {
		t.Errorf("looked up %s; want it fenced", got)
	}
}
