package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

// A receiver verifies what it got before it believes a word of it, and acts once on
// each id.
func ExampleVerify() {
	secrets := []onejob.Secret{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} // from the environment, not from the code
	seen := map[string]bool{}                                            // a table with a unique constraint, not a map

	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
			return
		}
		id, err := webhook.Verify(webhook.VerifyParams{Secrets: secrets, Header: r.Header, Body: body})
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var event struct {
			Type string `json:"type"`
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, "not an event", http.StatusBadRequest)
			return
		}
		if !seen[id] {
			seen[id] = true
			fmt.Println(event.Type, event.Data.ID)
		}
		w.WriteHeader(http.StatusNoContent)
	}

	body := []byte(`{"type":"job.succeeded","timestamp":"2026-01-02T03:04:05Z","data":{"id":"job_1"}}`)
	for _, forged := range []bool{false, false, true} {
		r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader(body))
		_ = webhook.Sign(r.Header, webhook.SignParams{ID: "msg_1", At: time.Now(), Body: body, Secrets: secrets})
		if forged {
			r.Header.Set(webhook.HeaderID, "msg_2")
		}
		answer := httptest.NewRecorder()
		receive(answer, r)
		fmt.Println(answer.Code)
	}
	// Output:
	// job.succeeded job_1
	// 204
	// 204
	// 401
}
