package wire_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

func TestTheKernelDeliversNothingLaterThanSendWithin(t *testing.T) {
	t.Parallel()
	var dialled atomic.Pointer[net.TCPConn]
	got := make(chan int, 1)
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		raw, err := dialled.Load().SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				ms, _ := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, 0x12)
				got <- ms
			})
		}
		if err != nil {
			t.Errorf("control: %v", err)
			got <- 0
		}
		x.Answer(200, okBody)
	})
	c := newCaller(t, srv.URL, wire.Options{DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		if tcp, ok := raw.(*net.TCPConn); ok {
			dialled.Store(tcp)
		}
		return raw, err
	}})
	for _, within := range []time.Duration{7 * time.Second, 3 * time.Second} { // fresh and reused
		hold(t, proofOf(c.call(t.Context(), onejob.Request{SendWithin: within}, wire.Message{Body: []byte(`{}`)})), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
		if ms := <-got; ms != int(within.Milliseconds()) {
			t.Errorf("TCP_USER_TIMEOUT = %d ms, want %v", ms, within)
		}
	}
}
