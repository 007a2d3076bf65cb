package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrAddress says that a webhook may not go to an address.
var ErrAddress = errors.New("webhooks may not go to this address")

// Guard says where webhooks may go: by https to public addresses, and by https or
// http to those that the operator allows. Everything else is refused: what is
// private, local, shared, reserved or for documentation, and what a translator would
// turn into such an address. The zero value allows no more than public addresses.
type Guard struct{ allow []netip.Prefix }

// NewGuard returns a guard that allows the given networks besides public addresses.
// It returns an error for a network that could not be meant: an IPv4 one written as
// IPv6.
func NewGuard(allow []netip.Prefix) (*Guard, error) {
	for _, p := range allow {
		switch {
		case !p.IsValid():
			return nil, errors.New("an allowed network is empty")
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("the allowed network %s is IPv4 written as IPv6; write it as IPv4", p)
		case p != p.Masked():
			return nil, fmt.Errorf("the allowed network %s has bits beyond its length; write %s", p, p.Masked())
		}
	}
	return &Guard{allow: slices.Clone(allow)}, nil
}

// translated are the networks whose addresses carry an IPv4 address to somewhere
// else. An operator who allows a network around one of them has not allowed it.
func translated() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("::/96"),           // IPv4-compatible
		netip.MustParsePrefix("::ffff:0:0:0/96"), // IPv4-translated
		netip.MustParsePrefix("64:ff9b::/96"),    // NAT64
		netip.MustParsePrefix("64:ff9b:1::/48"),  // NAT64 within a network
		netip.MustParsePrefix("2001::/32"),       // Teredo
		netip.MustParsePrefix("2002::/16"),       // 6to4
	}
}

// plainly is the address itself: without a zone, which no prefix contains, and as
// IPv4 when it is IPv4 in IPv6's clothes.
func plainly(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// allows reports whether the operator allows an address.
func (g *Guard) allows(a netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool {
		return p.Contains(a) && !slices.ContainsFunc(translated(), func(t netip.Prefix) bool {
			return t.Contains(a) && p.Bits() < t.Bits()
		})
	})
}

// Check returns [ErrAddress] if webhooks may not go to an address by a scheme.
func (g *Guard) Check(scheme string, a netip.Addr) error {
	a = plainly(a)
	switch {
	case g.allows(a):
		return nil
	case scheme != "https":
		return fmt.Errorf("%w: plain http goes to allowed networks only", ErrAddress)
	case !isPublic(a):
		return fmt.Errorf("%w: it is not a public one", ErrAddress)
	}
	return nil
}

// isPublic reports whether an address is one of the internet's. What is not known to
// be is not.
func isPublic(a netip.Addr) bool {
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if slices.ContainsFunc(translated(), func(t netip.Prefix) bool { return t.Contains(a) }) {
		return false
	}
	return ssrf.New(ssrf.WithAnyPort()).SafeAddr(a) == nil
}

// CheckURL returns what is wrong with an endpoint's URL. A name in it is not looked
// up; what it stands for is checked whenever it is dialled.
func (g *Guard) CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return errors.New("it is not an absolute https URL")
	case u.User != nil:
		return errors.New("it holds credentials; what proves who sends is the signature")
	case u.Fragment != "":
		return errors.New("it has a fragment, which is never sent")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.Check(u.Scheme, a)
	}
	if u.Scheme == "http" && len(g.allow) == 0 {
		return fmt.Errorf("%w: plain http goes to allowed networks only, and none is allowed", ErrAddress)
	}
	return nil
}

// control is a dialer's last word before it connects: the name has been resolved,
// and this is the address that will be dialled.
func (g *Guard) control(scheme string) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("%w: it cannot be read", ErrAddress)
		}
		a, err := netip.ParseAddr(host)
		if err != nil || (network != "tcp4" && network != "tcp6") {
			return fmt.Errorf("%w: it cannot be read", ErrAddress)
		}
		return g.Check(scheme, a)
	}
}
