package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	maxAnswerBytes = 64 << 20
	// answerWithin bounds one request, and waitAtMost what a server is asked to hold it.
	answerWithin = 90 * time.Second
	waitAtMost   = 60 * time.Second
)

// answer is what a server said.
type answer struct {
	status   int
	replayed bool
	retry    time.Duration // what it asked to wait
	body     []byte
}

// job is what is read of one.
type job struct {
	ID    string          `json:"id"`
	State onejob.JobState `json:"state"`
}

// Refusal is an answer that would be the same for every further request.
type Refusal struct {
	Status int
	Body   []byte // a problem document, if the server is one of ours
}

func (r *Refusal) Error() string { return fmt.Sprintf("the server answers %d", r.Status) }

// final reports whether asking on is of no use: the request itself is refused, and
// not for a lack of room.
func final(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests &&
		status != http.StatusConflict && status != http.StatusGone && status != http.StatusRequestTimeout
}

func (p *Plan) submit(ctx context.Context, key string) (answer, error) {
	return p.ask(ctx, http.MethodPost, "/v1/jobs", p.body(key), http.Header{"Idempotency-Key": {key}})
}

func (p *Plan) get(ctx context.Context, id string, wait time.Duration) (answer, error) {
	header := http.Header{}
	if wait > 0 {
		header.Set("Prefer", "wait="+strconv.Itoa(max(1, int(min(wait, waitAtMost).Seconds()))))
	}
	return p.ask(ctx, http.MethodGet, "/v1/jobs/"+id, "", header)
}

func (p *Plan) ask(ctx context.Context, method, path, body string, header http.Header) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.Server.JoinPath(path).String(), strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil // or the transport would send it twice behind our back
	req.Header = header
	req.Header.Set("User-Agent", "onejob-bench")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.Key.Reveal())
	}
	res, err := p.Client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	read, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return answer{}, err
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // absent: zero
	return answer{
		status: res.StatusCode, body: read, retry: time.Duration(seconds) * time.Second,
		replayed: res.Header.Get("Idempotent-Replayed") == "true",
	}, nil
}

func (a *answer) job() (j job, err error) {
	if err = json.Unmarshal(a.body, &j); err == nil && j.ID == "" {
		err = errors.New("the answer is no job")
	}
	return j, err
}

// result waits for a job to end, or to block. It returns how it stood at last.
func (p *Plan) result(ctx context.Context, j job, until time.Time) (job, error) {
	for !j.State.Terminal() && j.State != onejob.JobBlocked && ctx.Err() == nil {
		left := time.Until(until)
		if left <= 0 {
			return j, nil
		}
		got, err := p.get(ctx, j.ID, left)
		if err != nil {
			return j, err
		}
		if got.status != http.StatusOK {
			pause(ctx, min(max(got.retry, 100*time.Millisecond), left))
			continue
		}
		if j, err = got.job(); err != nil {
			return j, err
		}
	}
	return j, nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
