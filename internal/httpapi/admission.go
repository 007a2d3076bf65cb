package httpapi

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/onejob-dev/onejob"
)

// AdmissionOptions tunes an [Admission]. The zero value admits everything.
type AdmissionOptions struct {
	// Rate is how many new jobs an owner may submit per second. Zero: unlimited.
	Rate float64
	// Burst is how many at once. Zero means one second's worth, at least 1.
	Burst int
	// MaxOwners bounds how many owners are told apart; those not heard of for
	// longest are forgotten and begin afresh. Zero means 10,000.
	MaxOwners int

	// MaxQueued is how many jobs may wait to be tried, of all owners together.
	// Zero: any number. Needs QueuedFunc, which counts them.
	MaxQueued  int64
	QueuedFunc func(ctx context.Context) (int64, error)

	// DrainingFunc says that the server is about to stop. Nil: never.
	DrainingFunc func() bool

	// NowFunc returns the current time. Nil means [time.Now].
	NowFunc func() time.Time
}

const defaultMaxOwners = 10_000

// Admission refuses new jobs: those of an owner over its rate, and all while too
// many wait or the server is about to stop. Its Admit is an Options.AdmitFunc of the client, which
// asks it only about jobs that would be new: repeats always answer. It is safe for
// concurrent use.
type Admission struct {
	opts    AdmissionOptions
	backlog backlog

	mu sync.Mutex
	// Two generations: when the young one is full it becomes the old one, and
	// whoever is heard of again moves over.
	young, old map[string]*rate.Limiter
}

// NewAdmission returns an admission. It returns [onejob.CodeInvalidArgument] for
// negative options.
func NewAdmission(opts AdmissionOptions) (*Admission, error) {
	if opts.Rate < 0 || opts.Burst < 0 || opts.MaxOwners < 0 || opts.MaxQueued < 0 {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "an option of the admission is negative"}
	}
	if opts.Burst == 0 {
		opts.Burst = max(1, int(opts.Rate))
	}
	fill(&opts.MaxOwners, defaultMaxOwners)
	if opts.DrainingFunc == nil {
		opts.DrainingFunc = func() bool { return false }
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	if opts.MaxQueued > 0 && opts.QueuedFunc == nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "MaxQueued is set without QueuedFunc"}
	}
	return &Admission{
		opts:    opts,
		backlog: backlog{most: opts.MaxQueued, countFunc: opts.QueuedFunc, nowFunc: opts.NowFunc},
		young:   map[string]*rate.Limiter{},
	}, nil
}

// Admit says why a new job of owner is refused, or nil.
func (a *Admission) Admit(ctx context.Context, owner string, _ int) *onejob.Error {
	if a.opts.DrainingFunc() {
		return &onejob.Error{Code: onejob.CodeDraining, RetryAfter: time.Second, Message: "the server is about to stop; ask again with the same idempotency key"}
	}
	if !a.backlog.admit(ctx) {
		return errorOfBacklog()
	}
	if a.opts.Rate == 0 {
		return nil
	}
	now := a.opts.NowFunc()
	limiter := a.limiter(owner)
	if limiter.AllowN(now, 1) {
		return nil
	}
	missing := max(0, 1-limiter.TokensAt(now))
	return &onejob.Error{
		Code: onejob.CodeQuotaExceeded, Message: "the owner submits more new jobs per second than it may; ask again with the same idempotency key",
		RetryAfter: time.Duration(missing / a.opts.Rate * float64(time.Second)),
	}
}

func (a *Admission) limiter(owner string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, ok := a.young[owner]; ok {
		return l
	}
	l, ok := a.old[owner]
	if !ok {
		l = rate.NewLimiter(rate.Limit(a.opts.Rate), a.opts.Burst)
	}
	if len(a.young) >= max(1, a.opts.MaxOwners/2) {
		a.young, a.old = map[string]*rate.Limiter{}, a.young
	}
	a.young[owner] = l
	return l
}
