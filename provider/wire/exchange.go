package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onejob-dev/onejob"
)

// maxRefusalBytes is how much of a body that is no success is read.
const maxRefusalBytes = 64 << 10

// exchange is one request on the wire and its answer.
type exchange struct {
	client     *Client
	req        onejob.Request
	ctx        context.Context
	started    time.Time
	budget     time.Duration // from started to send_by, by the monotonic clock
	bodyLength int64

	conn      *conn // nil: none was got
	reused    bool
	connected atomic.Int64 // nanoseconds since started; zero: did not happen
	sent      atomic.Int64
	firstByte atomic.Int64
	read      atomic.Int64

	mu       sync.Mutex
	sealed   bool
	late     bool  // a write was refused because send_by had passed
	written  int64 // bytes the kernel took
	headLeft int   // bytes of the blank line still to come; see headEnd
	head     int64 // length of the header; zero: not all written
}

// headEnd ends the header of an HTTP/1.1 request.
const headEnd = "\r\n\r\n"

// roundTrip sends m and reads the answer into seen.
func (x *exchange) roundTrip(ctx context.Context, m Message, seen *Seen) {
	x.ctx = ctx
	if x.tooLate() {
		seen.Trouble, x.late = TroubleTooLate, true
		return
	}
	hr, err := x.request(ctx, m)
	if err != nil {
		seen.Trouble = TroubleNoRequest
		return
	}
	resp, err := x.transport(m).RoundTrip(hr) //nolint:bodyclose // answer closes it
	if err != nil {
		x.seal()
		x.explain(err, seen)
		return
	}
	x.answer(resp, &m, seen)
	x.seal()
}

// transport picks a fresh connection for a request without a body: net/http
// sends such a request again when a kept-alive connection turns out dead.
func (x *exchange) transport(m Message) *http.Transport {
	if len(m.Body) == 0 {
		return x.client.fresh
	}
	return x.client.pooled
}

// request has no GetBody, so that net/http cannot send the body a second time.
func (x *exchange) request(ctx context.Context, m Message) (*http.Request, error) {
	u, err := url.Parse(m.URL)
	if err != nil {
		return nil, err
	}
	hr := &http.Request{
		Method: m.Method, URL: u, Host: u.Host, Header: m.Header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if hr.Method == "" {
		hr.Method = http.MethodPost
	}
	if hr.Header == nil {
		hr.Header = http.Header{}
	}
	if len(m.Body) > 0 {
		hr.Body = io.NopCloser(bytes.NewReader(m.Body))
		hr.ContentLength = int64(len(m.Body))
	}
	return hr.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              x.gotConn,
		GotFirstResponseByte: func() { x.firstByte.Store(x.elapsed()) },
	})), nil
}

func (x *exchange) elapsed() int64 { return max(1, int64(time.Since(x.started))) }

// gotConn runs before the first byte is written.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.connected.Store(x.elapsed())
	c, ok := info.Conn.(*conn)
	if !ok {
		return
	}
	x.conn, x.reused = c, info.Reused
	if err := c.take(x); err != nil {
		x.close()
	}
}

// writeDeadline is when the last byte must be out. The zero time is no deadline.
func (x *exchange) writeDeadline() time.Time {
	deadline := x.req.SendBy
	if within := x.req.SendWithin; within > 0 {
		if end := time.Now().Add(within); deadline.IsZero() || end.Before(deadline) {
			deadline = end
		}
	}
	return deadline
}

// tooLate holds send_by against the monotonic clock and the wall clock: one of
// them stands still while a machine sleeps, the other can be set back.
func (x *exchange) tooLate() bool {
	if x.req.SendBy.IsZero() {
		return false
	}
	return time.Since(x.started) >= x.budget || !x.client.opts.NowFunc().Round(0).Before(x.req.SendBy.Round(0))
}

// mayWrite says whether another byte may leave.
func (x *exchange) mayWrite() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.sealed:
		return errSealed
	case x.tooLate():
		x.late = true
		return errTooLate
	}
	return x.ctx.Err()
}

