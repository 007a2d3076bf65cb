package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// Defaults of [Options].
const (
	DefaultMaxResponseBytes = 8 << 20
	DefaultDialTimeout      = 10 * time.Second
)

const (
	maxIdleConns   = 64
	idleTimeout    = 30 * time.Second // shorter than servers keep theirs, so that few are stale
	maxHeaderBytes = 256 << 10
	keepAlive      = 15 * time.Second
)

// Options of a [Client]. The zero value is ready to use.
type Options struct {
	// MaxResponseBytes caps the body of an answer; what is longer is lost.
	// Zero or less: [DefaultMaxResponseBytes].
	MaxResponseBytes int64
	// DialTimeout bounds the connection and, apart from it, the TLS handshake.
	// Zero or less: [DefaultDialTimeout].
	DialTimeout time.Duration
	// Secrets are blotted out of whatever is kept of an exchange.
	Secrets []onejob.Secret
	// StreamsBody says that the target acts on a body before its end, so that
	// one cut short proves nothing.
	StreamsBody bool
	// TLS configures https. Nil: the system's roots, TLS 1.2 and up.
	TLS *tls.Config
	// DialFunc makes the connections, before TLS. Nil: a [net.Dialer]. A kernel
	// can be told to give up late only on a [net.TCPConn].
	DialFunc func(ctx context.Context, network, address string) (net.Conn, error)
	// NowFunc is the clock that SendBy is held against. Nil: [time.Now].
	NowFunc func() time.Time
}

// Client sends requests to one target. It is safe for concurrent use.
type Client struct {
	opts   Options
	pooled *http.Transport
	fresh  *http.Transport // a connection per request
	blot   *strings.Replacer
}

// New makes the client of one target.
func New(opts Options) *Client {
	if opts.MaxResponseBytes <= 0 {
		opts.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if opts.DialTimeout <= 0 {
		opts.DialTimeout = DefaultDialTimeout
	}
	if opts.DialFunc == nil {
		opts.DialFunc = (&net.Dialer{Timeout: opts.DialTimeout, KeepAlive: keepAlive}).DialContext
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	if opts.TLS == nil {
		opts.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c := &Client{opts: opts, blot: opts.blotter()}
	c.pooled = c.transport(false)
	c.fresh = c.transport(true)
	return c
}

// transport leaves Proxy nil: the environment has no say in where a job goes.
func (c *Client) transport(fresh bool) *http.Transport {
	t := &http.Transport{
		DialContext:            c.dialPlain,
		DialTLSContext:         c.dialTLS,
		DisableCompression:     true,
		DisableKeepAlives:      fresh,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// Close drops the idle connections. Exchanges under way are left alone.
func (c *Client) Close() {
	c.pooled.CloseIdleConnections()
	c.fresh.CloseIdleConnections()
}

// Message is the HTTP request of one attempt. Its URL and header come from the
// configuration and the attempt's own names, never from a caller's bytes.
type Message struct {
	Method string // empty: POST
	URL    string // http or https
	Header http.Header
	Body   []byte // nil or empty: a request without a body
	// KeySent says that the header or the body carries the provider key.
	KeySent bool
	// Secret is blotted out of what is kept, as [Options.Secrets] are. Empty: there is
	// none in this message alone.
	Secret onejob.Secret
	// Assembler says that the answer is to arrive as events, and adds them up. A server
	// that answers as a whole all the same is read so. Nil: it comes whole.
	Assembler Assembler
}

// Send puts m on the wire once and returns all that was seen. It does not fail:
// what went wrong is part of what was seen.
func (c *Client) Send(ctx context.Context, req onejob.Request, m Message) *Seen {
	x := &exchange{
		client: c, req: req, started: time.Now(), budget: req.SendBy.Sub(c.opts.NowFunc()), bodyLength: int64(len(m.Body)),
	}
	seen := &Seen{
		Effect:      cmp.Or(req.Effect, onejob.EffectExternal),
		KeySent:     m.KeySent,
		events:      m.Assembler != nil,
		StreamsBody: c.opts.StreamsBody,
		scrub:       c.scrub,
	}
	if m.Secret != "" {
		own := Options{Secrets: []onejob.Secret{m.Secret}}.blotter()
		seen.scrub = func(text string) string { return c.scrub(own.Replace(text)) }
	}
	x.roundTrip(ctx, m, seen)
	x.testify(seen)
	return seen
}
