package openai_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
	"github.com/onejob-dev/onejob/sim"
)

// asks is a prompt with most that a contract says.
func asks(user string, more ...onejob.PromptParam) onejob.Prompt {
	return onejob.Prompt{
		System: "Grade <it>.", User: user,
		Params: append([]onejob.PromptParam{
			{Name: prompt.Cap, Value: json.RawMessage("64"), Required: true},
			{Name: prompt.Schema, Value: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["grade"],"properties":{"grade":{"type":"string","maxLength":9}}}`), Required: true},
			{Name: "seed", Value: json.RawMessage("7")},
			{Name: prompt.Stream, Value: json.RawMessage("false"), Required: true},
			{Name: prompt.Temperature, Value: json.RawMessage(onejob.TemperatureLow)},
		}, more...),
	}
}

func target(t *testing.T, o openai.Options) *openai.Provider {
	t.Helper()
	o.APIKey = providertest.Canary
	if o.Model == "" {
		o.Model = "m"
	}
	p, err := openai.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// answered renders a prompt, sends its very body and reads what came.
func answered(t *testing.T, p *openai.Provider, pr onejob.Prompt) onejob.Output {
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

func TestAPromptIsRenderedInTheWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	for api, want := range map[openai.API]string{
		openai.APIChat: `{"messages":[{"role":"system","content":"Grade <it>."},{"role":"user","content":"a & \"b\""}],"max_completion_tokens":64,` +
			`"response_format":{"json_schema":{"name":"output","strict":true,"schema":` + gradeSchema + `},"type":"json_schema"},"seed":7,"stream":false,"temperature":0}`,
		openai.APIResponses: `{"instructions":"Grade <it>.","input":"a & \"b\"","max_output_tokens":64,` +
			`"text":{"format":{"type":"json_schema","name":"output","strict":true,"schema":` + gradeSchema + `}},"stream":false,"temperature":0}`,
	} {
		r, err := target(t, openai.Options{API: api}).Render(asks(`a & "b"`))
		if err != nil || string(r.Body) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", api, err, r.Body, want)
		}
		if dropped := slices.Equal(r.Dropped, []string{"seed"}); dropped != (api == openai.APIResponses) || r.Temperature == nil || *r.Temperature != 0 {
			t.Errorf("%s: dropped %v, temperature %v", api, r.Dropped, r.Temperature)
		}
	}
}

func TestAnHonestModelDoesWhatAPromptAsks(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": {}, "filter": sim.MustParseMind("filtered"), "deaf": sim.MustParseMind("schema_ignored")}})
	nonce := onejob.PromptParam{Name: prompt.Schema, Required: true, Value: json.RawMessage(
		`{"type":"object","additionalProperties":false,"required":["probe"],"properties":{"probe":{"const":"k7Qz2"}}}`)}
	bare := func(user string, params ...onejob.PromptParam) onejob.Prompt {
		return onejob.Prompt{User: user, Params: params}
	}
	for _, api := range []openai.API{openai.APIChat, openai.APIResponses} {
		p := target(t, openai.Options{BaseURL: srv.URL() + "/v1", API: api})
		if out := answered(t, p, bare("hello", nonce)); string(out.Content) != `{"probe":"k7Qz2"}` || out.Finish != onejob.OutputComplete {
			t.Errorf("%s: %+v; want the nonce of the schema", api, out)
		} else if out.ResponseID == "" || out.Model != "m" || out.InputTokens == 0 || out.OutputTokens == 0 {
			t.Errorf("%s: %+v; want what the provider says beside it", api, out)
		}
		limit := onejob.PromptParam{Name: prompt.Cap, Value: json.RawMessage("16"), Required: true}
		if out := answered(t, p, bare("count to 500", limit)); out.Finish != onejob.OutputLength || len(out.Content) == 0 {
			t.Errorf("%s: %+v; want a cut", api, out)
		}
		if out := answered(t, p, bare(sim.RefusedPhrase)); !out.Refused || out.Finish != onejob.OutputRefusal {
			t.Errorf("%s: %+v; want a refusal", api, out)
		}
		tool := onejob.PromptParam{Name: prompt.Tools, Required: true, Value: json.RawMessage(`[{"name":"grade","parameters":` + gradeSchema + `}]`)}
		if out := answered(t, p, bare("grade: high", tool)); out.ToolCalls != 1 || out.ToolName != "grade" || string(out.Content) != `{"grade":"high"}` || out.Finish != onejob.OutputTool {
			t.Errorf("%s: %+v; want the call of the tool", api, out)
		}
		deaf := target(t, openai.Options{BaseURL: srv.URL() + "/v1", API: api, Model: "deaf"})
		if out := answered(t, deaf, bare("hello", nonce)); strings.Contains(string(out.Content), "k7Qz2") {
			t.Errorf("%s: %+v; a model that ignores the schema cannot know it", api, out)
		}
	}
	filtered := target(t, openai.Options{BaseURL: srv.URL() + "/v1", Model: "filter"})
	if out := answered(t, filtered, bare("hello")); out.Finish != onejob.OutputFiltered {
		t.Errorf("filtered: %+v", out)
	}
}

func TestWhatIsCountedIsWhatIsBilled(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": {}}})
	for _, o := range []openai.Options{{API: openai.APIResponses}, {API: openai.APIChat, Tokenizer: prompt.CountRemote}} {
		o.BaseURL = srv.URL() + "/v1"
		p := target(t, o)
		pr := asks("How many tokens are these?")
		r, err := p.Render(pr)
		if err != nil {
			t.Fatal(err)
		}
		counted, err := p.CountTokens(t.Context(), r.Body)
		if out := answered(t, p, pr); err != nil || counted != out.InputTokens {
			t.Errorf("%s: counted %d, %v; billed %d", o.API, counted, err, out.InputTokens)
		}
	}
	if n := srv.Report().Executions; n != 2 {
		t.Errorf("the work was done %d times, want once for each answer: a count is no execution", n)
	}
}

func TestWhoCannotBeAskedSaysSo(t *testing.T) {
	t.Parallel()
	for _, o := range []openai.Options{{}, {Tokenizer: "tiktoken:o200k_base"}, {API: openai.APIResponses, Tokenizer: "file:tokenizer.json"}} {
		if _, err := target(t, o).CountTokens(t.Context(), []byte(`{"messages":[]}`)); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestInferenceServersCountByTheirOwnEndpoints(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		switch {
		case x.Path == "/apply-template":
			x.Answer(200, `{"prompt":"<|im_start|>hi"}`)
		case x.Path == "/tokenize" && strings.Contains(x.Body, `"parse_special"`):
			x.Answer(200, `{"tokens":[1,2,3]}`)
		case x.Path == "/tokenize":
			x.Answer(200, `{"count":5,"max_model_len":4096,"tokens":[1,2,3,4,5]}`)
		default:
			x.Answer(404, `{"error":{"message":"no such path"}}`)
		}
	})
	for tokenizer, want := range map[string]int{prompt.CountVLLM: 5, prompt.CountLlama: 3} {
		p := target(t, openai.Options{BaseURL: srv.URL + "/v1", Tokenizer: tokenizer, SelfHosted: true})
		if n, err := p.CountTokens(t.Context(), []byte(`{"messages":[{"role":"user","content":"hi"}],"temperature":0}`)); n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", tokenizer, n, err, want)
		}
	}
	for _, asked := range srv.Asked() {
		if asked.Path == "/tokenize" && strings.Contains(asked.Body, "temperature") {
			t.Errorf("asked %s; want what costs tokens and no more", asked.Body)
		}
	}
	p := target(t, openai.Options{BaseURL: srv.URL + "/v1", Tokenizer: prompt.CountRemote})
	if _, err := p.CountTokens(t.Context(), []byte(`{"messages":[]}`)); err == nil || !strings.Contains(err.Error(), "404: no such path") {
		t.Errorf("no endpoint: %v", err)
	}
}

func TestAnAnswerOfAnotherShapeIsNoOutput(t *testing.T) {
	t.Parallel()
	chat, responses := target(t, openai.Options{}), target(t, openai.Options{API: openai.APIResponses})
	for _, body := range []string{
		`{"choices":[]}`, `{"choices":null}`, `[]`, `{"error":{"message":"x"},"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"x"}]},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":"x","content":"y"},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":"\ud800"},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":"x"}},{"message":{"content":"y"}}]}`,
	} {
		if out, err := chat.ReadOutput([]byte(body)); err == nil {
			t.Errorf("%s: %+v; want an error", body, out)
		}
	}
	for _, body := range []string{`{"status":"completed","output":[]}`, `{"status":"failed"}`, `{"output":[{"type":"message"}]}`, `{"status":"completed","error":{"code":"x"},"output":[{}]}`} {
		if out, err := responses.ReadOutput([]byte(body)); err == nil {
			t.Errorf("%s: %+v; want an error", body, out)
		}
	}
}

func TestAnEndIsToldAsTheProviderTellsIt(t *testing.T) {
	t.Parallel()
	p := target(t, openai.Options{SelfHosted: true})
	const body = `{"id":"i","model":"m-1","system_fingerprint":"b6123","provider":"Novita","usage":{"prompt_tokens":3,"completion_tokens":2},` +
		`"choices":[{"message":{"content":"ok","tool_calls":[{"function":{"name":"f","arguments":"{ }"}}]},"finish_reason":"FINISH"}]}`
	for word, want := range map[string]onejob.OutputFinish{"stop": onejob.OutputComplete, "tool_calls": onejob.OutputTool, "eos": "eos", "": ""} {
		out, err := p.ReadOutput([]byte(strings.Replace(body, "FINISH", word, 1)))
		if err != nil || out.Finish != want || string(out.Content) != "{ }" || out.ToolName != "f" {
			t.Errorf("%q: %+v, %v", word, out, err)
		}
		if out.Fingerprint != "b6123" || out.Build != "b6123" || out.Upstream != "Novita" || out.Model != "m-1" || out.InputTokens != 3 || out.OutputTokens != 2 {
			t.Errorf("%+v; want what the provider says beside it", out)
		}
	}
}

func TestUpstreamsAreNamedInEveryRequest(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, completion) })
	p := target(t, openai.Options{BaseURL: srv.URL + "/v1", Upstream: []string{"borealis"}})
	if _, err := p.Call(t.Context(), onejob.Request{Input: []byte(input)}); err != nil {
		t.Fatal(err)
	}
	if want := `"provider":{"only":["borealis"],"allow_fallbacks":false}`; !strings.Contains(srv.Asked()[0].Body, want) {
		t.Errorf("asked %s, want %s in it", srv.Asked()[0].Body, want)
	}
}

func TestWhatIsSaidOfATargetIsInItsDigest(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, o := range []openai.Options{
		{}, {Map: map[string]string{"seed": "drop"}}, {MinTemperature: 1}, {Pinned: true}, {SelfHosted: true}, {ContextTokens: 9}, {Upstream: []string{"a"}}, {Tokenizer: "vllm"},
	} {
		d := target(t, o).Digest()
		if j, twice := seen[d]; twice {
			t.Errorf("targets %d and %d have one digest", i, j)
		}
		seen[d] = i
	}
}
