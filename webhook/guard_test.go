package webhook_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/webhook"
)

func guard(t *testing.T, allow ...string) *webhook.Guard {
	t.Helper()
	var prefixes []netip.Prefix
	for _, p := range allow {
		prefixes = append(prefixes, netip.MustParsePrefix(p))
	}
	g, err := webhook.NewGuard(prefixes)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Every special-purpose range that IANA keeps, its edges, and the ways to write or to
// carry an address that gets a filter to look the other way.
func TestOnlyPublicAddressesAreReached(t *testing.T) {
	t.Parallel()

	tests := map[string]bool{ // is it reached by https?
		// Public, and next to what is not.
		"8.8.8.8": true, "1.1.1.1": true, "9.255.255.255": true, "11.0.0.0": true,
		"100.63.255.255": true, "100.128.0.0": true, "126.255.255.255": true, "128.0.0.0": true,
		"169.253.255.255": true, "169.255.0.0": true, "172.15.255.255": true, "172.32.0.0": true,
		"192.0.1.0": true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.20.0.0": true,
		"203.0.112.255": true, "203.0.114.0": true, "223.255.255.255": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001:81b::200e": true, "2001:4860:4860::8888": true, "2001:200::1": true,
		"2003::1": true, "3ffe::1": true, "::ffff:8.8.8.8": true,

		"0.0.0.0": false, "0.255.255.255": false, // this network
		"10.0.0.0": false, "10.255.255.255": false, "172.16.0.0": false, "172.31.255.255": false, "192.168.0.0": false, "192.168.255.255": false, // private
		"100.64.0.0": false, "100.127.255.255": false, // carrier-grade NAT
		"127.0.0.1": false, "127.255.255.255": false, // loopback
		"169.254.0.0": false, "169.254.169.254": false, "169.254.255.255": false, // link-local, and the clouds' metadata
		"100.100.100.200": false, "192.0.0.192": false, // metadata elsewhere
		"192.0.0.0": false, "192.0.0.170": false, "192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, // protocols, documentation
		"192.31.196.1": false, "192.52.193.1": false, "192.88.99.1": false, "192.175.48.1": false, // AS112, AMT, 6to4 relay
		"198.18.0.0": false, "198.19.255.255": false, // benchmarks
		"224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false, // multicast, reserved, broadcast

		"::": false, "::1": false, "::2": false, "::7f00:1": false, "::8.8.8.8": false, // unspecified, loopback, IPv4-compatible
		"::ffff:127.0.0.1": false, "::ffff:7f00:1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, // IPv4 in IPv6
		"::ffff:0:127.0.0.1": false, "::ffff:0:8.8.8.8": false, // IPv4-translated
		"64:ff9b::7f00:1": false, "64:ff9b::8.8.8.8": false, "64:ff9b:1::7f00:1": false, // NAT64
		"2002:7f00:1::": false, "2002:a00:1::1": false, "2001:0:7f00:1::": false, "2001::1": false, // 6to4, Teredo
		"2001:2::1": false, "2001:3::1": false, "2001:10::1": false, "2001:20::1": false, "2001:1ff:ffff::1": false, // protocols
		"2001:db8::1": false, "3fff::1": false, "2620:4f:8000::1": false, // documentation, AS112
		"100::1": false, "5f00::1": false, "4000::1": false, "1fff::1": false, // discard-only, segment routing, not given out
		"fc00::1": false, "fd00:ec2::254": false, "fdff::1": false, // unique local, and metadata
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false, "ff0e::1": false, // link-local, site-local, multicast
		"::1%eth0": false, "::ffff:127.0.0.1%eth0": false, "fd00::1%1": false, "ff02::1%eth0": false, // zoned
	}
	if len(tests) < 60 {
		t.Fatalf("only %d addresses", len(tests))
	}
	g := guard(t)
	for text, reached := range tests {
		a, err := netip.ParseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Check("https", a)
		if (err == nil) != reached || (err != nil && !errors.Is(err, webhook.ErrAddress)) {
			t.Errorf("https to %s: %v; want reached: %t", text, err, reached)
		}
		if err := g.Check("http", a); !errors.Is(err, webhook.ErrAddress) {
			t.Errorf("plain http to %s: %v; want ErrAddress", text, err)
		}
	}
}

func TestWhatTheOperatorAllowsIsReachedBesides(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, allow, address string
		reached              bool
	}{
		{"Loopback", "127.0.0.0/8", "127.0.0.1", true},
		{"LoopbackAsIPv6", "127.0.0.0/8", "::ffff:127.0.0.1", true},
		{"LoopbackAsZonedIPv6", "127.0.0.0/8", "::ffff:127.0.0.1%eth0", true},
		{"LoopbackOnly", "127.0.0.0/8", "10.0.0.1", false},
		{"OneAddress", "10.0.0.7/32", "10.0.0.7", true},
		{"NotItsNeighbour", "10.0.0.7/32", "10.0.0.8", false},
		{"ZonedLinkLocal", "fe80::/10", "fe80::1%eth0", true},
		{"ZonedUniqueLocal", "fd00::/8", "fd00::1%2", true},
		{"ZonedLoopback", "::1/128", "::1%lo", true},
		{"AllOfIPv6IsNotNAT64", "::/0", "64:ff9b::7f00:1", false},
		{"AllOfIPv6IsNot6to4", "::/0", "2002:7f00:1::", false},
		{"AllOfIPv6IsNotTeredo", "::/0", "2001:0:7f00:1::", false},
		{"AllOfIPv6IsNotTranslated", "::/0", "::ffff:0:7f00:1", false},
		{"AllOfIPv6IsNotIPv4", "::/0", "::ffff:127.0.0.1", false},
		{"AllOfIPv6", "::/0", "fd00::1", true},
		{"NAT64ByName", "64:ff9b::/96", "64:ff9b::808:808", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			g, a := guard(t, tt.allow), netip.MustParseAddr(tt.address)
			for _, scheme := range []string{"https", "http"} {
				if err := g.Check(scheme, a); (err == nil) != tt.reached {
					t.Errorf("%s to %s with %s allowed: %v; want reached: %t", scheme, a, tt.allow, err, tt.reached)
				}
			}
		})
	}
	if err := guard(t, "10.0.0.0/8").Check("https", netip.MustParseAddr("8.8.8.8")); err != nil {
		t.Errorf("public addresses besides: %v", err)
	}
}

