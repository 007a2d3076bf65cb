package onejob_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/onejob-dev/onejob"
)

var errCut = errors.New("connection reset while committing")

// losing is a store whose first answers to creations are lost after the commit.
func losing(first int32) func(*world, *onejob.Options) {
	return func(w *world, _ *onejob.Options) {
		inner := w.store
		var times atomic.Int32
		w.store = &between{Store: inner, create: func(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
			results, err := inner.JobCreate(ctx, params)
			if times.Add(1) <= first && err == nil {
				return nil, errCut
			}
			return results, err
		}}
	}
}

func TestALostAcknowledgementIsRecognisedAsOurOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, losing(1))
	job, existed := w.submit(drawing(`1`))
	if existed {
		t.Error("our own creation counts as a repeat")
	}
	again, existed := w.submit(drawing(`1`))
	if again.ID != job.ID || !existed {
		t.Errorf("the repeat is job %s, existed %t; want %s, true", again.ID, existed, job.ID)
	}
}

func TestAStoreThatDoesNotConfirmTwiceIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, losing(2))
	job, existed, err := w.client.Submit(t.Context(), drawing(`1`))
	if e := wantError(t, err, onejob.CodeStoreUnavailable); job != nil || existed || !errors.Is(err, errCut) || e.RetryAfter <= 0 {
		t.Errorf("Submit = %v, %t, %v; want only the error, its cause and when to ask again", job, existed, err)
	}
	// It was committed after all; the same key finds it.
	if _, existed := w.submit(drawing(`1`)); !existed {
		t.Error("the job that was committed without an answer is not found by its key")
	}
}

func TestACallerWhoHasLeftIsNotAskedFor(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	var calls atomic.Int32
	w := newWorld(t, func(w *world, _ *onejob.Options) {
		inner := w.store
		w.store = &between{Store: inner, create: func(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
			calls.Add(1)
			return inner.JobCreate(ctx, params)
		}}
	})
	leave()
	_, _, err := w.client.Submit(ctx, drawing(`1`))
	wantCode(t, err, onejob.CodeStoreUnavailable)
	if n := calls.Load(); n != 0 {
		t.Errorf("the store was asked %d times for a caller who had left; want never", n)
	}
}

// A commit that nobody looks at would leave an attempt marked and never sent.
func TestWhatIsCommittedAfterItsCallerLeftIsSent(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	s := &slots{free: 1}
	w := newWorld(t, starting(s), func(w *world, _ *onejob.Options) {
		inner := w.store
		w.store = &between{Store: inner, create: func(flush context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
			leave()
			if flush.Err() != nil {
				return nil, flush.Err()
			}
			return inner.JobCreate(flush, params)
		}}
	})
	_, _, err := w.client.Submit(ctx, drawing(`1`))
	if err != nil { // whether the caller hears of it is a matter of moments
		wantCode(t, err, onejob.CodeStoreUnavailable)
	}
	s.check(t, 1)
}

func TestACallersTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *onejob.Options) { o.Starter = &slots{free: 9} })
	tx := &capture{}
	in := w.client.In(tx)

	job, existed, err := in.Submit(t.Context(), drawing(`1`))
	if err != nil || existed || job == nil || len(tx.rows) != 1 {
		t.Fatalf("Submit = %v, %t, %v after %d creations; want one", job, existed, err, len(tx.rows))
	}
	if tx.rows[0].Start != nil {
		t.Error("an attempt would start in a transaction that may be rolled back")
	}
	if page, err := w.client.List(t.Context(), onejob.JobListParams{Limit: 9}); err != nil || len(page.Jobs) != 0 {
		t.Errorf("the store itself has %d jobs, %v; want the transaction alone to know", len(page.Jobs), err)
	}

	p := drawing(`1`)
	p.Key = ""
	_, _, err = in.Submit(t.Context(), p)
	wantCode(t, err, onejob.CodeKeyMissing)

	_, _, err = w.client.In(&between{create: func(context.Context, []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
		return nil, errCut
	}}).Submit(t.Context(), drawing(`1`))
	if wantCode(t, err, onejob.CodeStoreUnavailable); !errors.Is(err, errCut) {
		t.Errorf("the error is %v; want its cause kept", err)
	}
}
