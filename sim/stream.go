package sim

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
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

// events are those of a stream; none of another answer.
func (a answer) events() [][]byte {
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	return slices.DeleteFunc(bytes.SplitAfter(a.Body, []byte("\n\n")), func(event []byte) bool { return len(event) == 0 })
}

// sendEvents sends events, with a pause before each.
func (c *call) sendEvents(events [][]byte, pause time.Duration) {
	for _, event := range events {
		c.pause(pause)
		c.writeNow(event)
	}
}

func sendTrickle(c *call) {
	events := c.answer.events()
	if events == nil {
		c.send(c.answer)
		return
	}
	c.start(c.answer, -1)
	c.sendEvents(events, orDelay(c.step.Delay, 10*time.Millisecond))
}

func sendStalled(c *call) {
	events := c.answer.events()
	if events == nil {
		sendReleased(c)
		return
	}
	c.start(c.answer, -1)
	half := len(events) / 2
	c.sendEvents(events[:half], 0)
	select {
	case <-c.released:
		c.sendEvents(events[half:], 0)
	case <-c.r.Context().Done():
		c.abort()
	case <-c.p.closing:
		c.abort()
	}
}

// sendCutStream ends the body well, as a proxy does that has lost its upstream.
func sendCutStream(c *call) {
	events := c.answer.events()
	if events == nil {
		sendHalf(c)
		return
	}
	c.start(c.answer, -1)
	c.sendEvents(events[:len(events)/2], 0)
}

func sendFailedStream(c *call) {
	failed := c.dialect.failure(failure{Status: http.StatusOK, Code: c.step.Code, Message: "the work failed"})
	events := c.answer.events()
	if events == nil {
		c.send(failed)
		return
	}
	c.start(c.answer, -1)
	c.sendEvents(events[:len(events)/2], 0)
	c.writeNow(fmt.Appendf(nil, "event: error\ndata: %s\n\n", failed.Body))
}
