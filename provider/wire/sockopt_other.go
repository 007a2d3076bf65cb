//go:build !linux

package wire

import (
	"net"
	"time"
)

// limitDelivery does nothing where the kernel cannot be told; quarantine has to
// allow for a late delivery there.
func limitDelivery(net.Conn, time.Duration) error { return nil }
