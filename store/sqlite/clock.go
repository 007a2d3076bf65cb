package sqlite

import (
	"fmt"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	// tolerance is how far the wall clock may move against the monotonic clock
	// between two readings: what adjusts clocks gently stays far below it.
	tolerance = 5 * time.Second
	// settling is how long the clocks must agree after a step. Every live worker
	// renews its lease meanwhile.
	settling = time.Minute
	// persistEvery is how often the high-water mark is written, with a write that
	// happens anyway.
	persistEvery = time.Second
)

// clock is the store's time: the process's wall clock, which never goes back.
//
// Leases and quarantines are only as good as the clock that ends them. A step of
// the wall clock against the monotonic one (an operator, a bad time server, a
// machine that slept) makes the clock doubtful: for a minute, or until the wall
// has caught up with the high-water mark, nothing may be concluded from time
// having passed.
type clock struct {
	nowFunc     func() time.Time
	elapsedFunc func() time.Duration
	start       time.Time

	mu        sync.Mutex
	high      time.Time // the latest time given out
	persisted time.Time
	wall      time.Time     // at the last reading
	elapsed   time.Duration // at the last reading
	doubt     doubt
}

// doubt is what is wrong with the clock. The zero value: nothing.
type doubt struct {
	step  time.Duration // by how much the wall moved; negative: back
	until time.Duration // on the monotonic clock
}

// newClock starts a clock at the mark that the database kept. elapsed may be nil:
// the monotonic readings of now then serve, if it has any.
func newClock(now func() time.Time, elapsed func() time.Duration, high time.Time) *clock {
	c := &clock{nowFunc: now, elapsedFunc: elapsed, start: now(), high: high, persisted: high}
	c.wall, c.elapsed = c.read()
	if behind := high.Sub(c.wall); behind > tolerance {
		c.doubt = doubt{step: -behind, until: c.elapsed + settling}
	}
	return c
}

// read reads both clocks at once: the wall's in the milliseconds that rows keep.
func (c *clock) read() (wall time.Time, elapsed time.Duration) {
	now := c.nowFunc()
	wall = millis(now)
	if c.elapsedFunc != nil {
		return wall, c.elapsedFunc()
	}
	return wall, now.Sub(c.start)
}

// now returns the time to write: the wall's, or the high-water mark when that is later.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.read()
	step := wall.Sub(c.wall) - (elapsed - c.elapsed)
	c.wall, c.elapsed = wall, elapsed
	if step.Abs() > tolerance {
		c.doubt = doubt{step: step, until: elapsed + settling}
	}
	if wall.After(c.high) {
		c.high = wall
	}
	return c.high
}

// doubtful returns how long nothing may be concluded from time having passed,
// and why. It returns zero when the clock is sound.
func (c *clock) doubtful() (wait time.Duration, step time.Duration) {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	caughtUp := c.doubt.step < 0 && !c.wall.Before(c.high)
	if c.doubt.step == 0 || c.elapsed >= c.doubt.until || caughtUp {
		c.doubt = doubt{}
		return 0, 0
	}
	return c.doubt.until - c.elapsed, c.doubt.step
}

// check returns why the clock is in doubt.
func (c *clock) check() error {
	wait, step := c.doubtful()
	if wait == 0 {
		return nil
	}
	return &onejob.Error{
		Code: onejob.CodeStoreUnavailable, RetryAfter: wait,
		Message: fmt.Sprintf("the wall clock stepped by %s against the monotonic clock; sweeps and negative rulings are paused", step.Round(time.Second)),
	}
}

// keep writes the high-water mark, at most once a second, with a write that is
// under way. written must be called once that is committed.
func (c *clock) keep(db speaker) (written func(), err error) {
	c.mu.Lock()
	high, due := c.high, c.high.Sub(c.persisted) >= persistEvery
	c.mu.Unlock()
	if !due {
		return func() {}, nil
	}
	if _, err := db.exec(`UPDATE clock SET high_water = max(high_water, ?) WHERE id = 1`, high); err != nil {
		return nil, err
	}
	return func() {
		c.mu.Lock()
		c.persisted = high
		c.mu.Unlock()
	}, nil
}

// millis is t in the whole milliseconds that rows keep, in UTC.
func millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// millisOrZero leaves the time that stands for none alone.
func millisOrZero(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return millis(t)
}

// later is millis rounded up: what must not happen before t does not happen
// before what the row says. Zero stays zero.
func later(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	ms := millis(t)
	if ms.Before(t) {
		ms = ms.Add(time.Millisecond)
	}
	return ms
}
