package httpapi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func TestNewJobsAreRefusedWhileTooManyWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	queued, counted := int64(7), 0
	var down error
	a, err := httpapi.NewAdmission(httpapi.AdmissionOptions{
		MaxQueued: 10, NowFunc: func() time.Time { return now },
		QueuedFunc: func(context.Context) (int64, error) { counted++; return queued, down },
	})
	if err != nil {
		t.Fatal(err)
	}
	admitted := func(n int) (ok int) {
		for range n {
			if a.Admit(t.Context(), "o", 1) == nil {
				ok++
			}
		}
		return ok
	}
	if n := admitted(8); n != 3 || counted != 1 {
		t.Errorf("%d admitted after %d counts; want 3, the room that was left, after 1", n, counted)
	}
	refused := a.Admit(t.Context(), "o", 1)
	if refused == nil || refused.Code != onejob.CodeOverloaded || refused.RetryAfter <= 0 {
		t.Errorf("refused with %v; want overloaded and when to ask again", refused)
	}
	now = now.Add(time.Second)
	queued = 5
	if n := admitted(8); n != 5 || counted != 2 {
		t.Errorf("a second later %d admitted after %d counts; want 5 after 2", n, counted)
	}
	now, down = now.Add(time.Minute), errors.New("the database is down")
	if n := admitted(3); n != 0 {
		t.Errorf("%d admitted on no count; want none, as the last one said", n)
	}
}
