package webhook

import (
	"net"
	"net/http"
)

// OverWire has all requests go by one transport, which judges no address.
func (s *Sender) OverWire(wire http.RoundTripper) {
	for scheme := range s.wires {
		s.wires[scheme] = wire
	}
}

// ResolveBy has names looked up elsewhere.
func (s *Sender) ResolveBy(resolver *net.Resolver) {
	guard, _ := NewGuard(s.opts.Allow)
	for scheme := range s.wires {
		s.wires[scheme] = newWire(guard, scheme, s.opts.RootCAs, resolver)
	}
}
