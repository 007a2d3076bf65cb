package sim

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"unicode/utf8"
)

// stream collects server-sent events.
type stream struct {
	events bytes.Buffer
}

// data writes an event without a name.
func (s *stream) data(v any) { s.raw("data: " + string(jsonAnswer(0, v).Body) + "\n\n") }

// event writes an event with a name.
func (s *stream) event(name string, v any) {
	s.raw("event: " + name + "\n")
	s.data(v)
}

func (s *stream) raw(text string) { s.events.WriteString(text) }

func (s *stream) answer() answer {
	header := http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Cache-Control": {"no-cache"}}
	return answer{http.StatusOK, header, s.events.Bytes()}
}

// pieceBytes is about how long a streamed part is.
const pieceBytes = 12

// pieces cuts a text into parts, no character halved.
func pieces(text string) []string {
	var parts []string
	for len(text) > 0 {
		n := min(pieceBytes, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

// idOr is the id of an answer: as given, unless it is to be the request's own.
func (t *thought) idOr(id, prefix string) string {
	if t.repeatID {
		return prefix + hex.EncodeToString(t.digest[:])[:16]
	}
	return id
}

// sendEvents sends a stream event by event.
func (c *call) sendEvents(a answer) {
	c.start(a, -1)
	for event := range bytes.SplitAfterSeq(a.Body, []byte("\n\n")) {
		if len(event) > 0 {
			c.writeNow(event)
		}
	}
}
