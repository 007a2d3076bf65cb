package frontdoor

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

const eventStream = "text/event-stream"

// stream serves a call whose answer is to come in pieces: what is kept of it from its
// first byte on, and then what comes. The end of an answer is shown once it counts. It
// reports, as serve does, whether that is all that the call can ask for.
func (d *doors) stream(w http.ResponseWriter, r *http.Request, v httpapi.Visit, c recognised) (whole bool, err error) {
	ctx, done, err := v.Hold(w, r, 0)
	if err != nil {
		return false, err
	}
	defer done()
	f := d.opts.Client.Follow(v.Owner, c.job)
	defer f.Stop()
	s := &shown{w: w, r: r, visit: v, follower: f, heartbeat: d.opts.Heartbeat, enoughFunc: d.answerable, heldFunc: d.opts.HeldFunc, eventsFunc: c.events()}
	if err := s.follow(ctx, d.longest(v, r.Header)); err != nil {
		return false, s.fail(err)
	}
	return s.end()
}

// shown is an answer that is shown as it comes.
type shown struct {
	w         http.ResponseWriter
	r         *http.Request
	visit     httpapi.Visit
	follower  *onejob.Follower
	heartbeat time.Duration
	// enoughFunc reports whether holding on brings nothing of a job at all.
	enoughFunc func(*onejob.Job) bool
	// heldFunc reports whether a call of the job's is under way in this process.
	heldFunc func(jobID string) bool
	// eventsFunc makes the stream of an answer that came whole. Nil: nobody can.
	eventsFunc func(whole []byte) ([]byte, error)
	begun      bool   // the answer's head is out: what goes wrong now is an event
	answered   bool   // something of the answer is out
	part       []byte // of an event whose end has not come
}

// follow shows what comes until that is all, the caller leaves, or nothing has come
// for longest.
func (s *shown) follow(ctx context.Context, longest time.Duration) error {
	for last := time.Now(); ctx.Err() == nil; {
		beat, cancel := context.WithTimeout(ctx, min(s.heartbeat, longest))
		piece, err := s.follower.Next(beat, s.enough)
		cancel()
		switch {
		case err != nil:
			return err
		case len(piece) > 0:
			last = time.Now()
			s.show(piece)
		case s.enough(s.follower.Job()):
			if _, over, err := conclude(ctx, s.follower.Job(), s.enough, s.follower.Look); over || err != nil {
				return err
			}
		case time.Since(last) >= longest:
			return nil
		case ctx.Err() == nil: // a sign of life, which is a comment to whoever reads events
			s.begin(eventStream)
			s.write([]byte(":\n\n"))
		}
	}
	return nil
}

// show sends what whole events there are by now: a long one is kept in parts, and nothing
// of ours may come between them.
func (s *shown) show(piece []byte) {
	seen := max(0, len(s.part)-len("\n\r")) // and has no end
	s.part = append(s.part, piece...)
	end := eventsEnd(s.part[seen:])
	if end == 0 {
		return
	}
	s.begin(eventStream)
	s.tellLate(s.follower.DroppedParams())
	s.write(s.part[:seen+end])
	s.part, s.answered = s.part[seen+end:], true
}

// eventsEnd is where the last blank line ends; zero: there is none.
func eventsEnd(b []byte) (end int) {
	for _, blank := range []string{"\n\n", "\n\r\n"} {
		if at := bytes.LastIndex(b, []byte(blank)); at >= 0 {
			end = max(end, at+len(blank))
		}
	}
	return end
}

// enough reports whether holding on brings nothing. An answer that was begun to be shown
// and was cut off comes from nobody by itself, nor does one whose process is gone.
func (s *shown) enough(job *onejob.Job) bool {
	a := s.follower.Attempt()
	cut := a != nil && a.State == onejob.AttemptUnknown && (a.Outcome == onejob.OutcomeResultLost || !a.LeaseOverAt.IsZero() && !s.heldFunc(job.ID))
	return cut || s.enoughFunc(job)
}

