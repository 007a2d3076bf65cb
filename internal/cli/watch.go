package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tmaxmax/go-sse"
	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

func jobsWatchCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "watch", ArgsUsage: "ID", Usage: "follow a job until it ends", Flags: clientFlags(),
		Description: "One line a change; with -o json or jsonl the job itself. A blocked job is followed\nuntil somebody resolves it. The exit code tells how it ended: 0 it succeeded, 1 it\ndid not.",
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the job's id")
			if err != nil {
				return err
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			w := &watcher{env: env, c: c, api: api, path: "/v1/jobs/" + url.PathEscape(id) + "/events"}
			job, err := w.follow(ctx)
			if err != nil {
				return err
			}
			return exitOfJob(env, &job)
		},
	}
}

// watcher follows one job over as many connections as it takes.
type watcher struct {
	env  Env
	c    *cli.Command
	api  *apiClient
	path string
	last string // id of the last event seen
	job  jobView
}

// follow prints every change until the job ends.
func (w *watcher) follow(ctx context.Context) (jobView, error) {
	for failures := 0; ; {
		seen, err := w.stream(ctx)
		switch {
		case w.job.State.Terminal():
			return w.job, nil
		case ctx.Err() != nil:
			return w.job, ctx.Err()
		case err != nil && !errors.Is(err, errUnreachable):
			return w.job, err
		case seen:
			failures = 0
		}
		if failures++; failures > maxSends {
			return w.job, cmp.Or(err, fmt.Errorf("%w: the stream breaks off every time", errUnreachable))
		}
		select {
		case <-time.After(jitter(failures)):
		case <-ctx.Done():
		}
	}
}

// stream prints what one connection brings. seen says that it brought something.
func (w *watcher) stream(ctx context.Context) (seen bool, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if w.last != "" {
		header.Set("Last-Event-ID", w.last)
	}
	res, err := w.api.send(ctx, request{method: http.MethodGet, path: w.path, header: header})
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		got, err := readProblem(res)
		if err == nil && got.Status >= http.StatusInternalServerError {
			return false, fmt.Errorf("%w: %w", errUnreachable, got)
		}
		return false, errors.Join(err, got)
	}
	for event, err := range sse.Read(res.Body, &sse.ReadConfig{MaxEventSize: maxAnswerBytes}) {
		if err != nil {
			return seen, nil // broken off: the next connection goes on
		}
		if event.Type != "job" {
			continue
		}
		if err := w.show(event); err != nil {
			return seen, err
		}
		seen = true
	}
	return seen, nil
}

func (w *watcher) show(event sse.Event) error {
	job, err := decodeJob([]byte(event.Data))
	if err != nil {
		return err
	}
	if w.last != "" && job.Revision == w.job.Revision {
		return nil // the snapshot of a new connection
	}
	w.last, w.job = event.LastEventID, job
	if w.c.String("output") != formTable {
		return printJSONLine(w.env.Stdout, []byte(event.Data))
	}
	line := fmt.Sprintf("%s %s %s", w.env.NowFunc().UTC().Format(time.RFC3339), clean(job.ID), job.describe())
	if n := len(job.Attempts); n > 0 && job.State != onejob.JobQueued {
		last := job.Attempts[n-1]
		line += clean(fmt.Sprintf(" attempt %d at %s: %s", last.Number, last.Target, last.State))
	}
	_, err = fmt.Fprintln(w.env.Stdout, line)
	return err
}
