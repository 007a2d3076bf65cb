package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// claims stands in for a store's claims.
type claims struct {
	onejob.Store
	n  atomic.Int32
	do func(next func() (onejob.AttemptClaimResult, error)) (onejob.AttemptClaimResult, error)
}

func (c *claims) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	c.n.Add(1)
	return c.do(func() (onejob.AttemptClaimResult, error) { return c.Store.AttemptClaim(ctx, p) })
}

func TestAnOutageIsNeitherHammeredNorLoggedWithoutEnd(t *testing.T) {
	var down atomic.Bool
	c := &claims{do: func(next func() (onejob.AttemptClaimResult, error)) (onejob.AttemptClaimResult, error) {
		if down.Load() {
			return onejob.AttemptClaimResult{}, onejob.Unavailable(errNoAnswer)
		}
		return next()
	}}
	log := &lines{}
	s := setting{
		targets: map[string]behaviour{"a": answersAfter(10*time.Millisecond, `1`)}, wrap: func(s onejob.Store) onejob.Store { c.Store = s; return c },
		engine: engine.Options{Slots: 2, PollInterval: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil))},
	}
	in(t, s, func(w *world) {
		var ids []string
		for i := range 20 {
			ids = append(ids, w.submit(fmt.Sprint(i)).ID)
		}
		w.until(ids[0], onejob.JobSucceeded) // jobs wait for slots now
		down.Store(true)
		before := c.n.Load()
		time.Sleep(time.Minute)
		if n := c.n.Load() - before; n > 100 {
			t.Errorf("%d claims in a minute of outage; want about one a poll interval", n)
		}
		if n := log.count("could not claim"); n > 15 {
			t.Errorf("%d lines about it in a minute; want one every few seconds", n)
		}
		down.Store(false)
		for _, id := range ids {
			w.until(id, onejob.JobSucceeded)
		}
	})
}

func TestADueJobThatCannotBeClaimedIsNotAskedForWithoutPause(t *testing.T) {
	c := &claims{}
	c.do = func(next func() (onejob.AttemptClaimResult, error)) (onejob.AttemptClaimResult, error) {
		r, err := next()
		r.NextDue = time.Now().Add(-time.Second) // a store whose clock is behind ours says so too
		return r, err
	}
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, wrap: func(s onejob.Store) onejob.Store { c.Store = s; return c }}, func(w *world) {
		before := c.n.Load()
		time.Sleep(time.Minute)
		if n := c.n.Load() - before; n > 200 {
			t.Errorf("%d claims in a minute; want about one a poll interval", n)
		}
		w.until(w.submit("1").ID, onejob.JobSucceeded)
	})
}

func TestAnAnswerWhoseRowIsLockedIsRecordedLater(t *testing.T) {
	var tries atomic.Int32
	wrap := func(s onejob.Store) onejob.Store { return &lockedRows{Store: s, tries: &tries} }
	in(t, setting{targets: map[string]behaviour{"a": answers(`"paid"`)}, wrap: wrap}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if string(job.Result.Body) != `"paid"` || tries.Load() != 4 || w.calls.count() != 1 {
			t.Errorf("result %s after %d tries and %d calls; want it recorded at the fourth try after one call", job.Result.Body, tries.Load(), w.calls.count())
		}
	})
}

// lockedRows answers the first finishes of a row as a store does whose row
// somebody else holds.
type lockedRows struct {
	onejob.Store
	tries *atomic.Int32
}

func (l *lockedRows) AttemptFinish(ctx context.Context, p []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	if l.tries.Add(1) < 4 {
		return []onejob.AttemptFinishResult{{Err: onejob.Unavailable(errNoAnswer)}}, nil
	}
	return l.Store.AttemptFinish(ctx, p)
}

func TestAnAttemptAtATargetThatThisEngineDoesNotKnowIsNeverMarked(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"b", "a"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answers(`1`)}}, func(w *world) {
		job := w.submit("1") // for b, which nobody here serves
		start := onejob.StartParams{Worker: "elsewhere", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"b": {}}}
		r, err := w.store.AttemptClaim(w.t.Context(), onejob.AttemptClaimParams{StartParams: start, Max: 1})
		if err != nil || len(r.Claimed) != 1 {
			t.Fatal(err, r)
		}
		synctest.Wait() // a claim under way holds every slot
		if _, ok := w.engine.Reserve(""); !ok {
			t.Fatal("no slot")
		}
		w.engine.Dispatch(r.Claimed[0])
		w.until(job.ID, onejob.JobQueued)
		if a := w.attempt(w.get(job.ID), 1); a.State != onejob.AttemptFailed || a.Outcome != onejob.OutcomeNotExecuted || !a.OwnFault {
			t.Errorf("the attempt is %s, %s, own fault %t; want failed, not executed, ours", a.State, a.Outcome, a.OwnFault)
		}
	})
}

// lines counts the lines of a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// endings looks at an engine as its store records an end.
type endings struct {
	onejob.Store
	engine *engine.Engine
	held   []bool
}

func (e *endings) AttemptFinish(ctx context.Context, p []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	results, err := e.Store.AttemptFinish(ctx, p)
	e.held = append(e.held, e.engine.Holds(p[0].Ref.JobID))
	return results, err
}

func TestACallIsLetGoOfOnlyWhenItsEndIsRecorded(t *testing.T) {
	for name, does := range map[string]behaviour{"Answered": answersAfter(time.Second, `1`), "Silent": answersAfter(time.Hour, `1`)} {
		t.Run(name, func(t *testing.T) {
			e := &endings{}
			in(t, setting{targets: map[string]behaviour{"a": does}, wrap: func(s onejob.Store) onejob.Store { e.Store = s; return e }}, func(w *world) {
				e.engine = w.engine
				id := w.submit("1").ID
				time.Sleep(30 * time.Minute)
				if w.engine.Holds(id) || len(e.held) == 0 || !e.held[0] {
					t.Errorf("held as its end was recorded: %t, and now: %t; want so, and no more", e.held, w.engine.Holds(id))
				}
			})
		})
	}
}
