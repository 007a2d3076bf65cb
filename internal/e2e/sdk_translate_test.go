//go:build sdks

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"

	"github.com/onejob-dev/onejob/sim"
)

// pairShop serves kinds whose first target refuses everything, and whose second has the
// other API.
type pairShop struct {
	*shop
	shut *sim.Server // the provider of the first
}

func newPairShop(t *testing.T) *pairShop {
	t.Helper()
	models := map[string]sim.Mind{"large": {}}
	p := &pairShop{shut: sim.ForTest(t, sim.Options{Default: sim.MustParse("status=401")[0], Models: models, IntentFunc: orderIn})}
	provider := sim.ForTest(t, sim.Options{Models: models, IntentFunc: orderIn})
	s := &site{t: t, dir: t.TempDir(), store: newSQLite(t), provider: provider}
	s.setUp(fmt.Sprintf(`
targets:
  gpt: {provider: openai, base_url: "%[1]s/v1", model: large}
  claude: {provider: anthropic, base_url: "%[1]s", model: large, api_key: "${env:ACME_KEY}", max_tokens: 500}
  shut_gpt: {provider: openai, base_url: "%[2]s/v1", model: large}
  shut_claude: {provider: anthropic, base_url: "%[2]s", model: large, api_key: "${env:ACME_KEY}", max_tokens: 500}
kinds:
  chat: {effect: none, targets: [shut_gpt, claude], failover: {declared: "they are alike here"}}
  message: {effect: none, targets: [shut_claude, gpt], failover: {declared: "they are alike here"}}
secret: "a secret that all nodes share"
`, provider.URL(), p.shut.URL()))
	n := s.newNode()
	n.start()
	p.shop = &shop{site: s, node: n}
	return p
}

// meet has a library ask for what is answered by a target that has the API of path, with
// a key or without.
func (p *pairShop) meet(t *testing.T, c stock, path string, keyed ...bool) {
	for name, test := range map[string]func(*testing.T, *visit){
		"IsAnsweredPlainly":   plainly,
		"IsAnsweredInAShape":  inAShape,
		"CallsATool":          withATool,
		"IsAnsweredInAStream": streamed,
		"CallsAToolInAStream": streamedTool,
		"LosesTheAnswer":      droppedAnswer,
	} {
		for _, keyed := range keyed {
			t.Run(fmt.Sprintf("%s/%s", name, map[bool]string{true: "WithAKey", false: "WithoutAKey"}[keyed]), func(t *testing.T) {
				t.Parallel()
				v := p.visit(t, c, keyed)
				test(t, v)
				p.wantElsewhere(t, v, path)
			})
		}
	}
}

// wantElsewhere wants that all executions were the second target's, in its own API, and
// that the first was asked as often.
func (p *pairShop) wantElsewhere(t *testing.T, v *visit, path string) {
	t.Helper()
	refused, answered := 0, 0
	for _, e := range p.shut.Ledger() {
		if e.Intent == v.Order {
			refused++
		}
	}
	for _, e := range p.provider.Ledger() {
		if e.Intent == v.Order && e.Path == path {
			answered++
		}
	}
	if asked := v.atProvider(); answered == 0 || answered != asked || answered != v.executions() || refused != answered {
		t.Errorf("%d refused, then %d of %d requests at %s, %d executions; want as many of each", refused, answered, asked, path, v.executions())
	}
	if n := len(v.proxy.passed()); v.proxy.drop == dropNothing && (n != 1 || answered != 1) {
		t.Errorf("it asked %d times, and %d were answered; want once", n, answered)
	}
}

// Where requests of each API are answered.
const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
)

func TestStockGoClientsAreAnsweredByTargetsOfTheOtherAPI(t *testing.T) {
	t.Parallel()
	p := newPairShop(t)
	for _, c := range []struct {
		stock
		path string
	}{
		{stock{name: "OpenAIChat", ask: askOpenAIChat}, messagesPath},
		{stock{name: "AnthropicMessages", ask: askAnthropic}, chatPath},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p.meet(t, c.stock, c.path, true, false)
		})
	}
	t.Run("AndTheirTalkGoesOn", func(t *testing.T) {
		t.Parallel()
		talkGoesOn(t, p)
	})
}

// What the other API said is said to it again, as a part of the next question.
func talkGoesOn(t *testing.T, p *pairShop) {
	chats := openai.NewClient(openAIOptions(question{BaseURL: "http://" + p.node.addr, Credential: p.key})...)
	tools := []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look_up_order", Parameters: orderOnly})}
	completion, err := chats.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "chat", Seed: openai.Int(7), Tools: tools,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("look_up_order, put A-1 in order\nOrder: asked")},
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := completion.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "look_up_order" || completion.Choices[0].FinishReason != "tool_calls" || completion.Usage.TotalTokens == 0 {
		t.Fatalf("it answered %s", completion.RawJSON())
	}
	completion, err = chats.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "chat", Tools: tools, Messages: []openai.ChatCompletionMessageParamUnion{
			openai.UserMessage("Order: more"), completion.Choices[0].Message.ToParam(), openai.ToolMessage("it is on its way", calls[0].ID),
		},
	})
	if err != nil || completion.Choices[0].Message.Content == "" {
		t.Errorf("%+v, %v", completion, err)
	}

	letters := anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL("http://"+p.node.addr+"/anthropic"), anthropicoption.WithAPIKey(p.key))
	message, err := letters.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "message", MaxTokens: 500, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Order: letter"))},
	})
	if err != nil || len(message.Content) != 1 || !strings.Contains(message.Content[0].Text, "letter") || message.StopReason != "end_turn" || message.Usage.OutputTokens == 0 {
		t.Errorf("%+v, %v", message, err)
	}
}
