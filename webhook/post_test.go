package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

// serving starts a real sender that may go to loopback, and has one job told to url.
func serving(t *testing.T, url string, change func(*webhook.Options)) *world {
	t.Helper()
	o := webhook.Options{
		Endpoints: []webhook.Endpoint{at(url)}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Timeout: 5 * time.Second, Schedule: []time.Duration{time.Hour}, PollInterval: 50 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	w := open(t, o, nil)
	w.run()
	t.Cleanup(func() { w.stop() })
	w.end("k1")
	return w
}

// tried waits for the first try of the one delivery to be over.
func (w *world) tried() onejob.Delivery {
	w.t.Helper()
	w.until("the first try is over", func() bool { return w.only().Tries > 0 })
	return w.only()
}

func TestARedirectIsAFailedTryAndIsNotFollowed(t *testing.T) {
	t.Parallel()

	for _, status := range []int{301, 302, 303, 307, 308} {
		var followed atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
		defer elsewhere.Close()
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		defer server.Close()
		w := serving(t, server.URL, nil)
		d := w.tried()
		if d.State != onejob.DeliveryPending || d.Status != status || d.Error != fmt.Sprintf("it answered %d; redirects are not followed", status) || followed.Load() != 0 {
			t.Errorf("%d: recorded %+v, followed %d times; want a failed try, not followed", status, d, followed.Load())
		}
	}
}

func TestWhatKeepsAnAnswerFromComingIsSaidWithoutTheURL(t *testing.T) {
	t.Parallel()

	const path = "/CANARY?token=CANARY"
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection would go unseen
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	tests := []struct {
		name, url, want string
		change          func(*webhook.Options)
	}{
		{"Silence", silent.URL, "no answer within 100ms", func(o *webhook.Options) { o.Timeout = 100 * time.Millisecond }},
		{"NobodyThere", closed.URL, "the connection failed: connection refused", nil},
		{"HangsUp", raw(t, ""), "the connection ended without an answer", nil},
		{"NotHTTP", raw(t, "SSH-2.0-CANARY\r\n\r\n"), "the answer was not HTTP, or the connection failed", nil},
		{"EndlessHeader", raw(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("CANARY", 20_000)), "the answer was not HTTP, or the connection failed", nil},
		{"Certificate", untrusted.URL, "its certificate was not accepted: x509: ", nil},
		{"NotTLS", strings.Replace(plain.URL, "http:", "https:", 1), "the TLS handshake failed", nil},
		{"NotAllowed", "https://localhost:1", "webhooks may not go to this address", func(o *webhook.Options) { o.Allow = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			w := serving(t, tt.url+path, tt.change)
			d := w.tried()
			if d.State != onejob.DeliveryPending || !strings.HasPrefix(d.Error, tt.want) || d.Status != 0 {
				t.Errorf("recorded %+v; want %q", d, tt.want)
			}
			if all := w.log.String() + d.Error; strings.Contains(all, "CANARY") {
				t.Errorf("the log or the error tells what it must not:\n%s", all)
			}
		})
	}
}

func TestANameThatCannotBeResolvedIsAFailedTry(t *testing.T) {
	t.Parallel()

	w := open(t, webhook.Options{Endpoints: []webhook.Endpoint{at("https://no-such-name.example/CANARY")}}, nil)
	w.sender.ResolveBy(&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("10.9.8.7 is down")
	}})
	w.run()
	defer w.stop()
	w.end("k1")
	if d := w.tried(); d.Error != "its name could not be resolved" {
		t.Errorf("recorded %+v; want no word of our name servers", d)
	}
	if all := w.log.String(); strings.Contains(all, "CANARY") || strings.Contains(all, "10.9.8.7") {
		t.Errorf("the log tells what it must not:\n%s", all)
	}
}

