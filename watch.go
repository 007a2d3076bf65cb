package onejob

import (
	"context"
	"slices"
	"time"
)

// Watch waits for what becomes of one job that was just submitted. Everything that
// happens to the job in this process is seen, from its creation on; changes in
// others as they are heard of, and otherwise within Options.PollInterval.
type Watch struct {
	client *Client
	owner  string
	job    *Job // as it was last read, or shown
	seen   *watcher
	id     string // that seen waits for
}

// SubmitWatched is [Client.Submit] for a caller who goes on to wait: the job is
// watched from before it exists, so that waiting need not begin by reading it.
// After an error there is no watch; otherwise it is to be stopped.
func (c *Client) SubmitWatched(ctx context.Context, p SubmitParams) (job *Job, existed bool, watch *Watch, err error) {
	row, err := c.prepare(ctx, &p)
	if err != nil {
		return nil, false, nil, err
	}
	r, watch := c.recordWatched(ctx, row)
	return r.Job, r.Existed, watch, r.Err
}

// recordWatched records one intent. After an error there is no watch.
func (c *Client) recordWatched(ctx context.Context, row JobCreateParams) (JobCreateResult, *Watch) {
	watch := &Watch{client: c, owner: row.Owner, id: row.ID, seen: c.opts.Signals.watch(row.ID)}
	r := c.record(ctx, []JobCreateParams{row})[0]
	if r.Err != nil {
		watch.Stop()
		return r, nil
	}
	watch.job = r.Job
	return r, watch
}

// Until waits until enough says so of the job, or ctx ends, and returns the job as
// it is then. enough must not change it.
func (w *Watch) Until(ctx context.Context, enough func(*Job) bool) (*Job, error) {
	if w.job.ID != w.id { // the key was used before
		return w.client.WatchUntil(ctx, w.owner, w.job.ID, enough)
	}
	job, err := w.client.follow(ctx, w.seen, w.owner, w.job, enough)
	if err == nil {
		w.job = job
	}
	return job, err
}

// Look reads the job anew. Until goes on from what it finds.
func (w *Watch) Look(ctx context.Context) (*Job, error) {
	job, err := w.client.look(ctx, w.owner, w.job.ID)
	if err == nil {
		w.job = job
	}
	return job, err
}

// Stop ends the watch. It may be called more than once.
func (w *Watch) Stop() { w.client.opts.Signals.forget(w.id, w.seen) }

// Watch waits until the job's revision is above after, and returns it as it is
// then. When ctx ends first it returns the job as it is, without an error.
func (c *Client) Watch(ctx context.Context, owner, id string, after int64) (*Job, error) {
	return c.WatchUntil(ctx, owner, id, func(j *Job) bool { return j.Revision > after })
}

// WatchUntil waits until enough says so of the job, or ctx ends, and returns the
// job as it is then. enough must not change it. Changes in other processes are seen
// as they are heard of, and otherwise within Options.PollInterval.
func (c *Client) WatchUntil(ctx context.Context, owner, id string, enough func(*Job) bool) (*Job, error) {
	w := c.opts.Signals.watch(id)
	defer c.opts.Signals.forget(id, w)
	job, err := c.look(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return c.follow(ctx, w, owner, job, enough)
}

// follow waits until enough says so of a job that was just read, or shown.
func (c *Client) follow(ctx context.Context, w *watcher, owner string, job *Job, enough func(*Job) bool) (_ *Job, err error) {
	poll := time.NewTimer(c.opts.PollInterval)
	defer poll.Stop()
	shared := false // with others who wait
	for quiet := 0; !enough(job) && ctx.Err() == nil; {
		var shown *Job
		var own bool
		select {
		case <-w.changed:
			shown, own = c.opts.Signals.seen(w)
			quiet = 0
		case <-poll.C:
			quiet++
		case <-ctx.Done():
		}
		poll.Reset(c.opts.Signals.PauseAfter(quiet, c.opts.PollInterval))
		if shown != nil {
			job, shared = shown, !own
			continue
		}
		shared = false
		if job, err = c.look(ctx, owner, job.ID); err != nil {
			return nil, err
		}
	}
	if !shared {
		return job, nil
	}
	private := *job
	private.Attempts = slices.Clone(job.Attempts)
	return &private, nil
}

// lookWithin bounds one look at a job for somebody who waits.
const lookWithin = 10 * time.Second

// look reads a job though ctx may have ended: who waited is told how it stands.
func (c *Client) look(ctx context.Context, owner, id string) (*Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	return c.Get(ctx, owner, id)
}
