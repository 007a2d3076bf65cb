package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// plain is a JSON API of no particular vendor. It answers on every path that no
// other dialect claims, to every method that may have an effect.
var plain = dialect{idPrefix: "ch_", check: plainCheck, success: plainSuccess, failure: plainFailure, progress: plainProgress}

type plainAnswer struct {
	ID         string          `json:"id"`
	Object     string          `json:"object"`
	Status     string          `json:"status"`
	Amount     json.RawMessage `json:"amount"` // the input's own, null if it has none
	Echo       json.RawMessage `json:"echo"`
	CostMicros int64           `json:"cost_micros"`
	CreatedAt  int64           `json:"created"` // Unix seconds
}

func plainCheck(_ *http.Request, body []byte) string {
	if len(bytes.TrimSpace(body)) > 0 && !json.Valid(body) {
		return "the body is not valid JSON"
	}
	return ""
}

func plainSuccess(w work) answer {
	echo := json.RawMessage(w.Body)
	if len(bytes.TrimSpace(echo)) == 0 {
		echo = json.RawMessage("null")
	}
	var input struct {
		Amount json.RawMessage `json:"amount"`
	}
	_ = json.Unmarshal(echo, &input) // not an object: no amount
	a := jsonAnswer(http.StatusOK, plainAnswer{
		ID: w.ID, Object: "charge", Status: "succeeded", Amount: input.Amount, Echo: echo,
		CostMicros: w.Provider.opts.CostMicros, CreatedAt: w.Now.Unix(),
	})
	a.Header.Set("X-Request-Id", requestID())
	return a
}

func plainFailure(f failure) answer {
	code := f.Code
	if code == "" {
		code = slug(f.Status)
	}
	body := map[string]any{"error": map[string]string{"code": code, "message": f.Message}}
	if f.Status < 300 {
		body["status"] = "failed"
	}
	if f.ID != "" {
		body["id"] = f.ID
	}
	a := jsonAnswer(f.Status, body)
	a.Header.Set("X-Request-Id", requestID())
	return a
}

// slug names a status as an error code: 404 is "not_found".
func slug(status int) string {
	text := http.StatusText(status)
	switch {
	case status < 300:
		text = "failed"
	case status == 529:
		text = "overloaded"
	case text == "":
		text = "error"
	}
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(text, "'", "")), " ", "_")
}
