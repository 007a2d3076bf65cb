package loadgen

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onejob-dev/onejob"
)

// Load is one load under way, or over. Make one with [New].
type Load struct {
	plan Plan
	next atomic.Int64 // the number of the next submission
	// Acknowledgement and Result are how long it took until a job was acknowledged, and
	// until it had ended.
	Acknowledgement, Result Histogram

	began time.Time

	mu      sync.Mutex
	counts  Counts
	known   known
	refusal *Refusal
}

// Counts is what became of the submissions.
type Counts struct {
	Submitted int64 // sent, and answered or not
	Accepted  int64 // acknowledged as new
	Replayed  int64 // acknowledged as a repeat
	Refused   map[int]int64
	Errors    int64  // no answer
	Error     string // one of them
	NotSent   int64  // due in an open loop when every caller was busy until the end
	Late      int64  // sent more than 10 ms after they were due, for the same reason
	// Otherwise counts repeats that were answered with another job.
	Otherwise  int64
	Ended      map[onejob.JobState]int64 // with Plan.Wait: how jobs ended
	Unfinished int64                     // with Plan.Wait: jobs that had not when the wait was over
}

// lateBy is when a submission counts as late.
const lateBy = 10 * time.Millisecond

// New returns a load that has not begun. The plan must be sound: see [Plan.Check].
func New(p Plan) *Load {
	return &Load{plan: p, counts: Counts{Refused: map[int]int64{}, Ended: map[onejob.JobState]int64{}}}
}

// Run puts the load on until its time is over, or ctx ends; requests under way then
// are waited for, and those of them who wait for a result no longer do. It returns a
// [*Refusal] when the server refuses what would always be refused.
func (l *Load) Run(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, l.plan.For)
	defer stop()
	l.mu.Lock()
	l.began = time.Now()
	l.mu.Unlock()
	var callers sync.WaitGroup
	for range l.plan.Callers {
		callers.Go(func() { l.caller(ctx, stop) })
	}
	callers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan.Mode == Open && l.refusal == nil {
		due := int64(min(time.Since(l.began), l.plan.For).Seconds() * l.plan.Rate)
		l.counts.NotSent = max(0, due-l.counts.Submitted)
	}
	if l.refusal != nil {
		return l.refusal
	}
	return nil
}

// caller sends one submission after another. In an open loop each has its moment,
// and whoever is free takes the next: one that comes late is measured from then on.
func (l *Load) caller(ctx context.Context, stop func()) {
	for ctx.Err() == nil {
		n := l.next.Add(1) - 1
		due := time.Now()
		if l.plan.Mode == Open {
			due = l.began.Add(time.Duration(float64(n) / l.plan.Rate * float64(time.Second)))
			if ahead := time.Until(due); ahead > 0 {
				pause(ctx, ahead)
			}
			if ctx.Err() != nil {
				return
			}
		}
		if l.one(ctx, n, due) {
			stop()
			return
		}
	}
}

// one sends a submission, and reports whether it is of no use to go on.
func (l *Load) one(ctx context.Context, n int64, due time.Time) (refused bool) {
	key, again := l.pick(n)
	late := time.Since(due) > lateBy
	got, err := l.plan.submit(context.WithoutCancel(ctx), key)
	took := time.Since(due)
	var j job
	if err == nil && (got.status == http.StatusOK || got.status == http.StatusAccepted) {
		j, err = got.job()
	}
	l.mu.Lock()
	l.counts.Submitted++
	if late {
		l.counts.Late++
	}
	switch {
	case err != nil:
		l.counts.Errors++
		l.counts.Error = causeOf(err)
	case j.ID == "":
		l.counts.Refused[got.status]++
		if refused = final(got.status); refused {
			l.refusal = &Refusal{Status: got.status, Body: got.body}
		}
	case got.replayed:
		l.counts.Replayed++
	default:
		l.counts.Accepted++
	}
	if j.ID != "" && l.known.learn(key, again, j.ID) {
		l.counts.Otherwise++
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		pause(ctx, 50*time.Millisecond) // a server that is down is not asked in a tight loop
	case j.ID != "":
		l.Acknowledgement.Add(took)
		l.await(ctx, j, due)
	case l.plan.Mode == Closed:
		pause(ctx, min(got.retry, time.Second))
	}
	return refused
}

// await waits for the end of a job, if that was asked for.
func (l *Load) await(ctx context.Context, j job, due time.Time) {
	if l.plan.Wait <= 0 {
		return
	}
	waiting, cancel := context.WithDeadline(context.WithoutCancel(ctx), due.Add(l.plan.Wait))
	defer cancel()
	j, err := l.plan.result(waiting, j, due.Add(l.plan.Wait))
	took := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && (j.State.Terminal() || j.State == onejob.JobBlocked):
		l.counts.Ended[j.State]++
		l.Result.Add(took)
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		l.counts.Unfinished++
	default:
		l.counts.Unfinished++
		l.counts.Errors++
		l.counts.Error = causeOf(err)
	}
}

// pick returns the key of a submission: a new one, or one that is known already.
func (l *Load) pick(n int64) (key string, again *intent) {
	if l.plan.RepeatFraction > 0 && rand.Float64() < l.plan.RepeatFraction {
		l.mu.Lock()
		again = l.known.any()
		l.mu.Unlock()
	}
	if again != nil {
		return again.key, again
	}
	return l.plan.key(n), nil
}

// Counts returns what became of the submissions so far, and how long it took.
func (l *Load) Counts() (Counts, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Refused, c.Ended = clone(c.Refused), clone(c.Ended)
	if l.began.IsZero() {
		return c, 0
	}
	return c, min(time.Since(l.began), l.plan.For)
}
