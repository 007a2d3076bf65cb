package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/onejob-dev/onejob"
)

// Options tunes an [Engine]. The zero value is ready to use.
type Options struct {
	// Slots is how many attempts this engine has under way at once, those that
	// linger for a late answer left out. Zero means 64.
	Slots int

	// Lingering is how many attempts may linger at once; the one that lingers
	// longest hangs up for a new one. Zero means 4 times Slots.
	Lingering int

	// Lease is how long a claim is trusted without news. It is renewed at a
	// third. Zero means 30 s.
	Lease time.Duration

	// Drain bounds how long Run waits for attempts under way after its context
	// ended. Zero means 60 s.
	Drain time.Duration

	// PollInterval is how often the engine looks for due work without being
	// woken; while Signals hear other processes and nothing is found the pause grows
	// up to about 4 s. Zero means 500 ms.
	PollInterval time.Duration

	// KeepPayloads is how long after its end a job's payload is kept, and
	// KeepKeys how long after its creation its tombstone stays whole. Zero: for ever.
	KeepPayloads, KeepKeys time.Duration

	// Worker names this engine to people. Empty: a random name.
	Worker string

	// Looker is the store as it can be looked at as a whole. Nil: everything that the
	// engine might have to do is looked for by itself.
	Looker onejob.Looker
	// Endpoints are the ids of those whose webhooks the looker looks for, too: whoever
	// sends them is woken through Signals.
	Endpoints []string

	// Signals wake the engine and whoever watches jobs in this process, and in
	// others where they are connected. Nil: private ones, which wake nobody else.
	Signals *onejob.Signals

	// Logger gets what operators should know. Nil discards.
	Logger *slog.Logger

	// Contracts makes the requests of kinds that have a contract, and judges what comes
	// back. Nil: inputs are sent as they are, and nothing is judged.
	Contracts Contracts

	// Observer counts. Nil: nobody does.
	Observer Observer
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	AttemptStarted(target string)
	AttemptEnded(target string, outcome onejob.Outcome, took time.Duration)
	RaceLost(target string)
	Incident(kind onejob.EventKind)
	Swept(attempts int)
	// ProbeAnswered is told of each question about an attempt in doubt, and of what
	// its answer proves. Empty: nothing.
	ProbeAnswered(target string, method onejob.ProbeMethod, outcome onejob.Outcome)
	// GateDecided is told what the gate said of a target that was to take over; reason
	// is why not, or waiver. Empty: it was certified.
	GateDecided(kind, target string, allowed bool, reason string)
	// PeopleAsked is told how many attempts people were asked about.
	PeopleAsked(attempts int)
}

// Defaults of [Options].
const (
	DefaultSlots = 64
	DefaultLease = 30 * time.Second
	DefaultDrain = time.Minute

	defaultPollInterval = 500 * time.Millisecond
	lingeringPerSlot    = 4
)

// withDefaults returns o with every zero field filled in, or all that is wrong
// with it at once.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	for name, n := range map[string]int64{
		"Slots": int64(o.Slots), "Lingering": int64(o.Lingering), "Lease": int64(o.Lease), "Drain": int64(o.Drain),
		"PollInterval": int64(o.PollInterval), "KeepPayloads": int64(o.KeepPayloads), "KeepKeys": int64(o.KeepKeys),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	fill(&o.Slots, DefaultSlots)
	fill(&o.Lingering, lingeringPerSlot*o.Slots)
	fill(&o.Lease, DefaultLease)
	fill(&o.Drain, DefaultDrain)
	fill(&o.PollInterval, defaultPollInterval)
	fill(&o.Worker, "engine-"+onejob.NewToken()[:10])
	if o.Signals == nil {
		o.Signals = &onejob.Signals{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	return o, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// nobody observes nothing.
type nobody struct{}

func (nobody) AttemptStarted(string)                                    {}
func (nobody) AttemptEnded(string, onejob.Outcome, time.Duration)       {}
func (nobody) RaceLost(string)                                          {}
func (nobody) Incident(onejob.EventKind)                                {}
func (nobody) Swept(int)                                                {}
func (nobody) ProbeAnswered(string, onejob.ProbeMethod, onejob.Outcome) {}
func (nobody) GateDecided(string, string, bool, string)                 {}
func (nobody) PeopleAsked(int)                                          {}
