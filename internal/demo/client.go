package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// reply is what the server said to one request.
type reply struct {
	status   int
	replayed bool
	body     struct {
		ID      string          `json:"id"`
		State   string          `json:"state"`
		Version int64           `json:"version"`
		Result  json.RawMessage `json:"result"`
		Blocked *struct {
			Reason string `json:"reason"`
			Detail string `json:"detail"`

			Candidates []struct {
				Target string `json:"target"`
				Reason string `json:"reason"`
			} `json:"candidates"`
		} `json:"blocked"`
		CompletedBy string    `json:"completed_by"`
		Attempts    []attempt `json:"attempts"`

		Cost []struct {
			Micros int64 `json:"micros"`
		} `json:"cost"`
		Items []claimed `json:"items"` // of a claim

		ProviderKey string `json:"provider_key"` // of an attempt

		Code   string `json:"code"` // of a problem
		Detail string `json:"detail"`
	}
	retryAfter time.Duration
}

type attempt struct {
	ID        string `json:"id"`
	Number    int    `json:"number"`
	Target    string `json:"target"`
	State     string `json:"state"`
	Discarded *struct {
		Winner  string `json:"winner"`
		AfterMS int64  `json:"after_ms"`
	} `json:"discarded"`
	Evidence struct {
		Error string `json:"error"`
	} `json:"evidence"`
	CostMicros    int64  `json:"cost_micros"`
	CertificateID string `json:"certificate_id"`
}

// send sends one request. header pairs come as name, value.
func (s *stage) send(ctx context.Context, method, path, body string, header ...string) (reply, error) {
	var r reply
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.listen+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return r, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return r, err
	}
	r.status, r.replayed = resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
	if d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
		r.retryAfter = d
	}
	if err := json.Unmarshal(raw, &r.body); err != nil {
		return r, fmt.Errorf("%s %s answered %d with no JSON: %w", method, path, r.status, err)
	}
	return r, nil
}

// submit clicks: it asks for a charge of an order.
func (s *stage) submit(ctx context.Context, key, order string, amount int) (reply, error) {
	body := fmt.Sprintf(`{"kind":"charge","input":{"order":%q,"amount":%d}}`, order, amount)
	return s.send(ctx, http.MethodPost, "/v1/jobs", body, "Idempotency-Key", key)
}

func (s *stage) job(ctx context.Context, id string) (reply, error) {
	return s.send(ctx, http.MethodGet, "/v1/jobs/"+id, "")
}

func (s *stage) attempt(ctx context.Context, id string) (attempt, error) {
	var a attempt
	raw, err := s.read(ctx, "/v1/attempts/"+id)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(raw, &a)
}

// incidents counts the incidents of a kind that the server has raised.
func (s *stage) incidents(ctx context.Context, kind string) (string, error) {
	raw, err := s.read(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(line, `onejob_incidents_total{kind="`+kind+`"} `); ok {
			return strings.TrimSpace(n), nil
		}
	}
	return "0", nil
}

func (s *stage) read(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.listen+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

// untilState waits until the job is in state, telling every new state it sees.
func (s *stage) untilState(ctx context.Context, id, state string) (reply, error) {
	var last reply
	err := s.until(ctx, "the job is "+state, func() (bool, error) {
		r, err := s.job(ctx, id)
		if err != nil {
			return false, err
		}
		if r.body.State != s.told {
			s.say("job", "%s%s", r.body.State, why(r))
			s.told = r.body.State
		}
		last = r
		return r.body.State == state, nil
	})
	return last, err
}

func why(r reply) string {
	if r.body.Blocked == nil {
		return ""
	}
	return " (" + r.body.Blocked.Reason + "): " + r.body.Blocked.Detail
}

// expect is a claim about what was counted or answered.
func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v; want %v", what, got, want)
	}
	return nil
}
