package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// steppingClock is a wall clock and a monotonic one that tests move apart.
type steppingClock struct {
	wall    *wallClock
	elapsed *wallClock
}

func (c steppingClock) Elapsed() time.Duration { return c.elapsed.Now().Sub(time.Time{}) }

func (c steppingClock) advance(d time.Duration) {
	c.wall.Advance(d)
	c.elapsed.Advance(d)
}

// doubtedJob is a job whose only attempt is unknown, its quarantine over, beside
// one whose attempt's lease has ended.
func doubtedJob(t *testing.T) (c steppingClock, s *sqlite.Store, unknown onejob.Attempt, expired onejob.AttemptRef) {
	t.Helper()
	c = steppingClock{newWallClock(), &wallClock{}}
	s = open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{NowFunc: c.wall.Now, ElapsedFunc: c.Elapsed})
	unknown = mustCreate(t, s, startedIntent(t, "k1")).Started.Attempt
	_, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
		Ref: refOf(unknown), ClaimToken: unknown.ClaimToken, Outcome: onejob.OutcomeUnknown,
	}})
	must(t, err)
	expired = refOf(mustCreate(t, s, startedIntent(t, "k2")).Started.Attempt)
	c.advance(time.Hour)
	must(t, s.Check(t.Context()))
	return c, s, unknown, expired
}

func refOf(a onejob.Attempt) onejob.AttemptRef {
	return onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
}

func rule(t *testing.T, s *sqlite.Store, id string, outcome onejob.Outcome) onejob.AttemptResolveResult {
	t.Helper()
	results, err := s.AttemptResolve(t.Context(), []onejob.AttemptResolveParams{{
		ID: id, Actor: "ann", Outcome: outcome, Evidence: "seen", Result: &onejob.Result{},
	}})
	must(t, err)
	return results[0]
}

func expire(t *testing.T, s *sqlite.Store, ref onejob.AttemptRef) int {
	t.Helper()
	expired, err := s.AttemptExpire(t.Context(), []onejob.AttemptRef{ref})
	must(t, err)
	return len(expired)
}

// A lease judged by a clock that is off gives a live worker's work away
// (Krzysztof318/MailFathom#1989, mlflow/mlflow#25199).
func TestClock(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		step   time.Duration
		settle time.Duration // by both clocks
	}{
		{"AStepForwardPausesWhatRestsOnTimeForAMinute", 6 * time.Second, time.Minute},
		{"AStepBackPausesWhatRestsOnTimeForAMinute", -time.Hour, time.Minute},
		{"AStepBackIsOverOnceTheWallHasCaughtUp", -20 * time.Second, 21 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, s, unknown, expired := doubtedJob(t)
			c.wall.Advance(tt.step)
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "clock") {
				t.Errorf("Check after a step of %s answered %v; want the clock named", tt.step, err)
			}
			r := rule(t, s, unknown.ID, onejob.OutcomeNotExecuted)
			var e *onejob.Error
			if onejob.CodeOf(r.Err) != onejob.CodeQuarantined || !asError(r.Err, &e) || e.RetryAfter <= 0 {
				t.Errorf("a negative ruling answered %v; want quarantined, with a time to come back", r.Err)
			}
			if n := expire(t, s, expired); n != 0 {
				t.Errorf("%d attempts expired by a clock in doubt; want none", n)
			}
			c.advance(tt.settle)
			must(t, s.Check(t.Context()))
			if n := expire(t, s, expired); n != 1 {
				t.Errorf("%d attempts expired once the clock had settled; want 1", n)
			}
			if r := rule(t, s, unknown.ID, onejob.OutcomeNotExecuted); r.Err != nil {
				t.Errorf("a negative ruling once the clock had settled answered %v", r.Err)
			}
		})
	}
}

func TestClockLetsASuccessBeRuledAtAnyTime(t *testing.T) {
	t.Parallel()

	c, s, unknown, _ := doubtedJob(t)
	c.wall.Advance(-time.Hour)
	if r := rule(t, s, unknown.ID, onejob.OutcomeSucceeded); r.Err != nil {
		t.Errorf("a success answered %v; it rests on no clock", r.Err)
	}
}

func TestClockNeverWritesAnEarlierTime(t *testing.T) {
	t.Parallel()

	path, clock := filepath.Join(t.TempDir(), "onejob.db"), newWallClock()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{NowFunc: clock.Now})
	must(t, err)
	first := mustCreate(t, s, intent(t, "alice", "k1")).Job
	clock.Advance(-time.Hour)
	second := mustCreate(t, s, intent(t, "alice", "k2")).Job
	must(t, s.Close())
	third := mustCreate(t, open(t, path, sqlite.Options{NowFunc: clock.Now}), intent(t, "alice", "k3")).Job
	for _, job := range []*onejob.Job{second, third} {
		if job.CreatedAt.Before(first.CreatedAt) {
			t.Errorf("a job was created at %s, after one of %s", job.CreatedAt, first.CreatedAt)
		}
	}
}
