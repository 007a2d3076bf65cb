package wire

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// EventStream is the media type of answers that arrive as server-sent events.
const EventStream = "text/event-stream"

// Assembler adds up the events of one answer to what it would have been as a whole.
type Assembler interface {
	// Add takes the next event. Data that cannot be read is no reason to end: what
	// lacks its end says so by itself.
	Add(event Event) Step
	// Document is the answer as one JSON document, as far as it came.
	Document() []byte
}

// Event is one server-sent event.
type Event struct {
	Name string // empty: it has none
	Body []byte
}

// Step is what an event means to the answer.
type Step int

// The steps.
const (
	// StepOn : nothing of the answer yet that could be shown, such as its head.
	StepOn Step = iota
	// StepShows : the answer has begun; from here on it can be shown.
	StepShows
	// StepEnds : the end that a whole answer has.
	StepEnds
	// StepFails : the provider says that the work failed.
	StepFails
)

// maxRest is how much may follow the last event.
const maxRest = 4 << 10

// drainTime is how long the connection of a stream gets to end after its last event,
// so that it can be used again.
const drainTime = 250 * time.Millisecond

// streams reports whether the answer to m arrives in pieces.
func streams(m *Message, resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return m.Assembler != nil && err == nil && kind == EventStream && resp.StatusCode >= 200 && resp.StatusCode <= 299
}

// stream reads an answer that arrives as events, and hands on each piece of it that
// can be shown: whole events, from the first that has something of the answer on, and
// never the one that says that it is whole. That is for who settles the attempt.
func (x *exchange) stream(resp *http.Response, m *Message, seen *Seen) {
	seen.framed = true // an end of its own says where it is
	limit, buffer := x.client.opts.MaxResponseBytes, make([]byte, 16<<10)
	s := reading{assembler: m.Assembler}
	for !s.over() && seen.Trouble == "" {
		n, err := resp.Body.Read(buffer)
		if left := limit - int64(len(s.body)); int64(n) > left {
			seen.Trouble, n = TroubleTooLarge, int(left)
		}
		s.take(buffer[:n])
		shown := s.show()
		unwanted := len(shown) > 0 && x.req.Chunk != nil && x.req.Chunk(shown) != nil
		switch {
		case s.over(): // it is there, whoever wants it
		case unwanted:
			seen.Trouble = TroubleUnwanted
		case err != nil && seen.Trouble == "":
			seen.Trouble = x.broken(err)
		}
	}
	if s.ended {
		s.body = append(s.body, rest(resp.Body)...)
	}
	seen.Body = s.body
	seen.assemble(&s)
}

// broken is why a stream ended before its end.
func (x *exchange) broken(err error) Trouble {
	switch {
	case x.ctx.Err() != nil:
		return TroubleSilence
	case errors.Is(err, io.EOF):
		return TroubleNoEnd
	}
	return TroubleTruncated
}

// assemble makes what came be read as if it had come whole.
func (s *Seen) assemble(r *reading) {
	s.document = r.assembler.Document()
	s.parse()
	if r.failed {
		s.Finding = FindingFailed
	}
}

// rest is what is left of a body whose last event has come, for a moment: it may end
// with another word, and a connection that is read to its end can be used again.
func rest(body io.ReadCloser) []byte {
	timer := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer timer.Stop()
	b, err := io.ReadAll(io.LimitReader(body, maxRest))
	if err != nil {
		return nil
	}
	return b
}

// reading is the state of a stream that is being read.
type reading struct {
	assembler Assembler
	body      []byte
	whole     int // bytes of body that are whole events
	line      int // where the line begins that was not read
	looked    int // bytes that were looked through for its end
	showable  int // of them, but for the last of a stream that is over
	shown     int // of those
	shows     bool
	ended     bool
	failed    bool
}

func (s *reading) over() bool { return s.ended || s.failed }

// take adds what was read, up to the event that ends the answer.
func (s *reading) take(b []byte) {
	s.body = append(s.body, b...)
	for !s.over() {
		end := s.eventEnd()
		if end == 0 {
			return
		}
		event := s.body[s.whole:end]
		if s.whole == 0 {
			event = bytes.TrimPrefix(event, []byte(byteOrderMark))
		}
		s.step(s.assembler.Add(parseEvent(event)))
		s.whole = end
		if !s.over() {
			s.showable = s.whole
		}
	}
}

func (s *reading) step(step Step) {
	switch step {
	case StepShows:
		s.shows = true
	case StepEnds:
		s.ended = true
	case StepFails:
		s.failed = true
	case StepOn:
	}
}

// show returns what can be shown and was not.
func (s *reading) show() []byte {
	if !s.shows {
		return nil
	}
	shown := s.body[s.shown:s.showable:s.showable]
	s.shown = s.showable
	return shown
}

// byteOrderMark may come before the first event.
const byteOrderMark = "\uFEFF"

// eventEnd is where the next event ends, the blank line after it included. Zero: it is
// not whole. No byte is looked at twice, in however small parts an event comes.
func (s *reading) eventEnd() int {
	for {
		length := bytes.IndexByte(s.body[s.looked:], '\n')
		if length < 0 {
			s.looked = len(s.body)
			return 0
		}
		end := s.looked + length
		line := s.body[s.line:end]
		s.line, s.looked = end+1, end+1
		if len(line) == 0 || string(line) == "\r" {
			return s.line
		}
	}
}

// parseEvent reads an event (WHATWG HTML, "Server-sent events"); its id and retry are
// for browsers.
func parseEvent(b []byte) (e Event) {
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Name = string(value)
		case "data":
			if e.Body != nil {
				e.Body = append(e.Body, '\n')
			}
			e.Body = append(e.Body, value...)
		}
	}
	return e
}

// Assemble adds up a stream of events that came whole. An answer that is none is
// returned as it is.
func Assemble(body []byte, a Assembler) ([]byte, error) {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return body, nil
	}
	s := reading{assembler: a}
	s.take(body)
	document := a.Document()
	if !s.ended || document == nil {
		return nil, errors.New("the stream of events adds up to no whole answer")
	}
	return document, nil
}