// raw listens for connections, reads a request and writes bytes.
func raw(t *testing.T, answer string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestAnEndlessAnswerIsADeliveryAndIsNotRead(t *testing.T) {
	t.Parallel()

	var written atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for r.Context().Err() == nil {
			n, err := rw.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	w := serving(t, server.URL, nil)
	if d := w.tried(); d.State != onejob.DeliveryDelivered {
		t.Errorf("recorded %+v; want it delivered: the status says so", d)
	}
	if n := written.Load(); n > 32<<20 {
		t.Errorf("%d bytes were taken; want a bound", n)
	}
}

func TestByHTTPSToAnAuthorityThatIsTrusted(t *testing.T) {
	t.Parallel()

	var got atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header.Clone()) }))
	defer server.Close()
	w := serving(t, server.URL, func(o *webhook.Options) {
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(server.Certificate())
	})
	if d := w.tried(); d.State != onejob.DeliveryDelivered {
		t.Fatalf("recorded %+v; want it delivered", d)
	}
	h, _ := got.Load().(http.Header)
	if h.Get("Content-Type") != "application/json" || h.Get("webhook-id") == "" || h.Get("Authorization") != "" || h.Get("Accept-Encoding") != "" {
		t.Errorf("headers %v", h)
	}
}

// A connection that dies under a second request has net/http send it again by itself,
// unless it cannot get the body a second time.
func TestAConnectionThatDiesIsNotSentOverTwice(t *testing.T) {
	t.Parallel()

	var requests atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for r := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if requests.Add(1) > 1 {
						return // the second and all later ones are read, acted on, and hung up on
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}()
		}
	}()
	w := serving(t, "http://"+l.Addr().String(), nil)
	w.tried()
	w.end("k2")
	w.until("the second is tried", func() bool { return w.deliveries()[0].Tries == 1 })
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for two tries; want 2", n)
	}
}

// A name that stands for a public address when it is checked, and for a private one
// when it is dialled, is how such filters are got round.
func TestANameThatChangesItsMindIsJudgedWhenItIsDialled(t *testing.T) {
	t.Parallel()

	var inside, outside atomic.Int32
	count := func(n *atomic.Int32) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			rw.Header().Set("Connection", "close") // so that the name is asked for again
		})
	}
	public := httptest.NewServer(count(&outside))
	defer public.Close()
	_, port, err := net.SplitHostPort(public.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	private := &http.Server{Handler: count(&inside), ReadHeaderTimeout: time.Second}
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("no second loopback address: %v", err)
	}
	go func() { _ = private.Serve(l) }()
	defer func() { _ = private.Close() }()

	var asked atomic.Int32
	resolver := nameServer(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("127.0.0.1")
		}
		return netip.MustParseAddr("127.0.0.2")
	})
	o := webhook.Options{
		Endpoints: []webhook.Endpoint{at("http://rebinding.example:" + port)}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Timeout: 5 * time.Second, Schedule: []time.Duration{time.Hour}, PollInterval: 50 * time.Millisecond,
	}
	w := open(t, o, nil)
	w.sender.ResolveBy(resolver)
	w.run()
	defer w.stop()
	w.end("k1")
	if d := w.tried(); d.State != onejob.DeliveryDelivered {
		t.Fatalf("the first: %+v; want it delivered", d)
	}
	w.end("k2")
	w.until("the second is tried", func() bool { return w.deliveries()[0].Tries == 1 })
	if d := w.deliveries()[0]; d.Error != "webhooks may not go to this address" || inside.Load() != 0 || outside.Load() != 1 {
		t.Errorf("recorded %+v; %d requests inside, %d outside; want it refused, 0 and 1", d, inside.Load(), outside.Load())
	}
}

// nameServer answers every question for an IPv4 address, and returns what asks it.
func nameServer(t *testing.T, address func() netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answerTo(buf[:n], address); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answerTo answers a DNS query with one address, and with none if it is not for IPv4.
func answerTo(query []byte, address func() netip.Addr) []byte {
	const header = 12
	end := bytes.IndexByte(query[header:], 0)
	if end < 0 || len(query) < header+end+5 {
		return nil
	}
	question := query[header : header+end+5]
	answer := append([]byte{}, query[:2]...)
	isIPv4 := binary.BigEndian.Uint16(question[end+1:]) == 1
	answer = append(answer, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	answer = append(answer, question...)
	if isIPv4 {
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name asked for, A, IN, lives for no time
		a4 := address().As4()
		answer = append(answer, a4[:]...)
	}
	return answer
}
