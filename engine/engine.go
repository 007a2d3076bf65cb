// Package engine tries jobs: it claims them from a store, marks each attempt
// before anything is sent, calls its target's provider once, and records what
// the answer proves.
//
// Any number of engines may work on one store. None leads; what one leaves
// behind when it dies the others find by its leases.
//
// An attempt that stays silent for its job's timeout becomes unknown, never
// failed. Its connection stays open for the linger, because the answer is being
// paid for, and an answer then settles it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/onejob-dev/onejob"
)

// Engine tries the jobs of one store at a set of targets. Make one with [New];
// it implements [onejob.Starter], so that a client of the same process hands it
// new jobs without a claim.
type Engine struct {
	store   onejob.Store
	targets map[string]onejob.Target
	opts    Options
	start   onejob.StartParams

	slots   slots
	leases  leases
	linger  lingering
	working sync.WaitGroup // attempts under way

	// hard ends the calls that the drain did not outlive.
	hard     context.Context
	hardStop context.CancelFunc
}

// New returns an engine. It returns [onejob.CodeInvalidArgument] for a target
// without a name or provider, or named twice, and for invalid options.
func New(store onejob.Store, targets []onejob.Target, opts Options) (*Engine, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{store: store, opts: opts, targets: map[string]onejob.Target{}}
	pins := map[string]onejob.TargetPins{}
	var errs []error
	for _, t := range targets {
		switch _, twice := e.targets[t.Name]; {
		case t.Name == "":
			errs = append(errs, errors.New("a target has no name"))
		case twice:
			errs = append(errs, fmt.Errorf("target %q is there twice", t.Name))
		case t.Pulled:
			continue
		case t.Provider == nil:
			errs = append(errs, fmt.Errorf("target %q has no provider", t.Name))
		}
		e.targets[t.Name] = t
		pins[t.Name] = onejob.TargetPins{Digest: t.Digest, MaxExecution: t.MaxExecution}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: err.Error(), Err: err}
	}
	e.start = onejob.StartParams{Worker: opts.Worker, Lease: opts.Lease, Targets: pins}
	e.slots.free = opts.Slots
	e.linger.most = opts.Lingering
	e.hard, e.hardStop = context.WithCancel(context.Background())
	return e, nil
}
