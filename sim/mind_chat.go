package sim

import (
	"net/http"
	"time"
)

type chatAnswer struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"` // Unix seconds
	Model       string       `json:"model"`
	Choices     []chatChoice `json:"choices"`
	Usage       *openAIUsage `json:"usage"`
	ServiceTier string       `json:"service_tier"`
	Fingerprint string       `json:"system_fingerprint"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Message      *chatMessage `json:"message,omitempty"`
	Delta        *chatDelta   `json:"delta,omitempty"` // of a stream
	Logprobs     *struct{}    `json:"logprobs"`
	FinishReason *string      `json:"finish_reason"`
}

type chatMessage struct {
	Role        string     `json:"role"`
	Content     any        `json:"content"` // a string, null, or a list of parts
	Refusal     *string    `json:"refusal"`
	Annotations []struct{} `json:"annotations"`
	ToolCalls   []chatCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Refusal   *string    `json:"refusal,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"` // of a stream
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// chatFinishes are the finishes in the words of the chat completions API.
var chatFinishes = map[finish]string{
	finishDone: "stop", finishStop: "stop", finishRefusal: "stop", finishLength: "length", finishCalls: "tool_calls", finishFilter: "content_filter",
}

// tellChat writes an answer as the chat completions API does.
func tellChat(t *thought, id string, now time.Time) answer {
	if t.isError {
		return openAIFailure(failure{Status: http.StatusOK, Message: "The model is overloaded."})
	}
	if t.q.stream {
		return streamChat(t, id, now)
	}
	why := chatFinishes[t.finish]
	choice := chatChoice{Message: t.chatMessage(), FinishReason: &why}
	a := t.chatAnswer(id, "chat.completion", now, choice)
	usage := t.chatUsage()
	a.Usage = &usage
	return openAIJSON(a)
}

func openAIJSON(v any) answer {
	made := jsonAnswer(http.StatusOK, v)
	setOpenAIHeaders(made.Header)
	return made
}

func (t *thought) chatAnswer(id, object string, now time.Time, choices ...chatChoice) chatAnswer {
	if t.noChoices {
		choices = []chatChoice{}
	}
	return chatAnswer{
		ID: t.idOr(id, "chatcmpl-"), Object: object, Created: now.Unix(), Model: t.model, Choices: choices,
		ServiceTier: "default", Fingerprint: t.fingerprint,
	}
}

func (t *thought) chatMessage() *chatMessage {
	m := &chatMessage{Role: "assistant", Content: t.text, Annotations: []struct{}{}}
	switch {
	case t.refusal != "":
		m.Content, m.Refusal = nil, &t.refusal
	case len(t.calls) > 0:
		m.Content = nil
	case t.blocks:
		m.Content = []anthropicBlock{{"text", t.text}}
	}
	for _, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: c.id, Type: "function", Function: chatFunction{c.name, c.text}})
	}
	return m
}

func (t *thought) chatUsage() openAIUsage {
	return openAIUsage{
		PromptTokens: t.in, CompletionTokens: t.out, TotalTokens: t.in + t.out,
		PromptDetails:     map[string]int{"cached_tokens": 0, "audio_tokens": 0},
		CompletionDetails: map[string]int{"reasoning_tokens": t.reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

// streamChat writes the chunks of an answer.
func streamChat(t *thought, id string, now time.Time) answer {
	var s stream
	chunk := func(d chatDelta, why *string) {
		s.data(t.chatAnswer(id, "chat.completion.chunk", now, chatChoice{Delta: &d, FinishReason: why}))
	}
	empty := ""
	chunk(chatDelta{Role: "assistant", Content: &empty}, nil)
	for _, part := range pieces(t.text) {
		chunk(chatDelta{Content: &part}, nil)
	}
	if t.refusal != "" {
		chunk(chatDelta{Refusal: &t.refusal}, nil)
	}
	for i, c := range t.calls {
		head := chatCall{Index: &i, ID: c.id, Type: "function", Function: chatFunction{Name: c.name}}
		if t.noIndex {
			head.Index, head.ID = nil, ""
		}
		chunk(chatDelta{ToolCalls: []chatCall{head}}, nil)
		for _, part := range pieces(c.text) {
			chunk(chatDelta{ToolCalls: []chatCall{{Index: head.Index, Function: chatFunction{Arguments: part}}}}, nil)
		}
	}
	why := chatFinishes[t.finish]
	chunk(chatDelta{}, &why)
	if t.q.usage {
		last := t.chatAnswer(id, "chat.completion.chunk", now)
		usage := t.chatUsage()
		last.Choices, last.Usage = []chatChoice{}, &usage
		s.data(last)
	}
	s.raw("data: [DONE]\n\n")
	a := s.answer()
	setOpenAIHeaders(a.Header)
	return a
}
