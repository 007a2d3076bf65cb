// Package engine tries jobs: it claims them from a store, marks each attempt
// before anything is sent, calls its target's provider once, and records what
// the answer proves.
//
// Any number of engines may work on one store. None leads; what one leaves
// behind when it dies the others find by its leases.
//
// An attempt that stays silent for its job's timeout becomes unknown, never
// failed. Its connection stays open for the linger, because the answer is being
// paid for, and an answer then settles it. Later the provider is asked, where its
// target says how: by its own id, by something the request carried, or by sending
// the same bytes under the same key.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// Engine tries the jobs of one store at a set of targets. Make one with [New];
// it implements [onejob.Starter], so that a client of the same process hands it
// new jobs without a claim.
type Engine struct {
	store   onejob.Store
	probes  onejob.ProbeStore  // nil: the store keeps no questions, and none are asked
	streams onejob.StreamStore // nil: the store keeps no pieces of answers, which are shown whole
	targets map[string]onejob.Target
	opts    Options
	start   onejob.StartParams
	turn    string // the owner whom the last claim ended with; the claim loop's own

	slots      *slots
	asking     chan struct{} // one for each question that may be open at once
	wakeups    wakeups
	held       held
	linger     lingering
	working    tally // attempts under way, lingering and reserved ones too
	complaints complaints

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
	e := &Engine{store: store, opts: opts, turn: firstTurn(), targets: map[string]onejob.Target{}}
	e.probes, _ = store.(onejob.ProbeStore)
	e.streams, _ = store.(onejob.StreamStore)
	if err := e.addTargets(targets); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: err.Error(), Err: err}
	}
	pins := map[string]onejob.TargetPins{}
	for name, t := range e.targets {
		pins[name] = onejob.TargetPins{Digest: t.Digest, MaxExecution: t.MaxExecution}
	}
	e.start = onejob.StartParams{Worker: opts.Worker, Lease: opts.Lease, Targets: pins}
	e.slots = newSlots(opts.Slots)
	e.asking = make(chan struct{}, askingAtOnce)
	e.linger.most = opts.Lingering
	e.wakeups = newWakeups()
	e.hard, e.hardStop = context.WithCancel(context.Background())
	return e, nil
}

func (e *Engine) addTargets(targets []onejob.Target) error {
	var errs []error
	for _, t := range targets {
		_, twice := e.targets[t.Name]
		switch {
		case t.Name == "":
			errs = append(errs, errors.New("a target has no name"))
		case twice:
			errs = append(errs, fmt.Errorf("target %q is there twice", t.Name))
		case t.Pulled: // workers take its attempts
		case t.Provider == nil:
			errs = append(errs, fmt.Errorf("target %q has no provider", t.Name))
		default:
			e.targets[t.Name] = t
		}
	}
	return errors.Join(errs...)
}

// settleTime is how long calls that were cut off get to record what they know.
const settleTime = 5 * time.Second

// Run works until ctx ends, then drains: it claims nothing more, waits up to
// Options.Drain for the attempts under way, and cuts the rest off. A call that
// was cut off after its request had left is unknown, as is one that could not be
// recorded. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	defer e.hardStop()
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){e.claimLoop, e.sweepLoop, e.decideLoop, e.purgeLoop, e.reconcileLoop, e.askPeopleLoop, e.lookLoop} {
		loops.Go(func() { loop(ctx) })
	}
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewing()
	go e.renewLoop(renewing)
	go e.cancelLoop(renewing)

	<-ctx.Done()
	e.slots.close()
	loops.Wait()
	if e.working.wait(e.opts.Drain) {
		return nil
	}
	e.opts.Logger.Warn("drain ended with attempts under way; cutting them off", "drain", e.opts.Drain)
	e.hardStop()
	if !e.working.wait(settleTime) {
		e.opts.Logger.Error("attempts were left to their leases")
	}
	return nil
}
