package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// Store is what a [Sender] needs of a store.
type Store interface {
	onejob.DeliveryStore
	// JobGet reads the job that a webhook tells about.
	JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error)
}

// Observer is told of every try.
type Observer interface {
	// WebhookTried is called once for each try, with how long it took. Result is one
	// of [Results].
	WebhookTried(endpoint string, result Result, took time.Duration)
}

// Result is what came of one try.
type Result = string

// The results of a try.
const (
	ResultDelivered Result = "delivered"
	ResultRetrying  Result = "retrying" // another try is due later
	ResultFailed    Result = "failed"   // it was the last
	ResultGone      Result = "gone"     // the endpoint answered 410 and is disabled
)

// Results lists every result.
func Results() []Result {
	return []Result{ResultDelivered, ResultRetrying, ResultFailed, ResultGone}
}

// Options tunes a [Sender]. Only BodyFunc is needed.
type Options struct {
	// Endpoints that webhooks are sent to. What is due at any other waits.
	Endpoints []Endpoint
	// BodyFunc makes what is sent. It is called for the first try alone; later ones
	// send the same bytes.
	BodyFunc func(onejob.Delivery, *onejob.Job) ([]byte, error)

	// Allow are networks that webhooks may go to besides public addresses, by plain
	// http too. See [Guard].
	Allow []netip.Prefix
	// RootCAs whose certificates endpoints may have. Nil: the system's.
	RootCAs *x509.CertPool

	// Timeout bounds one try, from dialling to the end of the answer. Zero means 15 s.
	Timeout time.Duration
	// Schedule are the pauses before the second try, the third and so on, each longer
	// or shorter by up to a fifth. After the last a webhook is given up. Nil means
	// [DefaultSchedule].
	Schedule []time.Duration
	// GiveUpAfter is the age of a webhook that is given up whatever the schedule says:
	// of an endpoint that is gone from the configuration, or disabled. Zero means 4 days.
	GiveUpAfter time.Duration

	// PerEndpoint bounds the tries that are under way at one endpoint. Zero means 8.
	PerEndpoint int
	// Total bounds those under way at all. Zero means 64.
	Total int
	// PollInterval is how often the outbox is looked into without a signal, give or
	// take a fifth. Zero means 1 s.
	PollInterval time.Duration
	// Drain is how long a stop goes on sending what is due. Zero means Timeout and 5 s.
	Drain time.Duration

	// Signals wake the sender when a job changed in this process. Nil: it polls.
	Signals *onejob.Signals
	// LookedFor says that somebody else looks for what is due, and rings Signals when
	// there is something. While other processes are heard the sender then looks by
	// itself only once a minute.
	LookedFor bool
	// Logger is told what went wrong. Nil: nobody is.
	Logger *slog.Logger
	// Observer counts tries. Nil: nobody does.
	Observer Observer
	// NowFunc returns the time that is signed. Nil means [time.Now].
	NowFunc func() time.Time
}

// DefaultSchedule returns the pauses between tries: nine, over three days.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

const (
	defaultTimeout     = 15 * time.Second
	defaultGiveUpAfter = 4 * 24 * time.Hour
	defaultPerEndpoint = 8
	defaultTotal       = 64
	defaultPoll        = time.Second
	drainBeyondTimeout = 5 * time.Second
)

// withDefaults returns o with every zero field filled in, or all that is wrong with
// it at once.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.BodyFunc == nil {
		errs = append(errs, errors.New("BodyFunc is nil"))
	}
	for name, d := range map[string]time.Duration{"Timeout": o.Timeout, "GiveUpAfter": o.GiveUpAfter, "PollInterval": o.PollInterval, "Drain": o.Drain} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	if o.PerEndpoint < 0 || o.Total < 0 {
		errs = append(errs, errors.New("PerEndpoint or Total is negative"))
	}
	if slices.ContainsFunc(o.Schedule, func(d time.Duration) bool { return d <= 0 }) {
		errs = append(errs, errors.New("a pause of Schedule is not positive"))
	}
	if o.Schedule == nil {
		o.Schedule = DefaultSchedule()
	}
	fill(&o.Timeout, defaultTimeout)
	fill(&o.GiveUpAfter, defaultGiveUpAfter)
	fill(&o.PerEndpoint, defaultPerEndpoint)
	fill(&o.Total, defaultTotal)
	fill(&o.PollInterval, defaultPoll)
	fill(&o.Drain, o.Timeout+drainBeyondTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	return o, errors.Join(errs...)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
