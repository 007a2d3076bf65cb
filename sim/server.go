package sim

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a provider on a TCP port of its own, speaking HTTP/1.1.
type Server struct {
	*Provider
	http *http.Server
	addr string

	mu       sync.Mutex
	listener net.Listener // nil while down
	inFlight sync.WaitGroup
}

// Start makes a provider and listens on addr, as in "127.0.0.1:8091"; empty is
// a free port of 127.0.0.1. It fails if the port is taken, and where
// [Provider.Err] reports an error.
func Start(addr string, opts Options) (*Server, error) {
	s := &Server{Provider: New(opts), addr: cmp.Or(addr, "127.0.0.1:0")}
	if err := s.Err(); err != nil {
		return nil, errors.Join(err, s.Provider.Close())
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ConnContext:       s.ConnContext,
		ReadHeaderTimeout: 10 * time.Second,
	}
	if err := s.Listen(); err != nil {
		return nil, errors.Join(err, s.Provider.Close())
	}
	return s, nil
}

// TestingT is the part of a testing.TB that [ForTest] needs.
type TestingT interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
	Cleanup(func())
}

// ForTest starts a server that is closed at the end of the test. It ends the
// test if that fails.
func ForTest(t TestingT, opts Options) *Server {
	t.Helper()
	s, err := Start("", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// URL is the address without a slash at the end, as in "http://127.0.0.1:40123".
// It stays the same while the server is down.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// StopListening closes the port: further dials are refused, open connections go
// on. It does nothing if the port is closed already.
func (s *Server) StopListening() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	l := s.listener
	s.listener = nil
	return l.Close()
}

// Listen opens the port again, at the same address. It does nothing if it is
// open, and fails if another process took it, or after Close.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() {
		return http.ErrServerClosed
	}
	if s.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.listener, s.addr = l, l.Addr().String()
	s.inFlight.Go(func() { _ = s.http.Serve(dropper{l, s.Provider}) }) // ends when l closes
	return nil
}

// CloseIdleConnections closes the kept-alive connections on which no request is
// being served, as a server does whose patience is at its end. Clients that
// reuse one afterwards find it stale.
func (s *Server) CloseIdleConnections() {
	s.http.SetKeepAlivesEnabled(false)
	s.http.SetKeepAlivesEnabled(true)
}

// Close ends everything: the port, the connections, the requests being held. It
// returns when the last handler has, with the error of [Provider.Err].
func (s *Server) Close() error {
	s.shut()
	s.mu.Lock() // whatever began before is waited for, nothing begins after
	s.listener = nil
	err := s.http.Close()
	s.mu.Unlock()
	s.inFlight.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil // it had stopped listening a moment before
	}
	return cmp.Or(s.Provider.Close(), err)
}

// serve plays the provider, unless the server is closing.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed() {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.inFlight.Add(1)
	s.mu.Unlock()
	defer s.inFlight.Done()
	s.ServeHTTP(w, r)
}

// conn is what a request knows of its connection.
type conn struct {
	number   int64
	requests atomic.Int64
}

type connKey struct{}

// ConnContext numbers a connection. It is for those who mount the provider in a
// server of their own: without it as [http.Server.ConnContext], entries have no
// connection number and the faults that need a reused connection do not fire.
func (p *Provider) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{number: p.conns.Add(1)})
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// dropper resets connections as they come, while the provider wants that.
type dropper struct {
	net.Listener
	p *Provider
}

func (d dropper) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || !d.p.takeDrop() {
			return c, err
		}
		setNoLinger(c)
		_ = c.Close()
	}
}

func (p *Provider) takeDrop() bool {
	for n := p.dropping.Load(); n > 0; n = p.dropping.Load() {
		if p.dropping.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// setNoLinger makes the close of a TCP connection a reset.
func setNoLinger(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
