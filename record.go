package onejob

import (
	"context"
	"slices"
	"time"
)

// record creates jobs and hands what was started with them to the Starter. What
// has begun is finished though the caller leaves: a commit that nobody looks at
// could otherwise leave a marked attempt that nobody sends, which is doubt where
// there is none. The caller who leaves is told that nothing is known.
func (c *Client) record(ctx context.Context, rows []JobCreateParams) []JobCreateResult {
	if err := ctx.Err(); err != nil {
		return unavailable(len(rows), err)
	}
	c.reserve(rows)
	recorded := make(chan []JobCreateResult, 1)
	go func() { recorded <- c.create(context.WithoutCancel(ctx), rows) }()
	select {
	case results := <-recorded:
		return results
	case <-ctx.Done():
		return unavailable(len(rows), context.Cause(ctx))
	}
}

func unavailable(n int, err error) []JobCreateResult {
	return slices.Repeat([]JobCreateResult{{Err: Unavailable(err)}}, n)
}

// reserve takes a slot for every row that may start at once, as far as there are.
func (c *Client) reserve(rows []JobCreateParams) {
	if c.opts.Starter == nil {
		return
	}
	for i := range rows {
		row := &rows[i]
		if row.Refuse != nil || !row.RunAfter.IsZero() {
			continue
		}
		target := row.Target
		if target == "" {
			target = row.Policy.Targets[0]
		}
		if start, ok := c.opts.Starter.Reserve(target); ok {
			row.Start = &start
		}
	}
}

// create asks twice when the store does not confirm: the token tells whether the
// first time was committed after all. It does not ask for a start again. What is
// still not known then is found out behind the caller's back.
func (c *Client) create(ctx context.Context, rows []JobCreateParams) []JobCreateResult {
	created, err := c.store.JobCreate(ctx, rows)
	confirmed := err == nil
	if !confirmed {
		created, err = c.store.JobCreate(ctx, withoutStart(rows))
	}
	answered := err == nil
	if !answered {
		created = unavailable(len(rows), err)
	}
	for i := range rows {
		row, r := &rows[i], &created[i]
		unknown := !answered || !confirmed && CodeOf(r.Err) == CodeStoreUnavailable
		switch {
		case unknown && row.Start != nil:
			go c.findOut(ctx, *row, answered) // who holds the row may be the first time, on its way to be committed
		case answered:
			c.begin(row, r)
		}
	}
	return created
}

func withoutStart(rows []JobCreateParams) []JobCreateParams {
	again := slices.Clone(rows)
	for i := range again {
		again[i].Start = nil
	}
	return again
}

// findOutEvery is the pause between questions about a start that may have been committed.
const findOutEvery = 100 * time.Millisecond

// findOut asks, while the lease of a possible start lasts, whether it was
// committed, and creates nothing. Its slot stays reserved meanwhile, so that an
// outage leaves no more of these than there are slots. held says that somebody was seen
// to hold the row: that nothing is recorded yet is then no answer.
func (c *Client) findOut(ctx context.Context, row JobCreateParams, held bool) {
	ctx, cancel := context.WithTimeout(ctx, row.Start.Lease)
	defer cancel()
	question := row
	question.Start, question.Refuse = nil, &Error{Code: CodeNotFound, Message: "the job was not recorded"}
	pause := time.NewTicker(findOutEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			c.opts.Starter.Release()
			return
		case <-pause.C:
		}
		created, err := c.store.JobCreate(ctx, []JobCreateParams{question})
		if err != nil {
			continue
		}
		r := &created[0]
		if code := CodeOf(r.Err); code == CodeStoreUnavailable || code == CodeNotFound && held {
			continue
		}
		c.begin(&row, r)
		return
	}
}

// begin hands a job that was just created to whoever tries it.
func (c *Client) begin(row *JobCreateParams, r *JobCreateResult) {
	if row.Start != nil {
		if started := startedBy(row, r); started != nil {
			started.Since = row.Start.Since
			c.opts.Starter.Dispatch(*started)
			return
		}
		c.opts.Starter.Release()
	}
	if r.Err == nil && !r.Existed {
		c.opts.Signals.WorkReady()
	}
}

// startedBy finds the attempt that was started in the commit of its job. When the
// acknowledgement of that commit was lost, the job shows it: nobody else can have
// sent it, so it is ours to send.
func startedBy(row *JobCreateParams, r *JobCreateResult) *Claimed {
	if r.Started != nil || r.Err != nil || r.Existed || len(r.Job.Attempts) != 1 {
		return r.Started
	}
	a := r.Job.Attempts[0]
	if a.State != AttemptRunning || a.Worker != row.Start.Worker {
		return nil
	}
	job := *r.Job
	job.Input, job.Metadata = row.Input, row.Metadata
	return &Claimed{Job: &job, Attempt: a}
}
