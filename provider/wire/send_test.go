package wire_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

const hugeBody = 24 << 20 // more than the kernels on both sides take by themselves

func TestABodyCutShortWasNotExecuted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		streams bool
		want    proof
	}{
		{"at most targets", false, proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhasePartlySent, "cut_short"}},
		{"unless the target streams it", true, unknownAt(onejob.PhasePartlySent, "cut_short_streamed")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.ServeConn(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, make([]byte, 4096))
				providertest.Reset(conn)
			})
			sent := atomic.Bool{}
			caller := newCaller(t, srv.URL, wire.Options{StreamsBody: c.streams})
			_, err := caller.call(t.Context(), onejob.Request{Sent: func() { sent.Store(true) }}, wire.Message{Body: make([]byte, hugeBody)})
			hold(t, proofOf(onejob.Answer{}, err), c.want)
			var ce *onejob.CallError
			if errors.As(err, &ce) && (ce.Evidence.BytesWritten == 0 || ce.Evidence.BytesWritten >= hugeBody) {
				t.Errorf("bytes written = %d, want some", ce.Evidence.BytesWritten)
			}
			if sent.Load() {
				t.Error("Sent was called for a request that was cut short")
			}
		})
	}
}

func TestAnEarlyAnswerCountsAlthoughTheBodyIsNotOut(t *testing.T) {
	t.Parallel()
	srv := providertest.ServeConn(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 100))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, hugeBody/2))
	})
	got := proofOf(newCaller(t, srv.URL, wire.Options{}).post(t.Context(), strings.Repeat("x", hugeBody)))
	hold(t, got, proof{onejob.OutcomeRefused, onejob.NextNowhere, onejob.PhaseAnswered, "input_refused"})
}

func TestNothingLeavesAfterSendBy(t *testing.T) {
	t.Parallel()
	notSent := proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhaseNotSent, "send_by_passed"}
	serve := func(t *testing.T) *providertest.Server {
		return providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, okBody) })
	}
	t.Run("passed before", func(t *testing.T) {
		t.Parallel()
		srv := serve(t)
		c := newCaller(t, srv.URL, wire.Options{})
		got := proofOf(c.call(t.Context(), onejob.Request{SendBy: time.Now().Add(-time.Millisecond)}, wire.Message{Body: []byte(`{}`)}))
		hold(t, got, notSent)
		if srv.Connections() != 0 {
			t.Errorf("%d connections, want none", srv.Connections())
		}
	})
	t.Run("passed by the wall clock only", func(t *testing.T) {
		t.Parallel()
		srv := serve(t)
		var jump atomic.Bool
		c := newCaller(t, srv.URL, wire.Options{
			DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
				jump.Store(true) // the machine slept
				return new(net.Dialer).DialContext(ctx, network, address)
			},
			NowFunc: func() time.Time {
				if jump.Load() {
					return time.Now().Add(time.Hour)
				}
				return time.Now()
			},
		})
		got := proofOf(c.call(t.Context(), onejob.Request{SendBy: time.Now().Add(time.Minute)}, wire.Message{Body: []byte(`{}`)}))
		hold(t, got, notSent)
		if srv.Began() != 0 || !jump.Load() {
			t.Errorf("%d requests begun, dialled %t; want none, true", srv.Began(), jump.Load())
		}
	})
	t.Run("passed by the monotonic clock only", func(t *testing.T) {
		t.Parallel()
		srv := serve(t)
		still := time.Now()
		var dialled atomic.Bool
		c := newCaller(t, srv.URL, wire.Options{
			NowFunc: func() time.Time { return still }, // set back again and again
			DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
				for time.Since(still) < 300*time.Millisecond {
					time.Sleep(5 * time.Millisecond) // a slow network
				}
				dialled.Store(true)
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		})
		got := proofOf(c.call(t.Context(), onejob.Request{SendBy: still.Add(300 * time.Millisecond)}, wire.Message{Body: []byte(`{}`)}))
		hold(t, got, notSent)
		if srv.Began() != 0 || !dialled.Load() {
			t.Errorf("%d requests begun, dialled %t; want none, true", srv.Began(), dialled.Load())
		}
	})
	t.Run("passes in the middle of the body", func(t *testing.T) {
		t.Parallel()
		srv := providertest.ServeConn(t, func(net.Conn) { <-t.Context().Done() })
		c := newCaller(t, srv.URL, wire.Options{})
		body := make([]byte, hugeBody)
		sendBy := time.Now().Add(500 * time.Millisecond)
		got := proofOf(c.call(t.Context(), onejob.Request{SendBy: sendBy, SendWithin: time.Minute}, wire.Message{Body: body}))
		hold(t, got, proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhasePartlySent, "cut_short"})
	})
	t.Run("a write that blocks is bounded by send_within", func(t *testing.T) {
		t.Parallel()
		srv := providertest.ServeConn(t, func(conn net.Conn) { <-t.Context().Done() })
		c := newCaller(t, srv.URL, wire.Options{})
		got := proofOf(c.call(t.Context(), onejob.Request{SendWithin: 100 * time.Millisecond}, wire.Message{Body: make([]byte, hugeBody)}))
		hold(t, got, proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhasePartlySent, "cut_short"})
	})
	t.Run("the answer may come later", func(t *testing.T) {
		t.Parallel()
		sendBy := time.Now().Add(200 * time.Millisecond)
		srv := providertest.Serve(t, func(x *providertest.Exchange) {
			for time.Now().Before(sendBy.Add(50 * time.Millisecond)) {
				time.Sleep(5 * time.Millisecond) // the provider at work
			}
			x.Answer(200, okBody)
		})
		c := newCaller(t, srv.URL, wire.Options{})
		got := proofOf(c.call(t.Context(), onejob.Request{SendBy: sendBy, SendWithin: 200 * time.Millisecond}, wire.Message{Body: []byte(`{}`)}))
		hold(t, got, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
	})
}

