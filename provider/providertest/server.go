package providertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Server is a fake provider on a real port that answers with raw bytes, so that
// it can also answer wrongly, in part or not at all. Close is done by the test.
type Server struct {
	URL string

	listener    net.Listener
	executions  atomic.Int64
	connections atomic.Int64
	began       atomic.Int64

	mu    sync.Mutex
	open  map[net.Conn]struct{}
	asked []Asked
	done  bool
}

// Asked is one request that arrived whole.
type Asked struct {
	Method, Path string
	Header       http.Header
	Body         string
}

// Exchange is one request that arrived whole and is to be answered. Number counts
// from 1 on its connection.
type Exchange struct {
	Asked
	Number int

	conn net.Conn
	over bool
}

// Serve starts a provider that does the work of every request that arrives whole
// and then answers it.
func Serve(t testing.TB, answer func(*Exchange)) *Server {
	t.Helper()
	return start(t, func(s *Server, c net.Conn) { s.converse(c, answer) })
}

// ServeConn starts a provider that is given each connection as it comes.
func ServeConn(t testing.TB, serve func(net.Conn)) *Server {
	t.Helper()
	return start(t, func(_ *Server, c net.Conn) { serve(c) })
}

func start(t testing.TB, serve func(*Server, net.Conn)) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), listener: l, open: map[net.Conn]struct{}{}}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			if !s.keep(c) {
				return
			}
			served.Go(func() {
				defer func() { _ = c.Close() }()
				serve(s, c)
			})
		}
	})
	t.Cleanup(func() {
		s.Close()
		served.Wait()
	})
	return s
}

func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		_ = c.Close()
		return false
	}
	s.open[c] = struct{}{}
	return true
}

// Close stops listening and cuts every connection.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	_ = s.listener.Close()
	for c := range s.open {
		_ = c.Close()
	}
}

// Executions counts the requests that arrived whole: the work that was done.
func (s *Server) Executions() int64 { return s.executions.Load() }

// Connections counts the connections.
func (s *Server) Connections() int64 { return s.connections.Load() }

// Began counts the connections and further requests of which a byte arrived.
func (s *Server) Began() int64 { return s.began.Load() }

// Asked lists the requests that arrived whole.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked(nil), s.asked...)
}

func (s *Server) converse(c net.Conn, answer func(*Exchange)) {
	r := bufio.NewReader(c)
	for number := 1; ; number++ {
		if _, err := r.Peek(1); err != nil {
			return
		}
		s.began.Add(1)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		s.executions.Add(1)
		x := &Exchange{Number: number, conn: c, Asked: Asked{req.Method, req.URL.RequestURI(), req.Header, string(body)}}
		s.mu.Lock()
		s.asked = append(s.asked, x.Asked)
		s.mu.Unlock()
		if answer(x); x.over {
			return
		}
	}
}

// Write sends raw bytes. It reports false once the client has hung up.
func (x *Exchange) Write(raw string) bool {
	_, err := io.WriteString(x.conn, raw)
	return err == nil
}

// Answer sends a well-formed answer with a body of JSON. Further header lines may
// be given whole.
func (x *Exchange) Answer(status int, body string, lines ...string) {
	x.AnswerAs("application/json", status, body, lines...)
}

// AnswerAs is [Exchange.Answer] for another content type.
func (x *Exchange) AnswerAs(contentType string, status int, body string, lines ...string) {
	lines = append([]string{
		fmt.Sprintf("HTTP/1.1 %d %s", status, http.StatusText(status)),
		"Content-Type: " + contentType, fmt.Sprintf("Content-Length: %d", len(body)),
	}, lines...)
	x.Write(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// Close ends the connection cleanly.
func (x *Exchange) Close() {
	x.over = true
	_ = x.conn.Close()
}

// Reset ends the connection with a reset.
func (x *Exchange) Reset() {
	x.over = true
	Reset(x.conn)
}

// Wait waits until the client hangs up.
func (x *Exchange) Wait() {
	x.over = true
	_, _ = io.Copy(io.Discard, x.conn)
}

// Reset ends a TCP connection with a reset.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
