package grouped_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
)

// slowStore records the batches it is given and holds each until released.
type slowStore struct {
	onejob.Store
	release chan struct{}
	err     error

	mu      sync.Mutex
	batches [][]string
}

func (s *slowStore) JobCreate(_ context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	results := make([]onejob.JobCreateResult, len(params))
	var ids []string
	for i, p := range params {
		ids = append(ids, p.ID)
		results[i] = onejob.JobCreateResult{Job: &onejob.Job{ID: p.ID}}
	}
	s.note(ids)
	return results, s.err
}

func (s *slowStore) AttemptFinish(_ context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	var ids []string
	for _, p := range params {
		ids = append(ids, p.Ref.ID)
	}
	s.note(ids)
	return make([]onejob.AttemptFinishResult, len(params)), s.err
}

func (s *slowStore) note(ids []string) {
	s.mu.Lock()
	s.batches = append(s.batches, ids)
	s.mu.Unlock()
	<-s.release
}

func (s *slowStore) Close() error { return nil }

func open(t *testing.T, inner onejob.Store, opts grouped.Options) *grouped.Store {
	t.Helper()
	s, err := grouped.New(inner, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCallersWhoComeDuringAFlushShareTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				r, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: id}})
				if err != nil || r[0].Job.ID != id {
					t.Errorf("caller %s was answered %v, %v", id, r, err)
				}
			})
			synctest.Wait() // a is being flushed; the rest wait
		}
		close(inner.release)
		wg.Wait()
		want := [][]string{{"a"}, {"b", "c", "d"}}
		if !slices.EqualFunc(inner.batches, want, slices.Equal) {
			t.Errorf("batches %v; want %v", inner.batches, want)
		}
	})
}

func TestRowsOfOneJobNeverShareAFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		var wg sync.WaitGroup
		for _, ref := range []onejob.AttemptRef{{JobID: "0", ID: "first"}, {JobID: "1", ID: "x"}, {JobID: "1", ID: "y"}, {JobID: "2", ID: "z"}} {
			wg.Go(func() {
				if _, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{Ref: ref}}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(inner.release)
		wg.Wait()
		want := [][]string{{"first"}, {"x", "z"}, {"y"}}
		if !slices.EqualFunc(inner.batches, want, slices.Equal) {
			t.Errorf("batches %v; want %v", inner.batches, want)
		}
	})
}

func TestAFlushTakesNoMoreThanMaxBatchAndNeverSplitsACaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{MaxBatch: 2})
		var wg sync.WaitGroup
		for _, ids := range [][]string{{"a"}, {"b", "c", "d"}, {"e"}, {"f"}, {"g"}} {
			wg.Go(func() {
				var params []onejob.JobCreateParams
				for _, id := range ids {
					params = append(params, onejob.JobCreateParams{ID: id})
				}
				if _, err := s.JobCreate(t.Context(), params); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(inner.release)
		wg.Wait()
		want := [][]string{{"a"}, {"b", "c", "d"}, {"e", "f"}, {"g"}}
		if !slices.EqualFunc(inner.batches, want, slices.Equal) {
			t.Errorf("batches %v; want %v", inner.batches, want)
		}
	})
}

func TestACallerWhoLeavesIsToldThatNothingIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = s.JobCreate(ctx, []onejob.JobCreateParams{{ID: "a"}}) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if !errors.Is(err, onejob.ErrStoreUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v; want store-unavailable, caused by the cancellation", err)
		}
		close(inner.release)
	})
}

func TestAFailedCommitIsToldToEveryCallerInIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{}), err: onejob.Unavailable(errors.New("the disk is full"))}
		s := open(t, inner, grouped.Options{})
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			wg.Go(func() {
				if _, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: id}}); !errors.Is(err, onejob.ErrStoreUnavailable) {
					t.Errorf("caller %s was answered %v; want store-unavailable", id, err)
				}
			})
			synctest.Wait()
		}
		close(inner.release)
		wg.Wait()
	})
}

