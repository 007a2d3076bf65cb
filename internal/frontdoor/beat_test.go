package frontdoor_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
)

const alive = `{"model":"alive","messages":[{"role":"user","content":"hello"}]}`

func TestAWholeAnswerMayComeBehindSignsOfLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hold")
	r := w.read(chat, alive, "Idempotency-Key", "k1")
	if r.resp.StatusCode != http.StatusOK || r.resp.Header.Get("Onejob-Job-Id") == "" || r.resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", r.resp.StatusCode, r.resp.Header)
	}
	r.want("  ")
	w.provider.Release()
	got, err := io.ReadAll(r.body)
	if err != nil {
		t.Fatal(err)
	}
	again := w.post(chat, alive, "Idempotency-Key", "k1")
	if string(again.body) == "" || strings.TrimLeft(string(got), " ") != string(again.body) {
		t.Errorf("read %q; want white space and %q", got, again.body)
	}
}

// An error that comes under 200 would be taken for an answer.
func TestACallThatHasNoAnswerAfterASignOfLifeIsBrokenOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hold")
	r := w.read(chat, alive, "Idempotency-Key", "k1", "Prefer", "wait=1")
	r.want("  ")
	if rest, err := io.ReadAll(r.body); err == nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("read %q, %v; want white space, and the connection broken off", rest, err)
	}
	w.post(chat, alive, "Idempotency-Key", "k1", "Prefer", "wait=1").wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
}
