package sim

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// Canary is the secret-looking text that the fault "header_canary" puts into the
// headers of an answer: it must turn up in no log and no record.
const Canary = "canary-7f3e5d1c-do-not-store"

// followedPrefix marks a request as the following of a redirect.
const followedPrefix = "/sim/followed"

const page = "<!doctype html><title>Maintenance</title><h1>We will be right back</h1>\n"

// send answers whole.
func (c *call) send(a answer) {
	if events := a.events(); events != nil {
		c.start(a, -1)
		c.sendEvents(events, 0)
		return
	}
	c.start(a, len(a.Body))
	_, _ = c.w.Write(a.Body)
}

// start sends the head of an answer that promises length bytes; endless if negative.
func (c *call) start(a answer, length int) {
	header := c.w.Header()
	for name, values := range a.Header {
		header[name] = values
	}
	if c.kept != nil {
		header.Set("Idempotent-Replayed", "true")
	}
	if length >= 0 && a.Status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	c.status = a.Status
	c.w.WriteHeader(a.Status)
}

func sendAnswer(c *call) {
	if c.inBackground() {
		sendAccepted(c)
		return
	}
	c.send(c.answer)
}

func sendLate(c *call) {
	c.pause(orDelay(c.step.Delay, time.Second))
	c.send(c.answer)
}

func sendReleased(c *call) {
	select {
	case <-c.released:
		c.send(c.answer)
	case <-c.r.Context().Done():
		c.abort()
	case <-c.p.closing:
		c.abort()
	}
}

func sendAccepted(c *call) {
	if c.kept != nil || c.isLookup() {
		c.send(c.answer)
		return
	}
	a := c.dialect.progress(c.id(), "queued", c.p.now())
	if !c.inBackground() {
		a.Status = http.StatusAccepted
	}
	c.send(a)
}

// inBackground reports whether the request asks for work without a connection.
func (c *call) inBackground() bool {
	return !c.isLookup() && c.dialect.background != nil && c.dialect.background(c.read.Bytes())
}

func sendDrip(c *call) {
	c.start(c.answer, len(c.answer.Body))
	for i := range c.answer.Body {
		c.pause(orDelay(c.step.Delay, 10*time.Millisecond))
		c.writeNow(c.answer.Body[i : i+1])
	}
}

func sendNothing(c *call) {
	select {
	case <-c.r.Context().Done():
	case <-c.p.closing:
	}
	c.abort()
}

func sendHalf(c *call) {
	c.start(c.answer, len(c.answer.Body)+1) // more than half is missing, even of an empty body
	c.writeNow(c.answer.Body[:len(c.answer.Body)/2])
	c.abort()
}

func sendCloseDelimited(c *call) {
	conn := c.hijack()
	c.status = http.StatusOK
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
	_, _ = conn.Write(c.answer.Body[:len(c.answer.Body)/2])
	_ = conn.Close()
}

func sendHTML(c *call) {
	c.send(answer{http.StatusOK, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, []byte(page)})
}

func sendEmpty(c *call) {
	c.send(answer{http.StatusOK, jsonHeader(), nil})
}

func sendGarbage(c *call) {
	c.send(answer{http.StatusOK, jsonHeader(), []byte(`{"id": "` + c.id() + `", "status": succee`)})
}

// sendHuge pads a JSON object; an endless one never ends its string.
func sendHuge(c *call) {
	before, after := `{"padding":"`, `"}`
	left, length := c.step.Bytes-int64(len(before)+len(after)), int(c.step.Bytes)
	if c.step.Bytes == 0 {
		left, length = 1<<62, -1
	}
	left = max(left, 0)
	if length >= 0 {
		length = max(length, len(before)+len(after))
	}
	c.start(answer{http.StatusOK, jsonHeader(), nil}, length)
	_, _ = io.WriteString(c.w, before)
	chunk := make([]byte, 64<<10)
	for i := range chunk {
		chunk[i] = 'x'
	}
	for ; left > 0; left -= int64(len(chunk)) {
		chunk = chunk[:min(left, int64(len(chunk)))]
		c.writeNow(chunk)
	}
	_, _ = io.WriteString(c.w, after)
}

func sendCanary(c *call) {
	header := c.w.Header()
	header.Set("Authorization", "Bearer "+Canary)
	header.Set("Set-Cookie", "session="+Canary)
	header.Set("X-Api-Key", Canary)
	c.send(c.answer)
}

func sendStatus(c *call) {
	if !c.answersWell() && (c.isLookup() || c.answer.Status == 0) {
		c.answer = c.failed()
	}
	c.send(c.answer)
}

func sendErrorBody(c *call) {
	if c.isLookup() {
		c.answer = c.dialect.failure(failure{Status: http.StatusOK, Code: c.step.Code, Message: "the work failed"})
	}
	c.send(c.answer)
}

func sendRedirect(c *call) {
	header := jsonHeader()
	header.Set("Location", followedPrefix+c.entry.Path)
	c.send(answer{http.StatusTemporaryRedirect, header, nil})
}

// writeNow writes and flushes, and aborts if that fails or the provider closes.
func (c *call) writeNow(b []byte) {
	_, err := c.w.Write(b)
	if err == nil {
		err = http.NewResponseController(c.w).Flush()
	}
	if err != nil || c.p.closed() {
		c.abort()
	}
}

// pause waits before an answer. Once the client has left there is nobody to answer.
func (c *call) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.r.Context().Done():
		c.abort()
	case <-c.p.closing:
		c.abort()
	}
}

// sleepThrough waits before the work, whether or not the client has left.
func (c *call) sleepThrough(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.p.closing:
		c.abort()
	}
}

// id is the provider's id for the work of this call.
func (c *call) id() string {
	c.p.ledger.mu.Lock()
	defer c.p.ledger.mu.Unlock()
	return c.receipt.entry.ID
}
