package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/onejob-dev/onejob"
)

// eventWriteTimeout bounds how long a reader of a stream may take for one event.
const eventWriteTimeout = 30 * time.Second

// watchJob serves GET /v1/jobs/{id}/events: the job as it is now, then each
// change, until it has ended. States in between may merge. Whoever comes back
// starts with a snapshot, whatever Last-Event-ID says: that is all there is to
// resume from.
func (a *api) watchJob(w http.ResponseWriter, r *http.Request) error {
	scope, id := exchangeOf(r).caller.scope, r.PathValue("id")
	job, err := a.client.Get(r.Context(), scope, id)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	ctx, done, ok := a.hold(w, r, 0)
	if !ok {
		return &onejob.Error{Code: onejob.CodeOverloaded, Message: "there are as many streams as the server can hold", RetryAfter: pollAfter}
	}
	defer done()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or proxies hold events back
	s := stream{api: a, w: w, rc: http.NewResponseController(w)}
	s.follow(ctx, scope, job)
	return nil
}

// stream is one reader of server-sent events.
type stream struct {
	api *api
	w   http.ResponseWriter
	rc  *http.ResponseController
}

// follow writes until the job has ended, the reader is gone or the server stops.
// Nothing is answered after the first byte: a reader that misses the end comes back.
func (s *stream) follow(ctx context.Context, scope string, job *onejob.Job) {
	for {
		if s.send(job) != nil || job.State.Terminal() {
			return
		}
		next, err := s.next(ctx, scope, job)
		if err != nil || next == nil {
			return
		}
		job = next
	}
}

// next waits for the job's next revision, and shows signs of life until then. It
// returns nil when the stream should end.
func (s *stream) next(ctx context.Context, scope string, job *onejob.Job) (*onejob.Job, error) {
	for ctx.Err() == nil && !s.api.opts.DrainingFunc() {
		beat, cancel := context.WithTimeout(ctx, s.api.opts.Heartbeat)
		seen, err := s.api.client.Watch(beat, scope, job.ID, job.Revision)
		cancel()
		if err != nil || seen.Revision > job.Revision {
			return seen, err
		}
		if ctx.Err() == nil {
			if err := s.write([]byte(":\n\n")); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil //nolint:nilnil // no news, and none to come
}

func (s *stream) send(job *onejob.Job) error {
	body, err := encodeJob(job)
	if err != nil {
		return err
	}
	event := []byte("event: job\nid: " + strconv.FormatInt(job.Revision, 10) + "\n")
	return s.write(append(appendData(event, body), '\n'))
}

// appendData writes a value as lines of data. Line breaks in JSON are white space.
func appendData(event, body []byte) []byte {
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	body = bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		event = append(event, "data: "...)
		event = append(event, line...)
		event = append(event, '\n')
	}
	return event
}

func (s *stream) write(b []byte) error {
	writeWithin(s.w, eventWriteTimeout)
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

func watchJobDoc() operation {
	return operation{
		id: "watchJob", summary: "Follow a job by server-sent events",
		description: "Each event is named job, its id is the revision, its data the job. The first is the job as it is now; the stream ends after the terminal one. States in between may merge.",
		headers:     []header{lastEventIDHeaderDoc},
		answers:     []answer{{status: 200, says: "A stream of events", contentType: "text/event-stream"}},
		problems:    []onejob.Code{onejob.CodeNotFound},
	}
}
