//go:build sdks

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"

	"github.com/onejob-dev/onejob/sim"
)

// newPairShop serves kinds whose targets have different APIs.
func newPairShop(t *testing.T) *shop {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"large": {}}, IntentFunc: orderIn})
	s := &site{t: t, dir: t.TempDir(), store: newSQLite(t), provider: provider}
	s.setUp(fmt.Sprintf(`
targets:
  gpt: {provider: openai, base_url: "%[1]s/v1", model: large}
  claude: {provider: anthropic, base_url: "%[1]s", model: large, api_key: "${env:ACME_KEY}", max_tokens: 500}
kinds:
  chats: {effect: none, targets: [gpt, claude], failover: {declared: "they are alike here"}}
  letters: {effect: none, targets: [claude, gpt], failover: {declared: "they are alike here"}}
secret: "a secret that all nodes share"
`, provider.URL()))
	n := s.newNode()
	n.start()
	return &shop{site: s, node: n}
}

func TestStockGoClientsAreAnsweredByTargetsOfTheOtherAPI(t *testing.T) {
	t.Parallel()
	s := newPairShop(t)
	s.provider.ScriptFor("chat", sim.MustParse("status=401")...)
	chats := openai.NewClient(openAIOptions(question{BaseURL: "http://" + s.node.addr, Credential: s.key})...)
	completion, err := chats.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "chats", Seed: openai.Int(7),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("look_up_order, put A-1 in order\nOrder: chat")},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look_up_order", Parameters: orderOnly})},
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := completion.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "look_up_order" || completion.Choices[0].FinishReason != "tool_calls" || completion.Usage.TotalTokens == 0 {
		t.Fatalf("it answered %s", completion.RawJSON())
	}

	// The talk goes on with what the other API said.
	s.provider.ScriptFor("more", sim.MustParse("status=401")...)
	completion, err = chats.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "chats", Messages: []openai.ChatCompletionMessageParamUnion{
			openai.UserMessage("Order: more"), completion.Choices[0].Message.ToParam(), openai.ToolMessage("it is on its way", calls[0].ID),
		},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look_up_order", Parameters: orderOnly})},
	})
	if err != nil || completion.Choices[0].Message.Content == "" {
		t.Errorf("%+v, %v", completion, err)
	}

	s.provider.ScriptFor("letter", sim.MustParse("status=401")...)
	letters := anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL("http://"+s.node.addr+"/anthropic"), anthropicoption.WithAPIKey(s.key))
	message, err := letters.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "letters", MaxTokens: 500, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Order: letter"))},
	})
	if err != nil || len(message.Content) != 1 || message.Content[0].Text == "" || message.StopReason != "end_turn" || message.Usage.OutputTokens == 0 {
		t.Errorf("%+v, %v", message, err)
	}
}