func TestTooManyWaitersAreRefusedBeforeTheStoreIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{MaxWaiting: 2})
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			wg.Go(func() {
				if _, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: id}}); err != nil {
					t.Errorf("caller %s was answered %v", id, err)
				}
			})
			synctest.Wait()
		}
		_, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: "d"}})
		if onejob.CodeOf(err) != onejob.CodeOverloaded {
			t.Errorf("the fourth caller was answered %v; want overloaded", err)
		}
		close(inner.release)
		wg.Wait()
		if got := len(slices.Concat(inner.batches...)); got != 3 {
			t.Errorf("the store saw %d rows; want 3", got)
		}
	})
}

func TestCloseWaitsForTheFlushUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: "a"}}) })
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			_ = s.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned with a flush under way")
		default:
		}
		close(inner.release)
		wg.Wait()
		<-closed
	})
}

// lockedStore answers a row with [onejob.ReasonRowLocked] in a shared flush, and
// waits for release when asked about it alone.
type lockedStore struct {
	onejob.Store
	release chan struct{}
	alone   [][]string
}

func (s *lockedStore) Hasty() onejob.Store { return hastyStore{s} }

func (s *lockedStore) JobCreate(_ context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	s.alone = append(s.alone, idsOf(params))
	<-s.release
	return []onejob.JobCreateResult{{Job: &onejob.Job{ID: params[0].ID}}}, nil
}

type hastyStore struct{ *lockedStore }

func (s hastyStore) JobCreate(_ context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	var results []onejob.JobCreateResult
	for _, p := range params {
		r := onejob.JobCreateResult{Job: &onejob.Job{ID: p.ID}}
		if p.ID == "held" {
			r = onejob.JobCreateResult{Err: &onejob.Error{Code: onejob.CodeStoreUnavailable, Reason: onejob.ReasonRowLocked}}
		}
		results = append(results, r)
	}
	return results, nil
}

func idsOf(params []onejob.JobCreateParams) (ids []string) {
	for _, p := range params {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestAHeldRowIsTriedAgainAloneAndNobodyElseWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &lockedStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		var held []onejob.JobCreateResult
		var wg sync.WaitGroup
		wg.Go(func() {
			var err error
			if held, err = s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: "mine"}, {ID: "held"}}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if r, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{ID: "neighbour"}}); err != nil || r[0].Err != nil {
			t.Errorf("the neighbour was answered %v, %v; want a job while the held row waits", r, err)
		}
		if held != nil {
			t.Error("the held row's caller was answered before the row was free")
		}
		close(inner.release)
		wg.Wait()
		if len(held) != 2 || held[0].Err != nil || held[1].Err != nil {
			t.Errorf("the held row's caller was answered %+v; want two jobs", held)
		}
		if want := [][]string{{"held"}}; !slices.EqualFunc(inner.alone, want, slices.Equal) {
			t.Errorf("rows %v were tried alone; want %v", inner.alone, want)
		}
	})
}

func (s *slowStore) JobGet(_ context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	var ids []string
	results := make([]onejob.JobResult, len(params))
	for i, p := range params {
		ids = append(ids, p.ID)
		results[i].Job = &onejob.Job{ID: p.ID}
	}
	s.note(ids)
	return results, s.err
}

func TestReadersWhoComeDuringFlushesShareTheNextAndASlowOneHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &slowStore{release: make(chan struct{})}
		s := open(t, inner, grouped.Options{})
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				r, err := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: id}})
				if err != nil || r[0].Job.ID != id {
					t.Errorf("reader %s was answered %v, %v", id, r, err)
				}
			})
			synctest.Wait() // a and b are being read; the rest wait
		}
		close(inner.release)
		wg.Wait()
		want := [][]string{{"a"}, {"b"}, {"c", "d"}}
		if !slices.EqualFunc(inner.batches, want, slices.Equal) {
			t.Errorf("batches %v; want %v", inner.batches, want)
		}
	})
}
