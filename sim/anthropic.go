package sim

import (
	"cmp"
	"net/http"
)

// anthropic is the messages API; only models with a mind stream.
var anthropic = dialect{idPrefix: "msg_01", check: anthropicCheck, success: anthropicSuccess, failure: anthropicFailure, progress: plainProgress, ask: askMessages, say: tellMessages}

type anthropicAnswer struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicBlock `json:"content"`
	StopReason   string           `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        anthropicUsage   `json:"usage"`
}

type anthropicBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicUsage struct {
	InputTokens         int    `json:"input_tokens"`
	CacheCreationTokens int    `json:"cache_creation_input_tokens"`
	CacheReadTokens     int    `json:"cache_read_input_tokens"`
	OutputTokens        int    `json:"output_tokens"`
	ServiceTier         string `json:"service_tier"`
}

type anthropicError struct {
	Type      string            `json:"type"`
	Error     map[string]string `json:"error"`
	RequestID string            `json:"request_id"`
}

// anthropicTypes are the types of errors by their status; all others are "api_error".
var anthropicTypes = map[int]string{
	400: "invalid_request_error",
	401: "authentication_error",
	402: "billing_error",
	403: "permission_error",
	404: "not_found_error",
	409: "invalid_request_error",
	413: "request_too_large",
	422: "invalid_request_error",
	429: "rate_limit_error",
	504: "timeout_error",
	529: "overloaded_error",
}

func anthropicCheck(r *http.Request, body []byte) string {
	chat, err := parseChat(body)
	switch complaint := chat.complaint(err); {
	case r.Header.Get("Anthropic-Version") == "":
		return "anthropic-version: header is required"
	case complaint != "":
		return complaint
	case chat.MaxTokens <= 0:
		return "max_tokens: Field required"
	}
	return ""
}

func anthropicSuccess(w work) answer {
	chat, _ := parseChat(w.Body) // has been checked
	text := w.Provider.reply(chat.Model, chat.prompt())
	a := jsonAnswer(http.StatusOK, anthropicAnswer{
		ID: w.ID, Type: "message", Role: "assistant", Model: chat.Model,
		Content:    []anthropicBlock{{"text", text}},
		StopReason: "end_turn",
		Usage: anthropicUsage{
			InputTokens: tokens(string(w.Body)), OutputTokens: tokens(text), ServiceTier: "standard",
		},
	})
	a.Header.Set("Request-Id", requestID())
	return a
}

func anthropicFailure(f failure) answer {
	id := requestID()
	kind := cmp.Or(f.Code, anthropicTypes[f.Status], "api_error")
	a := jsonAnswer(f.Status, anthropicError{"error", map[string]string{"type": kind, "message": f.Message}, id})
	a.Header.Set("Request-Id", id)
	return a
}
