package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// CountTokens asks the target how many tokens the body of a request has. The responses
// API has an endpoint for that, which also counts for chat completions where
// [Options.Tokenizer] says remote; vLLM and llama.cpp have their own. Where the
// tokenizer counts locally, or none is known, it is [errors.ErrUnsupported].
func (p *Provider) CountTokens(ctx context.Context, body []byte) (int, error) {
	if !p.opts.API.prompted() {
		return 0, errors.ErrUnsupported
	}
	members, err := p.membersToCount(body)
	if err != nil {
		return 0, err
	}
	switch t := p.opts.Tokenizer; {
	case t == prompt.CountVLLM:
		return p.countByVLLM(ctx, members)
	case t == prompt.CountLlama:
		return p.countByLlama(ctx, members)
	case t == prompt.CountRemote, t == "" && p.opts.API == APIResponses:
		return p.countByResponses(ctx, members)
	}
	return 0, errors.ErrUnsupported
}

// members are those of a body by name.
type members map[string]json.RawMessage

func (p *Provider) membersToCount(body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil || m == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	m["model"] = p.model
	return m, nil
}

// counted are the members that the endpoint for counting takes.
var counted = strings.Fields("conversation input instructions model parallel_tool_calls previous_response_id reasoning text tool_choice tools truncation")

func (p *Provider) countByResponses(ctx context.Context, m members) (int, error) {
	if p.opts.API == APIChat {
		if err := m.toResponses(); err != nil {
			return 0, err
		}
	}
	maps.DeleteFunc(m, func(name string, _ json.RawMessage) bool { return !slices.Contains(counted, name) })
	var count struct {
		InputTokens int `json:"input_tokens"`
	}
	if err := p.count(ctx, p.base+"/responses/input_tokens", m, &count); err != nil {
		return 0, err
	}
	return prompt.Count(count.InputTokens)
}

// toResponses says what a chat says in the words of the responses API.
func (m members) toResponses() error {
	m["input"] = m["messages"]
	var format struct {
		Schema map[string]json.RawMessage `json:"json_schema"`
	}
	if raw := m["response_format"]; raw != nil {
		if err := json.Unmarshal(raw, &format); err != nil {
			return fmt.Errorf("response_format: %w", err)
		}
		format.Schema["type"] = json.RawMessage(`"json_schema"`)
		text, err := json.Marshal(map[string]any{"format": format.Schema})
		if err != nil {
			return err
		}
		m["text"] = text
	}
	return m.flattenTools()
}

// flattenTools takes tools out of the member that chat completions put them in.
func (m members) flattenTools() error {
	delete(m, "tool_choice") // it costs no tokens
	if m["tools"] == nil {
		return nil
	}
	var tools []struct {
		Function map[string]json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(m["tools"], &tools); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	flat := make([]map[string]json.RawMessage, len(tools))
	for i, tool := range tools {
		flat[i] = tool.Function
		flat[i]["type"] = json.RawMessage(`"function"`)
	}
	var err error
	m["tools"], err = json.Marshal(flat)
	return err
}

// root is where a server has what is not part of the API.
func (p *Provider) root() string { return strings.TrimSuffix(p.base, "/v1") }

func (p *Provider) countByVLLM(ctx context.Context, m members) (int, error) {
	ask := members{"model": m["model"], "messages": m["messages"], "add_generation_prompt": json.RawMessage("true")}
	for _, name := range []string{"tools", "chat_template_kwargs"} {
		if m[name] != nil {
			ask[name] = m[name]
		}
	}
	var count struct {
		Count int `json:"count"`
	}
	if err := p.count(ctx, p.root()+"/tokenize", ask, &count); err != nil {
		return 0, err
	}
	return prompt.Count(count.Count)
}

func (p *Provider) countByLlama(ctx context.Context, m members) (int, error) {
	var rendered struct {
		Prompt string `json:"prompt"`
	}
	if err := p.count(ctx, p.root()+"/apply-template", m, &rendered); err != nil {
		return 0, err
	}
	content, err := json.Marshal(rendered.Prompt)
	if err != nil {
		return 0, err
	}
	ask := members{"content": content, "add_special": json.RawMessage("true"), "parse_special": json.RawMessage("true")}
	var tokens struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := p.count(ctx, p.root()+"/tokenize", ask, &tokens); err != nil {
		return 0, err
	}
	return prompt.Count(len(tokens.Tokens))
}

// count asks one question that executes nothing.
func (p *Provider) count(ctx context.Context, url string, ask members, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	s := p.client.Send(ctx, onejob.Request{}, wire.Message{Method: http.MethodPost, URL: url, Header: p.header(onejob.Request{}), Body: body})
	if s.Status != http.StatusOK || s.Trouble != "" {
		return fmt.Errorf("the provider counted nothing: %s", s.Complaint())
	}
	return prompt.Decode(s.Body, answer)
}
