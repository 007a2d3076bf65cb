package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/onejob-dev/onejob"
)

// pollAfter is when asking for an unfinished job again makes sense.
const pollAfter = time.Second

// settled reports whether waiting for a job is over: it ended, or only a person,
// a ruling or a certificate helps.
func settled(job *onejob.Job) bool {
	return job.State.Terminal() || job.State == onejob.JobBlocked
}

// untilFunc waits for a job until enough says so of it, or ctx ends.
type untilFunc func(ctx context.Context, enough func(*onejob.Job) bool) (*onejob.Job, error)

// watching waits for a job that was read. An owner "" sees every job.
func (a *api) watching(owner, id string) untilFunc {
	return func(ctx context.Context, enough func(*onejob.Job) bool) (*onejob.Job, error) {
		return a.client.WatchUntil(ctx, owner, id, enough)
	}
}

// waitSettled holds the request until the job is settled, if the caller prefers
// that and there is room.
func (a *api) waitSettled(w http.ResponseWriter, r *http.Request, job *onejob.Job, until untilFunc) (*onejob.Job, error) {
	wait := waitOf(r.Header)
	if wait == 0 {
		return job, nil
	}
	applied := "wait=" + strconv.Itoa(int(wait/time.Second))
	if settled(job) {
		w.Header().Set("Preference-Applied", applied)
		return job, nil
	}
	ctx, done, ok := a.hold(w, r, wait)
	if !ok {
		return job, nil
	}
	defer done()
	w.Header().Set("Preference-Applied", applied)
	return until(ctx, settled)
}

// writeJob answers with a job and its ETag. With 202 it says when to ask again.
func (a *api) writeJob(w http.ResponseWriter, status int, job *onejob.Job) error {
	body, err := encodeJob(job)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", etag(job))
	if status == http.StatusAccepted {
		h.Set("Location", "/v1/jobs/"+job.ID)
		h.Set("Retry-After", retryAfterSeconds(a.nextNews(job)))
	}
	write(w, status, "application/json", body)
	return nil
}

// nextNews is how long from now asking about a job again makes sense.
func (a *api) nextNews(job *onejob.Job) time.Duration {
	if job.State == onejob.JobQueued && job.RunAfter.After(job.CreatedAt) {
		return max(pollAfter, job.RunAfter.Sub(a.opts.NowFunc()))
	}
	return pollAfter
}

// statusOf is 200 for a job that has ended and 202 for one under way.
func statusOf(job *onejob.Job) int {
	if job.State.Terminal() {
		return http.StatusOK
	}
	return http.StatusAccepted
}

func (a *api) writeAttempt(w http.ResponseWriter, status int, t *onejob.Attempt) error {
	body, err := encodeAttempt(t)
	if err != nil {
		return err
	}
	write(w, status, "application/json", body)
	return nil
}
