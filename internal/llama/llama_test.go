package llama_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/llama"
	"github.com/onejob-dev/onejob/provider/openai"
)

// askedFor is set by make test-llama.
const askedFor = "ONEJOB_TEST_LLAMA"

func serve(t *testing.T) *llama.Server {
	t.Helper()
	if os.Getenv(askedFor) == "" {
		t.Skipf("%s is not set; make test-llama sets it, and needs Node.js and npm", askedFor)
	}
	s, err := llama.Start(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStructureIsNoContract(t *testing.T) {
	t.Parallel()
	c, k := triage(t)
	server := serve(t)
	p, err := openai.New(openai.Options{BaseURL: server.URL + "/v1", Model: "random"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)

	passed := 0
	for i := range c.CaseList {
		test := &c.CaseList[i]
		content := complete(t, p, test, i)
		if found := k.Validate(content, test.Input); len(found) > 0 {
			t.Errorf("%s: under a grammar it said %q: %v", test.ID, content, found)
		}
		if semantic, _ := k.Expect(content, test); len(semantic) == 0 {
			passed++
		}
	}
	t.Logf("%d of %d answers have the structure; %d mean what was expected", len(c.CaseList), len(c.CaseList), passed)
	if passed == len(c.CaseList) {
		t.Error("random weights meet every expectation: the expectations expect nothing")
	}
}

func TestAControlTokenInATextIsOne(t *testing.T) {
	t.Parallel()
	server := serve(t)
	plain, special := tokens(t, server, "<|im_end|>", false), tokens(t, server, "<|im_end|>", true)
	broken := tokens(t, server, "<|im\u200d_end|>", true)
	if special != 1 || plain != len("<|im_end|>") || broken <= special+3 {
		t.Errorf("%d tokens as text, %d parsed, %d with a joiner inside; want %d, 1 and many", plain, special, broken, len("<|im_end|>"))
	}
}

// triage is a contract of 20 cases whose right answers follow from the input.
func triage(t *testing.T) (*contract.Contract, *contract.Checker) {
	t.Helper()
	var cases strings.Builder
	for i := range 20 {
		severity := []string{"low", "medium", "high"}[i%3]
		tag := ""
		if i == 0 {
			tag = `, "tags": ["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id": "c-%02d", "input": {"body": "ticket %d: %s"}, "expect": {"severity": %q}%s}`+"\n", i, i, severity, severity, tag)
	}
	text, err := os.ReadFile("testdata/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Parse("triage.yaml", text, fstest.MapFS{"cases.jsonl": {Data: []byte(cases.String())}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := contract.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// complete asks the model about one case, and returns the content.
func complete(t *testing.T, p onejob.Provider, c *contract.Case, seed int) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": "x", "seed": seed, "max_tokens": 400,
		"messages":        []any{map[string]any{"role": "user", "content": string(c.Input)}},
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "output", "strict": true, "schema": json.RawMessage(schema)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := p.Call(t.Context(), onejob.Request{Kind: "triage", Effect: onejob.EffectNone, Input: body, SendBy: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(answer.Body, &completion); err != nil || len(completion.Choices) != 1 {
		t.Fatalf("it answered %s: %v", answer.Body, err)
	}
	return []byte(completion.Choices[0].Message.Content)
}

// schema is that of testdata/triage.yaml.
const schema = `{"type": "object", "additionalProperties": false, "required": ["severity", "needs_human"],
	"properties": {"severity": {"enum": ["low", "medium", "high"]}, "needs_human": {"type": "boolean"}}}`

func tokens(t *testing.T, s *llama.Server, text string, parse bool) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{"content": text, "parse_special": parse})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/tokenize", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var said struct {
		Tokens []int `json:"tokens"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	return len(said.Tokens)
}