// end shows the end of the answer, or says why there is none.
func (s *shown) end() (whole bool, err error) {
	job := s.follower.Job()
	if err := refusal(job); err != nil {
		return job.State.Terminal(), s.fail(err)
	}
	rest, err := s.follower.Rest()
	if err != nil {
		return false, s.fail(&onejob.Error{
			Code: onejob.CodeOutcomeUnknown, JobID: job.ID,
			Message: "the answer that began here was given up for another; ask again with the same idempotency key to get that from its first byte",
		})
	}
	contentType := job.Result.ContentType
	kind, _, err := mime.ParseMediaType(contentType)
	if s.eventsFunc != nil && kind != eventStream {
		if events, errEvents := s.eventsFunc(rest); errEvents == nil {
			rest, contentType, kind, err = events, eventStream, eventStream, nil
		}
	}
	if s.begun && (err != nil || kind != eventStream) {
		return false, s.fail(&onejob.Error{
			Code: onejob.CodeProviderFailed, JobID: job.ID,
			Message: "the answer is there, and it is no stream of events; ask again with the same idempotency key",
		})
	}
	s.begin(contentType)
	if a := winner(job); a != nil {
		s.tellLate(a.Evidence.DroppedParams)
	}
	s.write(append(s.part, rest...))
	return true, nil
}

// events is what makes a stream of an answer of the call's that came whole, as from a
// target that is translated to.
func (c *recognised) events() func([]byte) ([]byte, error) {
	if c.model.EventsFunc == nil {
		return nil
	}
	var asked struct {
		IncludeUsage bool `json:"include_usage"`
	}
	_ = json.Unmarshal(c.asked.StreamOptions, &asked) // what is no object asks for nothing
	return func(whole []byte) ([]byte, error) { return c.model.EventsFunc(whole, asked.IncludeUsage) }
}

// begin sends the head of the answer.
func (s *shown) begin(contentType string) {
	if s.begun {
		return
	}
	s.begun = true
	job, h := s.follower.Job(), s.w.Header()
	tell(h, job)
	if a := s.follower.Attempt(); a != nil {
		tellAttempt(h, a)
		tellDropped(h, s.follower.DroppedParams())
	}
	if contentType == "" {
		contentType = eventStream
	}
	h.Set("Content-Type", contentType)
	h.Set("X-Accel-Buffering", "no") // or proxies hold pieces back
	s.w.WriteHeader(http.StatusOK)
}

// tellLate tells in a comment before the answer what the head did not: a sign of life sent
// that before anybody had answered.
func (s *shown) tellLate(dropped string) {
	if dropped != "" && !s.answered && s.w.Header().Get(droppedHeader) == "" {
		s.write([]byte(": onejob-params-dropped: " + spelt(dropped) + "\n\n"))
	}
}

// pieceTimeout bounds how long a caller may take for one piece.
const pieceTimeout = 30 * time.Second

// write sends what is shown, in pieces that a slow line takes in time. A caller who is
// gone is seen by the context.
func (s *shown) write(shown []byte) {
	rc := http.NewResponseController(s.w)
	for piece := range slices.Chunk(shown, onejob.MaxChunkBytes) {
		_ = rc.SetWriteDeadline(time.Now().Add(pieceTimeout)) // writers in tests have none
		if _, err := s.w.Write(piece); err != nil {
			return
		}
		_ = rc.Flush()
	}
}

// fail says what went wrong: as an answer of its own or, after the head, as an event of
// the form that clients of both providers take for an error.
func (s *shown) fail(err error) error {
	job := s.follower.Job()
	if !s.begun {
		tell(s.w.Header(), job)
		s.w.Header().Set("Location", "/v1/jobs/"+job.ID)
		return err
	}
	s.write(append(append([]byte("event: error\ndata: "), s.visit.ErrorEvent(s.r, err)...), "\n\n"...))
	return nil
}