// wrote counts p, and tells when the whole request is with the kernel.
func (x *exchange) wrote(p []byte) {
	x.mu.Lock()
	before := x.complete()
	x.count(p)
	done := x.complete() && !before
	x.mu.Unlock()
	if done {
		x.sent.Store(x.elapsed())
		if x.req.Sent != nil {
			x.req.Sent()
		}
	}
}

// count finds the end of the header on the way. Its four bytes overlap only with
// themselves, so that a plain match suffices.
func (x *exchange) count(p []byte) {
	for i, b := range p {
		if x.head > 0 {
			break
		}
		switch b {
		case headEnd[x.headLeft]:
			x.headLeft++
		case headEnd[0]:
			x.headLeft = 1
		default:
			x.headLeft = 0
		}
		if x.headLeft == len(headEnd) {
			x.head = x.written + int64(i) + 1
		}
	}
	x.written += int64(len(p))
}

// complete reports whether the whole request has been written. x.mu is held.
func (x *exchange) complete() bool { return x.head > 0 && x.written >= x.head+x.bodyLength }

func (x *exchange) close() {
	x.mu.Lock()
	x.sealed = true
	x.mu.Unlock()
}

// seal ends the exchange: no byte of it leaves any more, and its counts stand.
func (x *exchange) seal() {
	x.close()
	if x.conn == nil {
		return
	}
	x.mu.Lock()
	done := x.complete()
	x.mu.Unlock()
	if !done {
		x.conn.quiet()
	}
}

// answer reads what came. A body that is no success is cut at a small size and
// never decides whether the answer was complete.
func (x *exchange) answer(resp *http.Response, m *Message, seen *Seen) {
	defer func() { _ = resp.Body.Close() }()
	seen.Status, seen.Header = resp.StatusCode, resp.Header
	if streams(m, resp) {
		x.stream(resp, m, seen)
		return
	}
	limit := int64(maxRefusalBytes)
	if seen.is2xx() {
		limit = x.client.opts.MaxResponseBytes
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	seen.framed = resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0
	switch {
	case int64(len(body)) > limit:
		seen.Trouble, body = TroubleTooLarge, body[:limit]
	case err != nil && x.ctx.Err() != nil:
		seen.Trouble = TroubleSilence
	case err != nil:
		seen.Trouble = TroubleTruncated
	}
	seen.Body = body
	seen.parse()
}

// explain says what a failed round trip shows. The counts are final.
func (x *exchange) explain(err error, seen *Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seen.Error = describe(err)
	switch {
	case x.conn == nil && isCertificate(err):
		seen.Trouble = TroubleCertificate
	case x.conn == nil && x.connected.Load() == 0:
		seen.Trouble = TroubleNoConnection
	case x.written == 0 && x.late:
		seen.Trouble = TroubleTooLate
	case x.written == 0:
		seen.Trouble = TroubleNothingWritten
	case !x.complete():
		seen.Trouble = TroubleCutShort
	case x.ctx.Err() != nil || errors.Is(err, context.Canceled):
		seen.Trouble = TroubleSilence
	default:
		seen.Trouble = TroubleNoAnswer
	}
}

// testify fills in the evidence.
func (x *exchange) testify(seen *Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seen.Phase = x.phase(seen)
	e := &seen.Evidence
	e.Status = seen.Status
	e.Error = seen.scrub(seen.Error)
	e.BytesWritten, e.BytesRead = x.written, x.read.Load()
	e.ReusedConnection = x.reused
	e.ConnectedMS, e.SentMS = milliseconds(x.connected.Load()), milliseconds(x.sent.Load())
	e.FirstByteMS, e.EndedMS = milliseconds(x.firstByte.Load()), milliseconds(x.elapsed())
	e.ProviderRequestID = seen.requestID()
}

func (x *exchange) phase(seen *Seen) onejob.Phase {
	switch {
	case seen.Status != 0:
		return onejob.PhaseAnswered
	case x.written == 0:
		return onejob.PhaseNotSent
	case !x.complete():
		return onejob.PhasePartlySent
	}
	return onejob.PhaseSent
}

// milliseconds rounds up: zero means that it did not happen.
func milliseconds(ns int64) int64 {
	return int64((time.Duration(ns) + time.Millisecond - 1) / time.Millisecond)
}
