package sim

import (
	"net/http"
	"strings"
)

// openAI is the chat completions API; only models with a mind stream.
var openAI = dialect{idPrefix: "chatcmpl-", check: openAICheck, success: openAISuccess, failure: openAIFailure, progress: plainProgress, ask: askChat, say: tellChat}

type openAIAnswer struct {
	ID          string         `json:"id"`
	Object      string         `json:"object"`
	Created     int64          `json:"created"` // Unix seconds
	Model       string         `json:"model"`
	Choices     []openAIChoice `json:"choices"`
	Usage       openAIUsage    `json:"usage"`
	ServiceTier string         `json:"service_tier"`
	Fingerprint string         `json:"system_fingerprint"`
}

type openAIChoice struct {
	Index        int           `json:"index"`
	Message      openAIMessage `json:"message"`
	Logprobs     *struct{}     `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

type openAIMessage struct {
	Role        string     `json:"role"`
	Content     string     `json:"content"`
	Refusal     *string    `json:"refusal"`
	Annotations []struct{} `json:"annotations"`
}

type openAIUsage struct {
	PromptTokens      int            `json:"prompt_tokens"`
	CompletionTokens  int            `json:"completion_tokens"`
	TotalTokens       int            `json:"total_tokens"`
	PromptDetails     map[string]int `json:"prompt_tokens_details"`
	CompletionDetails map[string]int `json:"completion_tokens_details"`
}

type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openAICodes are the usual type and code of an error by its status.
var openAICodes = map[int][2]string{
	200: {"server_error", ""},
	400: {"invalid_request_error", ""},
	401: {"invalid_request_error", "invalid_api_key"},
	403: {"invalid_request_error", "unsupported_country_region_territory"},
	404: {"invalid_request_error", "model_not_found"},
	409: {"invalid_request_error", "idempotency_key_in_use"},
	413: {"invalid_request_error", "request_too_large"},
	422: {"invalid_request_error", ""},
	429: {"requests", "rate_limit_exceeded"},
	503: {"server_error", "service_unavailable"},
}

func openAICheck(_ *http.Request, body []byte) string {
	chat, err := parseChat(body)
	return chat.complaint(err)
}

func openAISuccess(w work) answer {
	chat, _ := parseChat(w.Body) // has been checked
	text := w.Provider.reply(chat.Model, chat.prompt())
	in, out := tokens(string(w.Body)), tokens(text)
	a := jsonAnswer(http.StatusOK, openAIAnswer{
		ID: w.ID, Object: "chat.completion", Created: w.Now.Unix(), Model: chat.Model,
		Choices: []openAIChoice{{
			Message:      openAIMessage{Role: "assistant", Content: text, Annotations: []struct{}{}},
			FinishReason: "stop",
		}},
		Usage: openAIUsage{
			PromptTokens: in, CompletionTokens: out, TotalTokens: in + out,
			PromptDetails:     map[string]int{"cached_tokens": 0, "audio_tokens": 0},
			CompletionDetails: map[string]int{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
		},
		ServiceTier: "default", Fingerprint: "fp_sim",
	})
	setOpenAIHeaders(a.Header)
	return a
}

func openAIFailure(f failure) answer {
	usual, known := openAICodes[f.Status]
	if !known {
		usual = [2]string{"server_error", ""}
		if f.Status < 500 {
			usual[0] = "invalid_request_error"
		}
	}
	e := openAIError{Message: f.Message, Type: usual[0]}
	if code := f.Code; code != "" {
		e.Code = &code
		if code == "insufficient_quota" {
			e.Type = code // as the vendor does it
		}
	} else if usual[1] != "" {
		e.Code = &usual[1]
	}
	if f.Param != "" {
		e.Param = &f.Param
	}
	a := jsonAnswer(f.Status, map[string]openAIError{"error": e})
	setOpenAIHeaders(a.Header)
	return a
}

func setOpenAIHeaders(h http.Header) {
	h.Set("X-Request-Id", strings.ToLower(requestID()))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "7")
}
