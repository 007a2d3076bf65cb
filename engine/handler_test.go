package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

func TestAHandlerNeverBeginsAfterItsTime(t *testing.T) {
	t.Parallel()
	began := false
	h := engine.Handler(func(context.Context, onejob.Request) (onejob.Answer, error) {
		began = true
		return onejob.Answer{}, nil
	})
	_, err := h.Call(t.Context(), onejob.Request{SendBy: time.Now().Add(-time.Millisecond)})
	if began || !errors.Is(err, onejob.ErrNotSent) {
		t.Errorf("began %t, error %v; want it not begun, and proven so", began, err)
	}
	if _, err := h.Call(t.Context(), onejob.Request{SendBy: time.Now().Add(time.Minute)}); err != nil || !began {
		t.Errorf("in time: began %t, error %v; want it begun", began, err)
	}
}

func TestWhatAHandlerReturnsIsWhatIsProven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer onejob.Answer
		err    error
		panics bool
		want   onejob.JobState
	}{
		"a success":           {answer: onejob.Answer{Body: []byte(`1`), ContentType: "application/json"}, want: onejob.JobSucceeded},
		"executed and failed": {answer: onejob.Answer{Outcome: onejob.OutcomeExecutedFailed}, want: onejob.JobFailed},
		"a refusal":           {err: onejob.ErrRefused, want: onejob.JobFailed},
		"any other error":     {err: errors.New("boom"), want: onejob.JobBlocked},
		"a panic":             {panics: true, want: onejob.JobBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			do := func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
				return engine.Handler(func(context.Context, onejob.Request) (onejob.Answer, error) {
					if tt.panics {
						panic("boom")
					}
					return tt.answer, tt.err
				}).Call(ctx, r)
			}
			in(t, setting{targets: map[string]behaviour{"a": do}}, func(w *world) {
				w.until(w.submit("k1").ID, tt.want)
			})
		})
	}
}
