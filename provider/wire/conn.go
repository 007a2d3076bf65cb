package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a connection that refuses to write.
var (
	errTooLate = errors.New("send_by has passed")
	errSealed  = errors.New("the exchange is over")
)

// conn is a connection that knows whose request it carries. It counts the bytes
// that the provider can read: over TLS those inside, of records wholly written.
type conn struct {
	net.Conn
	tcp net.Conn

	x       atomic.Pointer[exchange]
	writing sync.Mutex // held over each write, so that an exchange can wait it out

	delivery time.Duration // the kernel's bound, as last set; one exchange at a time takes it
}

// Write writes nothing unless the exchange that holds the connection may still send.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	x := c.x.Load()
	if x == nil {
		return 0, errSealed
	}
	if err := x.mayWrite(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	x.wrote(p[:n])
	return n, err
}

// Read counts what comes in.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if x := c.x.Load(); x != nil && n > 0 {
		x.read.Add(int64(n))
	}
	return n, err
}

// take gives the connection to an exchange, and what is written until sendBy no
// longer than within to be delivered by the kernel.
func (c *conn) take(x *exchange) error {
	c.x.Store(x)
	if err := c.Conn.SetWriteDeadline(x.writeDeadline()); err != nil {
		return err
	}
	within := max(x.req.SendWithin, 0)
	if within == c.delivery { // as for every request but the first of a target's
		return nil
	}
	if err := limitDelivery(c.tcp, within); err != nil {
		return err
	}
	c.delivery = within
	return nil
}

// quiet makes sure that nothing more of an exchange leaves: a write under way is
// broken off and waited for.
func (c *conn) quiet() {
	_ = c.tcp.SetWriteDeadline(time.Unix(1, 0))
	c.writing.Lock()
	defer c.writing.Unlock()
}

func (c *Client) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := c.opts.DialFunc(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, tcp: raw}, nil
}

// dialTLS shakes hands itself, so that a failure is known to come before the
// request, and what is written is counted inside the encryption.
func (c *Client) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := c.opts.DialFunc(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := c.opts.TLS.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	shaken := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	if err := shaken.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &conn{Conn: shaken, tcp: raw}, nil
}
