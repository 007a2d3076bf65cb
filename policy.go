package onejob

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Effect is what a duplicate of a job's work would cost.
type Effect string

const (
	// EffectNone costs money only, as inference does.
	EffectNone Effect = "none"
	// EffectIdempotent : the provider promises one effect per target and key. All
	// that is said of external holds; its only privilege is a replay on the same attempt.
	EffectIdempotent Effect = "idempotent"
	// EffectExternal is a second charge, a second email.
	EffectExternal Effect = "external"
)

// Effects lists every effect.
func Effects() []Effect { return []Effect{EffectNone, EffectIdempotent, EffectExternal} }

// FailoverMode says what lets another target take over.
type FailoverMode string

const (
	// FailoverCertified asks for a valid certificate of the target. The default.
	FailoverCertified FailoverMode = "certified"
	// FailoverDeclared takes the operator's written word that the targets are equal.
	FailoverDeclared FailoverMode = "declared"
	// FailoverNever keeps the job at its first target.
	FailoverNever FailoverMode = "never"
)

// Defaults of a [Policy].
const (
	DefaultTimeout        = 60 * time.Second
	DefaultLinger         = 10 * time.Minute
	DefaultSendWithin     = 30 * time.Second
	DefaultMaxAttempts    = 5
	DefaultPerTarget      = 3
	DefaultBackoffInitial = time.Second
	DefaultBackoffMax     = time.Minute

	// ParkAfter is how many attempts in a row, each lost with a worker of its own,
	// park a job.
	ParkAfter = 3
	// MaxOwnFaults is how many lost leases and failed marks of our own a job
	// survives before a person is asked.
	MaxOwnFaults = 20
)

// Policy is what a kind says about its jobs, pinned on each job when it is
// created: changing the configuration does not change jobs in flight.
// The zero value of a member means its default; negative values are refused.
type Policy struct {
	Effect  Effect   `json:"effect"`
	Targets []string `json:"targets"` // in the order of fallback, at least one

	// Lanes is how many attempts may be in doubt at once. Zero means 1; more
	// needs EffectNone.
	Lanes int `json:"lanes"`
	// RaceAfter is when another lane may start. Zero: never.
	RaceAfter time.Duration `json:"race_after,omitzero"`

	// Timeout is how long an attempt may stay silent before it becomes unknown.
	// It does not end the provider's work.
	Timeout time.Duration `json:"timeout"`
	// Linger is how much longer the connection stays open for the late answer.
	Linger time.Duration `json:"linger"`
	// SendWithin bounds the time from the mark to the last byte out.
	SendWithin time.Duration `json:"send_within"`

	MaxAttempts int     `json:"max_attempts"` // over the whole job
	PerTarget   int     `json:"per_target"`   // at one target
	Backoff     Backoff `json:"backoff"`

	// Deadline, counted from creation, after which no attempt starts. Zero: none.
	Deadline time.Duration `json:"deadline,omitzero"`

	Failover    FailoverMode `json:"failover"`
	FailoverWhy string       `json:"failover_why,omitempty"` // with FailoverDeclared

	// AskAfter is when a person is asked about an unknown attempt. Zero: at once.
	AskAfter time.Duration `json:"ask_after,omitzero"`
	// Contract is what is pinned of the kind's contract. Nil: it has none.
	Contract *ContractTerms `json:"contract,omitempty"`
}

// Backoff grows from Initial by doubling up to Max, with full jitter. A
// provider's Retry-After wins over it.
type Backoff struct {
	Initial time.Duration `json:"initial"`
	Max     time.Duration `json:"max"`
}

// WithDefaults returns p with every zero member filled in, or all that is wrong
// with it at once.
func (p Policy) WithDefaults() (Policy, error) {
	if err := p.check(); err != nil {
		return p, &Error{Code: CodeInvalidArgument, Message: "invalid policy: " + err.Error(), Err: err}
	}
	fill(&p.Lanes, 1)
	fill(&p.Timeout, DefaultTimeout)
	fill(&p.Linger, DefaultLinger)
	fill(&p.SendWithin, DefaultSendWithin)
	fill(&p.MaxAttempts, DefaultMaxAttempts)
	fill(&p.PerTarget, DefaultPerTarget)
	if p.Backoff.Max == 0 {
		p.Backoff.Max = max(DefaultBackoffMax, p.Backoff.Initial)
	}
	fill(&p.Backoff.Initial, min(DefaultBackoffInitial, p.Backoff.Max))
	fill(&p.Failover, FailoverCertified)
	return p, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (p Policy) check() error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(!slices.Contains(Effects(), p.Effect), "effect is required: none, idempotent or external")
	add(len(p.Targets) == 0, "targets is empty")
	for i, t := range p.Targets {
		add(t == "", "targets has an empty name")
		add(slices.Contains(p.Targets[:i], t), "targets names %q twice", t)
	}
	add(p.Lanes < 0, "lanes is negative")
	add(p.Lanes > 1 && p.Effect != EffectNone, "lanes above 1 need effect none")
	add(p.MaxAttempts < 0, "max_attempts is negative")
	add(p.PerTarget < 0, "per_target is negative")
	for _, d := range []struct {
		name string
		time.Duration
	}{
		{"timeout", p.Timeout},
		{"linger", p.Linger},
		{"send_within", p.SendWithin},
		{"deadline", p.Deadline},
		{"backoff.initial", p.Backoff.Initial},
		{"backoff.max", p.Backoff.Max},
		{"race.after", p.RaceAfter},
		{"unknown.ask_after", p.AskAfter},
	} {
		add(d.Duration < 0, "%s is negative", d.name)
	}
	add(p.Backoff.Max != 0 && p.Backoff.Max < p.Backoff.Initial, "backoff.max is less than backoff.initial")
	switch p.Failover {
	case "", FailoverCertified, FailoverNever:
	case FailoverDeclared:
		add(p.FailoverWhy == "", "failover declared needs a reason")
	default:
		add(true, "failover is certified, declared or never")
	}
	return errors.Join(errs...)
}