func TestANetworkThatCouldNotBeMeantIsRefused(t *testing.T) {
	t.Parallel()

	for prefix, says := range map[netip.Prefix]string{
		{}: "empty",
		netip.MustParsePrefix("::ffff:127.0.0.0/104"): "write it as IPv4",
		netip.MustParsePrefix("10.1.2.3/8"):           "write 10.0.0.0/8",
	} {
		if _, err := webhook.NewGuard([]netip.Prefix{prefix}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", prefix, err, says)
		}
	}
}

func TestAURLThatNothingCouldBeSentToIsRefusedBeforehand(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, url, allow, says string }{
		{"Name", "https://app.example/hooks?token=t", "", ""},
		{"PublicAddress", "https://8.8.8.8:8443/", "", ""},
		{"AllowedAddress", "http://127.0.0.1:9/", "127.0.0.0/8", ""},
		{"PlainName", "http://receiver.internal/", "10.0.0.0/8", ""},
		{"PlainNameAndNothingAllowed", "http://receiver.internal/", "", "none is allowed"},
		{"PlainPublicAddress", "http://8.8.8.8/", "10.0.0.0/8", "allowed networks only"},
		{"PrivateAddress", "https://10.0.0.1/", "", "not a public one"},
		{"PrivateIPv6", "https://[::ffff:10.0.0.1]/", "", "not a public one"},
		{"Zoned", "https://[fe80::1%25eth0]/", "", "not a public one"},
		{"Relative", "/hooks", "", "absolute"},
		{"Scheme", "ftp://app.example/", "", "absolute"},
		{"NoHost", "https:///hooks", "", "absolute"},
		{"Credentials", "https://user:pass@app.example/", "", "credentials"},
		{"Fragment", "https://app.example/#x", "", "fragment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var allow []string
			if tt.allow != "" {
				allow = append(allow, tt.allow)
			}
			err := guard(t, allow...).CheckURL(tt.url)
			switch {
			case tt.says == "" && err != nil:
				t.Errorf("%s: %v; want it taken", tt.url, err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("%s: %v; want %q", tt.url, err, tt.says)
			}
		})
	}
}
