package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/certify"
)

// Authenticator says whose key a printed key is. It returns
// [onejob.CodeUnauthenticated] for one that is not valid.
type Authenticator interface {
	Authenticate(ctx context.Context, printed string) (onejob.APIKey, error)
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	// RequestServed is told of each request; route is a pattern, never a path.
	RequestServed(method, route string, status int, took time.Duration)
	// JobSubmitted is told what a submission found: new, replayed or conflict.
	JobSubmitted(kind, result string)
	// UnknownResolved is told of a ruling.
	UnknownResolved(by string, as onejob.Outcome)
	// GateDecided is told of each target that a request would have had take over, and why
	// it may not.
	GateDecided(kind, target string, allowed bool, reason string)
	// AttemptStarted and the rest are told of what workers do.
	AttemptStarted(target string)
	AttemptEnded(target string, outcome onejob.Outcome, took time.Duration)
	RaceLost(target string)
	Incident(kind onejob.EventKind)
	// ProbeAnswered is told of a report about an attempt in doubt, and of what it
	// proves. Empty: nothing.
	ProbeAnswered(target string, method onejob.ProbeMethod, outcome onejob.Outcome)
	// CallbackRefused is told of a report that does not prove where it comes from.
	CallbackRefused(reason string)
}

// Options tunes the API. Client is required.
type Options struct {
	Client *onejob.Client

	// Keys lets callers in. Nil: nobody but probes gets in.
	Keys Authenticator

	// Pulled are the targets whose attempts workers take, by name. Empty: there is
	// nothing to claim.
	Pulled map[string]onejob.TargetPins

	// Contracts knows of contracts and certificates. Nil: no kind has a contract.
	Contracts *certify.Office

	// MaxBodyBytes bounds a request's body. Zero means 1 MiB.
	MaxBodyBytes int
	// MaxRequests bounds how many requests are served at once, those that hold
	// left out. Zero means 1,024.
	MaxRequests int
	// MaxHolding bounds how many requests wait for a job or stream it at once.
	// Zero means 4,096.
	MaxHolding int

	// Callbacks read what providers report by themselves, by target. Secret is the
	// instance's, which their tokens were made with. Without it none is received.
	Callbacks map[string]CallbackReader
	Secret    onejob.Secret
	// CallbackWait is how long a report waits for the call that it is about to be
	// recorded. Zero means 5 s.
	CallbackWait time.Duration

	// Doors are routes in the shape of providers' APIs. Empty: there are none.
	Doors []Door

	// Endpoints are those of webhooks that are configured, for operators to see.
	// Empty: only those that are disabled are listed.
	Endpoints []EndpointInfo

	// Metrics answers /metrics. Nil: it is not found.
	Metrics http.Handler
	// Observer counts. Nil: nobody does.
	Observer Observer

	// DrainingFunc says that the server is about to stop: it is no longer ready,
	// and streams end. Give the same to an [Admission], which refuses new jobs.
	// Nil: never.
	DrainingFunc func() bool

	// OwnerRate is what /v1/limits says of jobs per second and owner. Zero: unlimited.
	OwnerRate float64
	// KeepPayloads and KeepKeys are what /v1/limits says of retention. Zero: for ever.
	KeepPayloads, KeepKeys time.Duration

	// Heartbeat is how often a stream says that it is alive. Zero means 15 s.
	Heartbeat time.Duration

	// Logger gets what operators should know. Nil discards.
	Logger *slog.Logger
	// NowFunc returns the current time. Nil means [time.Now].
	NowFunc func() time.Time
}

const (
	defaultMaxBodyBytes = 1 << 20
	defaultMaxRequests  = 1024
	defaultMaxHolding   = 4096
	defaultHeartbeat    = 15 * time.Second
)

// withDefaults returns o with every zero field filled in, or all that is wrong
// with it at once.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("Client is nil"))
	}
	for name, n := range map[string]int{"MaxBodyBytes": o.MaxBodyBytes, "MaxRequests": o.MaxRequests, "MaxHolding": o.MaxHolding} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	for name, d := range map[string]time.Duration{"Heartbeat": o.Heartbeat, "CallbackWait": o.CallbackWait, "KeepPayloads": o.KeepPayloads, "KeepKeys": o.KeepKeys} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	fill(&o.MaxBodyBytes, defaultMaxBodyBytes)
	fill(&o.MaxRequests, defaultMaxRequests)
	fill(&o.MaxHolding, defaultMaxHolding)
	fill(&o.Heartbeat, defaultHeartbeat)
	fill(&o.CallbackWait, defaultCallbackWait)
	if o.Keys == nil {
		o.Keys = nobody{}
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	if o.DrainingFunc == nil {
		o.DrainingFunc = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	return o, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// nobody lets nobody in: without a configured credential the API fails closed.
type nobody struct{}

func (nobody) Authenticate(context.Context, string) (onejob.APIKey, error) {
	return onejob.APIKey{}, &onejob.Error{Code: onejob.CodeUnauthenticated, Message: "no credential is configured on this server"}
}

type unobserved struct{}

func (unobserved) RequestServed(string, string, int, time.Duration)         {}
func (unobserved) JobSubmitted(string, string)                              {}
func (unobserved) UnknownResolved(string, onejob.Outcome)                   {}
func (unobserved) GateDecided(string, string, bool, string)                 {}
func (unobserved) AttemptStarted(string)                                    {}
func (unobserved) AttemptEnded(string, onejob.Outcome, time.Duration)       {}
func (unobserved) ProbeAnswered(string, onejob.ProbeMethod, onejob.Outcome) {}
func (unobserved) CallbackRefused(string)                                   {}
func (unobserved) RaceLost(string)                                          {}
func (unobserved) Incident(onejob.EventKind)                                {}
