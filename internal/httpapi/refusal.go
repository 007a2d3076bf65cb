package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/onejob-dev/onejob"
)

// Why a report does not count as its provider's.
const (
	refusedToken     = "token"     // it was not made by this instance for an attempt at that target
	refusedSignature = "signature" // it is not signed as the target signs
	refusedRate      = "rate"      // too many of either came from the same address
)

const (
	// refusalRate is how many reports a second an address may send that prove nothing,
	// and refusalBurst how many at once, before they are answered 429.
	refusalRate  = 1
	refusalBurst = 20
	// refusalSources bounds how many addresses are told apart.
	refusalSources = 10_000
	// refusalLogEvery is how often refusals are logged at most: whoever sends them
	// must not fill the disk.
	refusalLogEvery = time.Minute
)

// refusals answers reports that do not prove where they come from. Their address is
// held to a rate, so that nobody tries tokens by the million; one that proves itself
// is never held up, whoever shares its address. It is safe for concurrent use.
type refusals struct {
	log      *slog.Logger
	observer Observer
	nowFunc  func() time.Time

	mu sync.Mutex
	// Two generations: when the young one is full it becomes the old one, and
	// whoever is heard of again moves over.
	young, old map[netip.Prefix]*rate.Limiter
	loggedAt   time.Time
	unlogged   int
}

func newRefusals(opts *Options) *refusals {
	return &refusals{log: opts.Logger, observer: opts.Observer, nowFunc: opts.NowFunc, young: map[netip.Prefix]*rate.Limiter{}}
}

// refuse returns the answer to a report that proves nothing. All of them are alike
// but for the signature, which only somebody with a genuine token gets to.
func (f *refusals) refuse(r *http.Request, reason string) error {
	now := f.nowFunc()
	within := f.within(sourceOf(r), now)
	if !within {
		reason = refusedRate
	}
	f.observer.CallbackRefused(reason)
	if n, due := f.tell(now); due {
		f.log.WarnContext(r.Context(), "reports that do not prove where they come from are refused", "reason", reason, "source", sourceOf(r).String(), "since_last", n)
	}
	switch reason {
	case refusedRate:
		return &onejob.Error{
			Code: onejob.CodeQuotaExceeded, RetryAfter: time.Second / refusalRate,
			Message: "too many reports from this address did not prove where they come from",
		}
	case refusedSignature:
		return &onejob.Error{Code: onejob.CodeUnauthenticated, Message: "the report is not signed as its target signs"}
	}
	return &onejob.Error{Code: onejob.CodeNotFound, Message: "there is no such callback"}
}

// within reports whether the source is within its rate.
func (f *refusals) within(source netip.Prefix, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter, known := f.young[source]
	if !known {
		if limiter, known = f.old[source]; !known {
			limiter = rate.NewLimiter(refusalRate, refusalBurst)
		}
		if len(f.young) >= refusalSources/2 {
			f.young, f.old = map[netip.Prefix]*rate.Limiter{}, f.young
		}
		f.young[source] = limiter
	}
	return limiter.AllowN(now, 1)
}

// tell counts a refusal, and says whether it is time to log how many there were.
func (f *refusals) tell(now time.Time) (n int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unlogged++
	if !f.loggedAt.IsZero() && now.Sub(f.loggedAt) < refusalLogEvery {
		return 0, false
	}
	n, f.unlogged, f.loggedAt = f.unlogged, 0, now
	return n, true
}

// sourceOf is where a request comes from: an address, and of IPv6 the network that
// one customer has.
func sourceOf(r *http.Request) netip.Prefix {
	const ipv6Customer = 64
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr := from.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = ipv6Customer
	}
	prefix, _ := addr.Prefix(bits) // of a length that it has
	return prefix
}
