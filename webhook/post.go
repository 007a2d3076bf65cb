package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is read of an endpoint's answer, which tells nothing but its status.
const (
	maxHeaderBytes = 32 << 10
	maxBodyBytes   = 16 << 10
	idleTimeout    = 30 * time.Second
	maxIdle        = 64
	maxIdlePerHost = 2
)

// newWire returns what sends requests of one scheme. It follows no redirect, asks no
// proxy, and connects to nothing that the guard refuses. Nil roots and a nil resolver
// are the system's.
func newWire(guard *Guard, scheme string, roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Control: guard.control(scheme), Resolver: resolver}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
	}
}

// answer is what an endpoint said.
type answer struct {
	status     int
	retryAfter time.Duration
}

// post sends a signed body once. An error says in a few words why no answer came,
// without the URL, which may hold a token.
func (s *Sender) post(ctx context.Context, e *Endpoint, id string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.New("its URL cannot be used")
	}
	req.GetBody = nil // sent once: net/http must not send it again by itself
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "onejob-webhook")
	now := s.opts.NowFunc()
	if err := Sign(req.Header, SignParams{ID: id, At: now, Body: body, Secrets: e.secrets()}); err != nil {
		return answer{}, err
	}
	resp, err := s.wires[req.URL.Scheme].RoundTrip(req)
	if err != nil {
		return answer{}, s.why(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBodyBytes)) // for the connection's sake; the status is the answer
	return answer{resp.StatusCode, retryAfter(resp.Header, now)}, nil
}

// why says in a few words what kept an answer from coming. What package net says
// would tell the URL, the addresses of our own name servers, and what names stand
// for inside our network.
func (s *Sender) why(err error) error {
	var unresolved *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var alert tls.AlertError
	var code syscall.Errno
	var network net.Error
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case errors.Is(err, context.Canceled):
		return errors.New("it was cut off by a stop of the sender")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("no answer within %s", s.opts.Timeout)
	case errors.As(err, &unresolved):
		return errors.New("its name could not be resolved")
	case errors.As(err, &untrusted):
		return fmt.Errorf("its certificate was not accepted: %s", short(untrusted.Err.Error()))
	case errors.As(err, &notTLS), errors.As(err, &alert):
		return errors.New("the TLS handshake failed")
	case errors.As(err, &code):
		return fmt.Errorf("the connection failed: %s", code.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection ended without an answer")
	}
	return errors.New("the answer was not HTTP, or the connection failed")
}

// short bounds what others may write into our records.
func short(text string) string {
	const most = 200
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
