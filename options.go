package onejob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind is a named sort of job, declared in the configuration.
type Kind struct {
	Policy Policy
	// CheckFunc refuses an input before its key is taken. Nil: any JSON will do.
	CheckFunc func(input []byte) error
}

// Options tunes a [Client].
type Options struct {
	// Secret is the instance secret that fingerprints are made with, at least 16
	// bytes. It must stay the same for the life of the store: with another one,
	// every known key answers as a conflict.
	Secret []byte

	// Kinds by name. At least one.
	Kinds map[string]Kind

	// MaxInputBytes bounds the input of one job. Zero means 1 MiB.
	MaxInputBytes int

	// PollInterval is how often [Client.Watch] looks by itself; while Signals hear
	// other processes the pause grows up to 4 s. Zero means 500 ms.
	PollInterval time.Duration

	// AdmitFunc refuses new work of an owner: quotas and overload. It is asked
	// before the insert and never keeps an existing job from answering. Nil
	// admits everything.
	AdmitFunc func(ctx context.Context, owner string, inputBytes int) *Error

	// SubscribeFunc returns the endpoints that are told about a new job of an owner:
	// the one at url, or with no url all of the owner's. It returns [CodeInvalidJob]
	// for a url that is none of them. Nil: nobody is told.
	SubscribeFunc func(owner, url string) ([]Subscription, *Error)

	// Starter runs attempts started in the commit that created their job. Nil:
	// an engine claims them.
	Starter Starter

	// Judge holds what workers, callbacks and people hand in to the contracts of kinds.
	// Nil: nobody does.
	Judge OutputJudge

	// Signals wake an engine and watchers in the same process. Nil: private ones.
	Signals *Signals

	// NowFunc makes the time in new ids. Nil means [time.Now].
	NowFunc func() time.Time
}

// Starter runs attempts that were started in somebody else's commit.
type Starter interface {
	// Reserve holds one slot for an attempt at target, or for the first target
	// that fits when target is empty. It reports false when there is none; the
	// job then waits to be claimed.
	Reserve(target string) (StartParams, bool)
	// Await is Reserve for whoever asks for one more attempt at any target: slots that
	// are taken only while due jobs are looked for are waited for, until ctx ends.
	Await(ctx context.Context) (StartParams, bool)
	// Dispatch uses a reserved slot.
	Dispatch(Claimed)
	// Release gives a reserved slot back.
	Release()
}

const (
	defaultMaxInputBytes = 1 << 20
	defaultPollInterval  = 500 * time.Millisecond
	minSecretBytes       = 16
)

// withDefaults returns o with every zero field filled in, or all that is wrong
// with it at once.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if len(o.Secret) < minSecretBytes {
		errs = append(errs, fmt.Errorf("Secret has %d bytes; at least %d are needed", len(o.Secret), minSecretBytes))
	}
	if len(o.Kinds) == 0 {
		errs = append(errs, errors.New("Kinds is empty"))
	}
	if o.MaxInputBytes < 0 {
		errs = append(errs, errors.New("MaxInputBytes is negative"))
	}
	if o.PollInterval < 0 {
		errs = append(errs, errors.New("PollInterval is negative"))
	}
	o.Kinds = maps.Clone(o.Kinds)
	for _, name := range slices.Sorted(maps.Keys(o.Kinds)) {
		kind := o.Kinds[name]
		policy, err := kind.Policy.WithDefaults()
		if err != nil {
			errs = append(errs, fmt.Errorf("kind %q: %w", name, err))
		}
		kind.Policy = policy
		o.Kinds[name] = kind
	}
	if err := errors.Join(errs...); err != nil {
		return o, &Error{Code: CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	fill(&o.MaxInputBytes, defaultMaxInputBytes)
	fill(&o.PollInterval, defaultPollInterval)
	if o.Signals == nil {
		o.Signals = &Signals{}
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	return o, nil
}

// kindNames lists the kinds, for an error's message.
func (c *Client) kindNames() string {
	return "the kinds are " + list(slices.Sorted(maps.Keys(c.opts.Kinds)))
}

func list(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
