package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// proxyPostgres puts a proxy before the server of a URL, which tells p of every
// COMMIT before it is passed on, and returns the URL of the proxy. It speaks no TLS.
func proxyPostgres(ctx context.Context, to string, p *point) (string, error) {
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := u.Host
	u.Host = listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(ctx, client, server, p)
		}
	}()
	return u.String(), nil
}

// pass passes one connection on.
func pass(ctx context.Context, client net.Conn, address string, p *point) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	s := &session{point: p, prepared: map[string]verb{}}
	go func() {
		defer func() { _ = client.Close() }()
		_ = s.answers(client, server)
	}()
	_ = s.requests(server, client) // one of the two has left
}

// session is one connection's talk, as far as it is about commits.
type session struct {
	*point
	prepared map[string]verb // by the names of prepared statements
	begun    bool            // a transaction is open that COMMIT ends
	written  bool            // by a statement that is a transaction of its own
	open     atomic.Int64    // executions without an answer
}

// verb is what a statement does, as far as it is about commits.
type verb int

const (
	reads verb = iota
	writes
	begins
	commits
	gives // up what was begun
)

// What the protocol calls its messages, as far as they are looked at.
const (
	typeQuery    = 'Q'
	typeParse    = 'P'
	typeBind     = 'B'
	typeExecute  = 'E'
	typeSync     = 'S' // ends, and commits, what is not in a transaction of its own
	typeComplete = 'C'
	typeEmpty    = 'I'
	typeError    = 'E' // of the server
)

// requests passes on what the client says.
func (s *session) requests(server io.Writer, client io.Reader) error {
	if err := passStartup(server, client); err != nil {
		return err
	}
	for {
		m, err := readMessage(client)
		if err != nil {
			return err
		}
		if s.commit(m) && s.armed() {
			s.settle(server)
			s.aboutToCommit()
		}
		if m.kind() == typeExecute {
			s.open.Add(1)
		}
		if _, err := server.Write(m); err != nil {
			return err
		}
	}
}

// settle waits until the server has done all that came before, so that it is
// written when the process dies.
func (s *session) settle(server io.Writer) {
	if _, err := server.Write([]byte{'H', 0, 0, 0, 4}); err != nil { // Flush
		return
	}
	for until := time.Now().Add(5 * time.Second); s.open.Load() > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}

// answers passes on what the server says.
func (s *session) answers(client io.Writer, server io.Reader) error {
	for {
		m, err := readMessage(server)
		if err != nil {
			return err
		}
		switch m.kind() {
		case typeComplete, typeEmpty, typeError:
			s.open.Add(-1)
		}
		if _, err := client.Write(m); err != nil {
			return err
		}
	}
}

// commit reports whether a message has the server commit: COMMIT, or the end of a
// statement that writes outside of any transaction.
func (s *session) commit(m message) bool {
	first, rest, _ := bytes.Cut(m[headerSize:], []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch m.kind() {
	case typeQuery:
		return verbOf(first) == commits
	case typeParse: // the statement's name and text
		s.prepared[string(first)] = verbOf(second)
	case typeBind: // the portal's and the statement's name
		return s.bound(s.prepared[string(second)])
	case typeSync:
		ends := s.written
		s.written = false
		return ends
	}
	return false
}

func (s *session) bound(v verb) (commit bool) {
	switch v {
	case begins:
		s.begun = true
	case commits:
		s.begun = false
		return true
	case gives:
		s.begun = false
	case writes:
		s.written = !s.begun
	case reads:
	}
	return false
}

func verbOf(text []byte) verb {
	words := strings.ToUpper(string(text))
	switch {
	case strings.TrimRight(words, "; ") == "COMMIT":
		return commits
	case strings.HasPrefix(words, "BEGIN"):
		return begins
	case strings.HasPrefix(words, "ROLLBACK"):
		return gives
	case strings.Contains(words, "INSERT INTO") || strings.Contains(words, "UPDATE "):
		return writes
	}
	return reads
}

// message is one message with its header: a letter and the length of what follows.
type message []byte

const (
	headerSize      = 5
	maxMessageBytes = 64 << 20
)

func (m message) kind() byte { return m[0] }

var errTooLong = errors.New("a message is too long")

func readMessage(r io.Reader) (message, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	return readRest(r, header, binary.BigEndian.Uint32(header[1:]))
}

// passStartup passes on the first message, which has no letter.
func passStartup(w io.Writer, r io.Reader) error {
	length := make([]byte, 4)
	if _, err := io.ReadFull(r, length); err != nil {
		return err
	}
	m, err := readRest(r, length, binary.BigEndian.Uint32(length))
	if err != nil {
		return err
	}
	_, err = w.Write(m)
	return err
}

// readRest reads what follows a header whose length counts itself.
func readRest(r io.Reader, header []byte, length uint32) (message, error) {
	if length < 4 || length > maxMessageBytes {
		return nil, errTooLong
	}
	m := make(message, len(header)+int(length)-4)
	copy(m, header)
	_, err := io.ReadFull(r, m[len(header):])
	return m, err
}
