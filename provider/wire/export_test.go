package wire

import (
	"context"
	"net"
	"time"
)

// Sealed returns an exchange on c: how much of it is written, how to write, and
// how to end it.
func Sealed(c net.Conn, bodyLength int64) (written func() int64, write func([]byte) (int, error), seal func()) {
	x := &exchange{client: New(Options{}), ctx: context.Background(), started: time.Now(), bodyLength: bodyLength}
	x.conn = &conn{Conn: c, tcp: c}
	x.conn.x.Store(x)
	return func() int64 {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.written
	}, x.conn.Write, x.seal
}

// Reader returns what takes the parts of a stream as they come.
func Reader(a Assembler) (take func([]byte)) {
	r := &reading{assembler: a}
	return r.take
}
