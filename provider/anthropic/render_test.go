package anthropic_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
	"github.com/onejob-dev/onejob/sim"
)

func target(t *testing.T, o anthropic.Options) *anthropic.Provider {
	t.Helper()
	o.APIKey = providertest.Canary
	if o.Model == "" {
		o.Model = "m"
	}
	p, err := anthropic.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// answered renders a prompt, sends its very body and reads what came.
func answered(t *testing.T, p *anthropic.Provider, pr onejob.Prompt) onejob.Output {
	t.Helper()
	r, err := p.Render(pr)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	a, err := p.Call(t.Context(), onejob.Request{Input: r.Body})
	if err != nil || a.Outcome != onejob.OutcomeSucceeded {
		t.Fatalf("Call: %+v, %v", a, err)
	}
	out, err := p.ReadOutput(a.Body)
	if err != nil {
		t.Fatalf("ReadOutput: %v", err)
	}
	return out
}

const gradeSchema = `{"type":"object","additionalProperties":false,"required":["grade"],"properties":{"grade":{"type":"string"}}}`

func limit(tokens string) onejob.PromptParam {
	return onejob.PromptParam{Name: prompt.Cap, Value: json.RawMessage(tokens), Required: true}
}

func TestAPromptIsRenderedInTheWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	r, err := target(t, anthropic.Options{}).Render(onejob.Prompt{System: "Grade <it>.", User: "a", Params: []onejob.PromptParam{
		limit("64"),
		{Name: prompt.Effort, Value: json.RawMessage(`"low"`)},
		{Name: prompt.Schema, Value: json.RawMessage(strings.Replace(gradeSchema, `"string"`, `"string","maxLength":9`, 1)), Required: true},
		{Name: "seed", Value: json.RawMessage("7")},
		{Name: "stop", Value: json.RawMessage(`["END"]`)},
		{Name: prompt.Stream, Value: json.RawMessage("false"), Required: true},
		{Name: prompt.Temperature, Value: json.RawMessage(onejob.TemperatureLow)},
	}})
	want := `{"system":"Grade <it>.","messages":[{"role":"user","content":"a"}],"max_tokens":64,"output_config":{"effort":"low","format":{"type":"json_schema","schema":` +
		gradeSchema + `}},"stop_sequences":["END"],"stream":false,"temperature":0}`
	if err != nil || string(r.Body) != want || !slices.Equal(r.Dropped, []string{"seed"}) || r.Temperature == nil {
		t.Errorf("%v, dropped %v\n%s\nwant\n%s", err, r.Dropped, r.Body, want)
	}
}

func TestARequiredSeedIsRefused(t *testing.T) {
	t.Parallel()
	p := onejob.Prompt{User: "a", Params: []onejob.PromptParam{{Name: "seed", Value: json.RawMessage("7"), Required: true}}}
	if _, err := target(t, anthropic.Options{}).Render(p); !errors.Is(err, onejob.ErrParamUnsupported) || !strings.Contains(err.Error(), "seed") {
		t.Errorf("Render: %v", err)
	}
}

func TestAnHonestModelDoesWhatAPromptAsks(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": {}}})
	p := target(t, anthropic.Options{BaseURL: srv.URL()})
	bare := func(user string, params ...onejob.PromptParam) onejob.Prompt {
		return onejob.Prompt{User: user, Params: params}
	}
	nonce := onejob.PromptParam{Name: prompt.Schema, Required: true, Value: json.RawMessage(
		`{"type":"object","additionalProperties":false,"required":["probe"],"properties":{"probe":{"const":"k7Qz2"}}}`)}
	if out := answered(t, p, bare("hello", limit("64"), nonce)); string(out.Content) != `{"probe":"k7Qz2"}` || out.Finish != onejob.OutputComplete {
		t.Errorf("%+v; want the nonce of the schema", out)
	} else if out.ResponseID == "" || out.Model != "m" || out.InputTokens == 0 || out.OutputTokens == 0 {
		t.Errorf("%+v; want what the provider says beside it", out)
	}
	if out := answered(t, p, bare("count to 500", limit("16"))); out.Finish != onejob.OutputLength {
		t.Errorf("%+v; want a cut", out)
	}
	if out := answered(t, p, bare(sim.RefusedPhrase, limit("16"))); !out.Refused || out.Finish != onejob.OutputRefusal {
		t.Errorf("%+v; want a refusal", out)
	}
	stop := onejob.PromptParam{Name: "stop", Value: json.RawMessage(`["END"]`), Required: true}
	if out := answered(t, p, bare("before END after", limit("64"), stop)); strings.Contains(string(out.Content), "after") || out.Finish != onejob.OutputComplete {
		t.Errorf("%+v; want it to stop at END", out)
	}
	tool := onejob.PromptParam{Name: prompt.Tools, Required: true, Value: json.RawMessage(`[{"name":"grade","parameters":` + gradeSchema + `}]`)}
	if out := answered(t, p, bare("grade: high", limit("64"), tool)); out.ToolCalls != 1 || string(out.Content) != `{"grade":"high"}` || out.Finish != onejob.OutputTool {
		t.Errorf("%+v; want the call of the tool", out)
	}
}

func TestWhatIsCountedIsWhatIsBilled(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": {}}})
	p := target(t, anthropic.Options{BaseURL: srv.URL()})
	pr := onejob.Prompt{System: "Grade it.", User: "How many tokens are these?", Params: []onejob.PromptParam{
		limit("64"), {Name: prompt.Schema, Value: json.RawMessage(gradeSchema), Required: true},
	}}
	r, err := p.Render(pr)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := p.CountTokens(t.Context(), r.Body)
	if out := answered(t, p, pr); err != nil || counted != out.InputTokens {
		t.Errorf("counted %d, %v; billed %d", counted, err, out.InputTokens)
	}
	local := target(t, anthropic.Options{BaseURL: srv.URL(), Tokenizer: "file:tokenizer.json"})
	if _, err := local.CountTokens(t.Context(), r.Body); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("counting here: %v", err)
	}
	if n := srv.Report().Executions; n != 1 {
		t.Errorf("the work was done %d times, want once: a count is no execution", n)
	}
}

func TestAnAnswerOfAnotherShapeIsNoOutput(t *testing.T) {
	t.Parallel()
	p := target(t, anthropic.Options{})
	for _, body := range []string{`{"type":"error","error":{"message":"x"}}`, `{"type":"message"}`, `{"type":"message","content":"x"}`, `[]`, `{"type":"message","type":"message","content":[]}`} {
		if out, err := p.ReadOutput([]byte(body)); err == nil {
			t.Errorf("%s: %+v; want an error", body, out)
		}
	}
	const thought = `{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"pause_turn",` +
		`"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":4}}`
	out, err := p.ReadOutput([]byte(thought))
	if err != nil || string(out.Content) != "ab" || out.Finish != "pause_turn" || out.InputTokens != 6 || out.OutputTokens != 4 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestWhatIsSaidOfATargetIsInItsDigest(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, o := range []anthropic.Options{
		{}, {Map: map[string]string{"top_k": "drop"}}, {MinTemperature: 1}, {Pinned: true}, {SelfHosted: true}, {ContextTokens: 9}, {Upstream: []string{"a"}}, {Tokenizer: "remote"},
	} {
		d := target(t, o).Digest()
		if j, twice := seen[d]; twice {
			t.Errorf("targets %d and %d have one digest", i, j)
		}
		seen[d] = i
	}
}
