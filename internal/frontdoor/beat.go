package frontdoor

import (
	"context"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// beating is a call that is held for a whole answer and shown signs of life meanwhile:
// white space, which JSON may begin with. The first of them says 200, so that whoever
// then has no answer to give can only break off; a repeat is told why.
type beating struct {
	w     http.ResponseWriter
	every time.Duration
	begun bool
}

// until is hold with signs of life.
func (b *beating) until(ctx context.Context, hold func(context.Context) (*onejob.Job, bool, error)) (*onejob.Job, error) {
	for {
		beat, cancel := context.WithTimeout(ctx, b.every)
		job, over, err := hold(beat)
		cancel()
		if err != nil || over || ctx.Err() != nil {
			return job, err
		}
		b.beat(job)
	}
}

func (b *beating) beat(job *onejob.Job) {
	if !b.begun {
		b.begun = true
		tell(b.w.Header(), job)
		b.w.Header().Set("Content-Type", "application/json")
		b.w.WriteHeader(http.StatusOK)
	}
	rc := http.NewResponseController(b.w)
	_ = rc.SetWriteDeadline(time.Now().Add(pieceTimeout)) // writers in tests have none
	if _, err := b.w.Write([]byte(" ")); err == nil {
		_ = rc.Flush() // who is gone is seen by the context
	}
	_ = rc.SetWriteDeadline(time.Time{}) // the answer has as long as any other
}

// answer ends what was begun.
func (b *beating) answer(job *onejob.Job) error {
	if refusal(job) != nil {
		panic(http.ErrAbortHandler) // an error under 200 would be taken for an answer
	}
	_, _ = b.w.Write(job.Result.Body) // the caller is gone; what was done is recorded
	return nil
}
