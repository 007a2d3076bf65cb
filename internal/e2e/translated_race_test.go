package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// newTranslatedRace is a race whose primary speaks chat completions, and takes 2.5 s,
// and whose other lane speaks messages.
func newTranslatedRace(t *testing.T, storeURL string) *slowPrimary {
	t.Helper()
	return newSlowPrimaryBeside(t, storeURL, beside{
		backup:    `provider: anthropic, base_url: "%s", api_key: "${env:ACME_KEY}", max_tokens: 500`,
		models:    map[string]sim.Mind{sim.AnyModel: {}},
		contract:  strings.NewReplacer("[model, messages]", "[model, messages, seed, stream]", "properties:\n    model", "properties:\n    seed: {type: integer}\n    stream: {type: boolean}\n    model").Replace(completions),
		inputFunc: func(text string) string { return seeded(text, false) },
	}, "none", "race: {after: 500ms, lanes: 2}")
}

// seeded has a member that the backup's API has not.
func seeded(text string, stream bool) string {
	return strings.Replace(prompted(text), "{", fmt.Sprintf(`{"seed":7,"stream":%t,`, stream), 1)
}

// wantTranslated wants an answer of the backup's that says so.
func (c completed) wantTranslated(t *testing.T, contentType string) {
	t.Helper()
	c.want(t, http.StatusOK, map[string]string{
		"Onejob-Attempts": "2", "Onejob-Target": "backup", "Onejob-Params-Dropped": "seed", "Onejob-Intent": "keyed", "Content-Type": contentType,
	})
	if certificate := c.header.Get("Onejob-Certificate"); !strings.HasPrefix(certificate, "cert_") {
		t.Errorf("Onejob-Certificate: %q; want the backup's", certificate)
	}
	if c.took > 2*time.Second {
		t.Errorf("answered after %s; want it before the primary", c.took)
	}
}

// completion is an answer in the caller's protocol.
type completion struct {
	Object, Model string
	Choices       []struct {
		Message      struct{ Role, Content string }
		Delta        struct{ Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		Total int64 `json:"total_tokens"`
	}
}

// Two executions are asked for; the caller gets one answer, in the protocol that it
// asked in, and is told whose it is and what was not sent there.
func TestATranslatedLaneWinsARaceAndTheCallerIsAnsweredInItsOwnProtocol(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newTranslatedRace(t, storeURL)
		got := s.completeAs(seeded("Order: A-1", false), "k1")
		got.wantTranslated(t, "application/json")
		var c completion
		if err := json.Unmarshal(got.body, &c); err != nil || c.Object != "chat.completion" || c.Model != "medium" || len(c.Choices) != 1 || c.Usage.Total == 0 {
			t.Fatalf("answered %s, %v; want a chat completion by the backup's model", got.body, err)
		}
		if m := c.Choices[0].Message; m.Role != "assistant" || !strings.Contains(m.Content, "A-1") || c.Choices[0].FinishReason != "stop" {
			t.Errorf("answered %s; want a text that tells the order", got.body)
		}
		primary, backup, job := s.ended(t, got.header.Get("Onejob-Job-Id"), "discarded")
		// Millionths for a token: three of the primary's, one of the backup's.
		if primary.CostMicros == 0 || primary.CostMicros != 3*(primary.Usage.Prompt+primary.Usage.Completion) {
			t.Errorf("the primary's attempt cost %d for %+v; want what it took", primary.CostMicros, primary.Usage)
		}
		if backup.CostMicros != c.Usage.Total {
			t.Errorf("the backup's attempt cost %d for %+v; the caller was told of %d tokens", backup.CostMicros, backup.Usage, c.Usage.Total)
		}
		if len(job.Cost) != 1 || job.Cost[0].Micros != primary.CostMicros+backup.CostMicros || job.Cost[0].AtLeast {
			t.Errorf("the job cost %+v; want the sum of %d and %d", job.Cost, primary.CostMicros, backup.CostMicros)
		}
		s.wantRepeat(t, seeded("Order: A-1", false), got)
	})
}

// The other lane's answer comes whole, and is made a stream of. The primary's, which begins
// later, is hung up on: what it cost is not told, and the sum says so.
func TestATranslatedLaneWinsARaceForAStream(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newTranslatedRace(t, storeURL)
		streamed := seeded("Order: A-1", true)
		got := s.completeAs(streamed, "k1")
		got.wantTranslated(t, "text/event-stream")
		text := ""
		for event := range strings.SplitSeq(strings.TrimSpace(string(got.body)), "\n\n") {
			var c completion
			said, isData := strings.CutPrefix(event, "data: ")
			if said == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(said), &c); !isData || err != nil || c.Object != "chat.completion.chunk" || c.Model != "medium" {
				t.Fatalf("an event is %q, %v; want a chunk by the backup's model", event, err)
			}
			for _, choice := range c.Choices {
				text += choice.Delta.Content
			}
		}
		if !strings.Contains(text, "A-1") || !strings.HasSuffix(string(got.body), "data: [DONE]\n\n") {
			t.Errorf("streamed %q, which says %q; want the order, to the end", got.body, text)
		}
		_, backup, job := s.ended(t, got.header.Get("Onejob-Job-Id"), "cancelled")
		if len(job.Cost) != 1 || backup.CostMicros == 0 || job.Cost[0].Micros != backup.CostMicros || !job.Cost[0].AtLeast {
			t.Errorf("the job cost %+v; want at least the %d of the backup", job.Cost, backup.CostMicros)
		}
		s.wantRepeat(t, streamed, got)
	})
}

// ended waits until the primary's attempt has ended so, and wants the backup's to have
// won, asked in its own API.
func (s *slowPrimary) ended(t *testing.T, id, how string) (primary, backup spent, job raced) {
	t.Helper()
	want := "primary/0=" + how + " backup/1=succeeded "
	if !eventually(waitFor, func() bool {
		job = getRaced(t, s.node, id)
		return job.attempts() == want
	}) {
		t.Fatalf("the attempts ended as %q; want %q", job.attempts(), want)
	}
	if job.State != "succeeded" || job.CompletedBy != job.Attempts[1].ID {
		t.Errorf("the job is %s, completed by %s; want the backup's attempt", job.State, job.CompletedBy)
	}
	for i, each := range []*spent{&primary, &backup} {
		if err := json.Unmarshal(body(t, s.node, "/v1/attempts/"+job.Attempts[i].ID), each); err != nil {
			t.Fatal(err)
		}
	}
	s.wantExecutions(1, 1)
	for _, e := range s.backup.Ledger() {
		if e.Path != "/v1/messages" {
			t.Errorf("the backup was asked at %s; want its own API", e.Path)
		}
	}
	return primary, backup, job
}

// spent is what an attempt cost, and its usage in the words of chat completions.
type spent struct {
	CostMicros int64 `json:"cost_micros"`
	Usage      struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

// wantRepeat wants the same bytes and no more executions, after the primary's answer too.
func (s *slowPrimary) wantRepeat(t *testing.T, text string, first completed) {
	t.Helper()
	again := s.completeAs(text, "k1")
	again.wantTranslated(t, first.header.Get("Content-Type"))
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		t.Errorf("a repeat got %s; want %s", again.body, first.body)
	}
	s.wantExecutions(1, 1)
}
