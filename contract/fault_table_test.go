package contract_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

// triageInput is an input of the example; half of its order is 2500.
const triageInput = `{"ticket_id":"T-100001","subject":"Broken","body":"It broke.","order_total_cents":5000}`

const goodTriage = `{"severity":"low","needs_human":false,"refund_cents":1200,"summary":"A lamp arrived broken."}`

// The ways in which targets were seen to go wrong while answering 200, each with one
// body. All others fail loudly, and are the provider's to tell. Sources are public
// reports; the bodies are made up.
func TestEverySilentFaultHasItsName(t *testing.T) {
	t.Parallel()

	tests := []struct {
		fault  string
		answer contract.Answer
		want   contract.Class
	}{
		// github.com/veniceai/api-docs/issues/264: 3 to 5 in 100 at temperature 0.3.
		{"JSONInAFence", raw("```json\n" + goodTriage + "\n```"), contract.ClassFenced},
		// github.com/sreerevanth/repopilot/issues/157
		{"ProseAroundJSON", raw("Sure! Here is the result:\n" + goodTriage + "\nLet me know."), contract.ClassProse},
		// github.com/caribeedu/twin/issues/57: one model of a family did, another did not.
		{"AnEnvelopeKeyOfTheModel", raw(`{"parameters":{"severity":"low","summary":"x"}}`), contract.ClassWrapped},
		// github.com/spinje/pflow/issues/598
		{"AnEnvelopeKeyOfTheGateway", raw(`{"json_tool_call":` + goodTriage + `}`), contract.ClassWrapped},
		// github.com/BerriAI/litellm/issues/37125
		{"TheSchemaIsIgnored", raw(`{"verdict":"fine","suggestion":"none"}`), contract.ClassSchema},
		// github.com/BerriAI/litellm/pull/38269
		{"TheParameterIsDropped", raw("The severity is low because the lamp is cheap."), contract.ClassNotJSON},
		// github.com/vllm-project/vllm/issues/53975
		{"AnUpgradeTookTheGuarantee", raw("Severity: low\nRefund: 1200"), contract.ClassNotJSON},
		// github.com/vllm-project/vllm/issues/44012: the same model by another surface.
		{"BracketsAfterTheEnd", raw(`{"a":[1]}]}]}]}`), contract.ClassTrailing},
		// github.com/Lore-Hex/quill-router/issues/130
		{"TheStopMarkIsNotHeeded", raw(goodTriage + "END\nTicket 2:"), contract.ClassTrailing},
		// github.com/opensearch-project/ml-commons/issues/5060: a rule of the system prompt.
		{"TheSystemPromptIsDropped", raw(edit(t, goodTriage, "1200", "9900")), contract.ClassInvariant},
		// github.com/prism-php/prism/issues/984
		{"ANumberAsText", raw(edit(t, goodTriage, "1200", `"1200"`)), contract.ClassStringlyTyped},
		// github.com/logancyang/obsidian-copilot/issues/2232
		{"ABooleanAsText", raw(edit(t, goodTriage, "false", `"False"`)), contract.ClassStringlyTyped},
		// github.com/MoonshotAI/kimi-cli/pull/2513
		{"TheWholeIsEncodedTwice", raw(`"{\"severity\":\"low\",\"needs_human\":false,\"refund_cents\":1,\"summary\":\"x\"}"`), contract.ClassDoubleEncoded},
		// github.com/agno-agi/agno/issues/2400
		{"AWordInCapitals", raw(edit(t, goodTriage, `"low"`, `"Low"`)), contract.ClassEnum},
		{"AWordOfItsOwn", raw(edit(t, goodTriage, `"low"`, `"medium-high"`)), contract.ClassEnum},
		// github.com/sgl-project/sglang/issues/2877: calls beside a finish of "stop".
		{"ToolCallsBesideTheContent", contract.Answer{Raw: []byte(goodTriage), Finish: contract.FinishComplete, ToolCalls: 1}, contract.ClassUnexpectedCall},
		// github.com/continuedev/continue/issues/13225: two calls put into one.
		{"TwoStreamedCallsInOne", raw(`{"severity":"low"}{"severity":"high"}`), contract.ClassTrailing},
		// github.com/Dstack-TEE/private-ai-gateway/issues/122: 11 in 100 structured calls.
		{"ReasoningAteTheBudget", contract.Answer{Finish: contract.FinishLength}, contract.ClassCut},
		{"NothingIsLeft", raw(" \n"), contract.ClassEmpty},
		// github.com/quallmer/quallmer/issues/153
		{"CutAndMadeWholeAgain", contract.Answer{Raw: []byte(goodTriage), Finish: contract.FinishComplete, OutputTokens: 400}, contract.ClassCut},
		// github.com/jundot/omlx/issues/3687
		{"CutWithAFinishOfStop", contract.Answer{Raw: []byte(`{"severity":"low","summary":"the la`), Finish: contract.FinishComplete}, contract.ClassCut},
		// github.com/admonstrator/zettelrobbe/issues/74
		{"ThoughtsInTheContent", raw("<think>hm</think>" + goodTriage), contract.ClassReasoning},
		// github.com/openai/openai-ruby/issues/174
		{"ARefusalBesideNoContent", contract.Answer{Refused: true}, contract.ClassRefusal},
		// github.com/google-gemini/deprecated-generative-ai-js/issues/165
		{"ARefusalInPlainText", raw("I cannot do that."), contract.ClassRefusal},
		{"AnApology", raw("I'm sorry, but I can't help with this ticket."), contract.ClassRefusal},
		{"AFilter", contract.Answer{Raw: []byte(goodTriage), Finish: contract.FinishFilter}, contract.ClassFinish},
		// github.com/ENTERPILOT/GoModel/issues/947: choices: [] leaves no content.
		{"NoChoiceAtAll", contract.Answer{Finish: contract.FinishComplete}, contract.ClassEmpty},
		{"AnErrorWith200", raw(`{"error":{"message":"overloaded","type":"server_error"}}`), contract.ClassErrorBody},
		// github.com/mozilla-ai/any-llm/issues/1143: a limit accepted and not enforced.
		{"ALimitIsNotEnforced", raw(edit(t, goodTriage, "A lamp arrived broken.", strings.Repeat("long ", 60))), contract.ClassSchema},
		// github.com/NousResearch/hermes-agent/issues/42801
		{"ABrokenEscape", raw(edit(t, goodTriage, "A lamp", `Ume\u0000e5`)), contract.ClassControl},
		// github.com/ralphgrewe/TradingAgents/issues/168
		{"TheContextWasCut", contract.Answer{Raw: []byte(goodTriage), Finish: contract.FinishComplete, InputTokens: 4000, OutputTokens: 96}, contract.ClassContextCut},
	}
	k := checker(t, readExample(t))
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()

			got := k.ValidateAnswer(tt.answer, []byte(triageInput))
			if len(got) == 0 || got[0].Class != tt.want {
				t.Errorf("%s\ngot  %v\nwant %s first", tt.answer.Raw, got, tt.want)
			}
		})
	}
}

func raw(text string) contract.Answer { return contract.Answer{Raw: []byte(text)} }

func TestAGoodBodyPasses(t *testing.T) {
	t.Parallel()

	k := checker(t, readExample(t))
	for name, a := range map[string]contract.Answer{
		"Plain":        raw(goodTriage),
		"WithSpace":    raw("\n  " + goodTriage + "\r\n"),
		"OtherOrder":   raw(`{"summary":"Ω é 🐙\ttab\nline","refund_cents":0,"needs_human":true,"severity":"high"}`),
		"Complete":     {Raw: []byte(goodTriage), Finish: contract.FinishComplete, InputTokens: 310, OutputTokens: 40},
		"ItsRefundMax": raw(edit(t, goodTriage, "1200", "5000")),
	} {
		if got := k.ValidateAnswer(a, []byte(triageInput)); len(got) > 0 {
			t.Errorf("%s: %v; want nothing", name, got)
		}
	}
}