func TestGivingUpInTheMiddleOfTheBodySendsNoMoreOfIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan int64, 1)
	release := make(chan struct{})
	srv := providertest.ServeConn(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 4096))
		cancel()
		<-release
		n, _ := io.Copy(io.Discard, conn)
		read <- n + 4096
	})
	_, err := newCaller(t, srv.URL, wire.Options{}).post(ctx, strings.Repeat("x", hugeBody))
	hold(t, proofOf(onejob.Answer{}, err), proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhasePartlySent, "cut_short"})
	close(release)
	var ce *onejob.CallError
	if n := <-read; errors.As(err, &ce) && n > ce.Evidence.BytesWritten {
		t.Errorf("the provider read %d bytes, evidence says %d were written", n, ce.Evidence.BytesWritten)
	}
	if ce == nil || !strings.Contains(ce.Evidence.Error, "this side hung up before an answer came") {
		t.Errorf("the call ended with %v; want that this side hung up", ce)
	}
}

// slowWriter is a connection whose kernel takes what is written only when the
// writer has been told to stop.
type slowWriter struct {
	net.Conn
	began   chan struct{}
	stopped chan struct{}
	stop    sync.Once
}

func (w *slowWriter) Write(p []byte) (int, error) {
	close(w.began)
	<-w.stopped
	return len(p), nil
}

func (w *slowWriter) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		w.stop.Do(func() { close(w.stopped) })
	}
	return nil
}

// net/http waits for its writer, too, when a round trip fails, but does not
// promise to.
func TestSealingWaitsForTheWriteUnderWay(t *testing.T) {
	t.Parallel()
	request := "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
	w := &slowWriter{began: make(chan struct{}), stopped: make(chan struct{})}
	written, write, seal := wire.Sealed(w, int64(len("{}")))
	var writing sync.WaitGroup
	writing.Go(func() {
		if _, err := write([]byte(request)); err != nil {
			t.Errorf("the write under way: %v", err)
		}
	})
	<-w.began
	seal()
	if got := written(); got != int64(len(request)) {
		t.Errorf("sealed at %d bytes while %d were being written", got, len(request))
	}
	writing.Wait()
	if n, err := write([]byte("more")); n != 0 || err == nil {
		t.Errorf("a write after the seal wrote %d bytes, error %v; want none and an error", n, err)
	}
}

// deadWriter is a connection that dies when a second request is written to it.
type deadWriter struct {
	net.Conn
	writes atomic.Int64
}

func (d *deadWriter) Write(p []byte) (int, error) {
	if d.writes.Add(1) > 1 {
		return 0, syscall.EPIPE
	}
	return d.Conn.Write(p)
}

func TestAStalePooledConnectionProvesThatNothingLeft(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, okBody) })
	c := newCaller(t, srv.URL, wire.Options{DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		return &deadWriter{Conn: raw}, err
	}})
	hold(t, proofOf(c.post(t.Context(), `{}`)), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
	hold(t, proofOf(c.post(t.Context(), `{}`)), proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhaseNotSent, "nothing_written"})
	hold(t, proofOf(c.post(t.Context(), `{}`)), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
	if srv.Executions() != 2 {
		t.Errorf("executed %d times, want 2", srv.Executions())
	}
}

func TestSentIsCalledOnceAndBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, okBody) })
	c := newCaller(t, srv.URL, wire.Options{})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			var sent atomic.Int64
			a, err := c.call(t.Context(), onejob.Request{Sent: func() { sent.Add(1) }}, wire.Message{Body: make([]byte, 100_000)})
			if err != nil || sent.Load() != 1 || a.Evidence.SentMS == 0 {
				t.Errorf("Sent was called %d times, evidence %+v, error %v", sent.Load(), a.Evidence, err)
			}
		})
	}
	calls.Wait()
	if srv.Executions() != 20 {
		t.Errorf("executed %d times, want 20", srv.Executions())
	}
}

func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	proxy := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, `{"proxied":true}`) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	c := newCaller(t, "http://target.invalid/", wire.Options{DialFunc: func(_ context.Context, _, address string) (net.Conn, error) {
		if !strings.HasPrefix(address, "target.invalid:") {
			t.Errorf("dialled %s", address)
		}
		return nil, syscall.ECONNREFUSED
	}})
	got := proofOf(c.post(t.Context(), `{}`))
	if got.Outcome != onejob.OutcomeNotExecuted || proxy.Connections() != 0 {
		t.Errorf("proof = %+v with %d connections to the proxy", got, proxy.Connections())
	}
}
