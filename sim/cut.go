package sim

import (
	"io"
	"net"
	"net/http"
)

// cutHard resets the connection.
func cutHard(c *call) {
	conn := c.hijack()
	setNoLinger(conn)
	_ = conn.Close()
}

// cutClean closes the connection; nothing is unread, so the client sees an end
// of file and no reset.
func cutClean(c *call) { _ = c.hijack().Close() }

// cutMidRequest reads a little of the body first, so that the request is surely
// on its way.
func cutMidRequest(c *call) {
	_, _ = io.CopyN(&c.read, c.r.Body, 1)
	c.note(func(e *Entry) { e.BodyBytes = int64(c.read.Len()) })
	cutHard(c)
}

func cutAfterContinue(c *call) { c.cutAfter("HTTP/1.1 100 Continue\r\n\r\n") }

func cutStatusLine(c *call) { c.cutAfter("HTTP/1.1 20") }

func (c *call) cutAfter(text string) {
	conn := c.hijack()
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// hijack takes the raw connection, or aborts where there is none.
func (c *call) hijack() net.Conn {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		c.abort()
	}
	return conn
}

// abort ends the handler and with it the connection, unanswered.
func (c *call) abort() { panic(http.ErrAbortHandler) }
