package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/onejob-dev/onejob"
)

// moment is when in a call something happens.
type moment string

const (
	before moment = "before"
	within moment = "within" // written, not committed
	after  moment = "after"
)

// deed is what happens.
type deed string

const (
	kill  deed = "kill"
	stop  deed = "stop"
	doubt deed = "doubt"
)

// point is where and what.
type point struct {
	call string
	moment
	deed

	inside atomic.Bool  // the call is under way, and its commit is the one to die at
	spared atomic.Int64 // so many commits within the call come before that one
	left   atomic.Int64 // how often the deed is still to be done
	turn   sync.Mutex   // calls take turns where a commit within one of them counts
}

// calls are the calls that have points, and whether they have an inside.
var calls = map[string]bool{
	"request": false, "respond": false, "send": false, "answer": false,
	"create": true, "start": true, "claim": true, "mark": true, "finish": true, "sweep": true, "probe": true,
	"migrate": true, "purge": true,
}

// parsePoint reads "finish.within" and a deed. No text is a point that never comes.
func parsePoint(text, what string) (*point, error) {
	p := &point{deed: deed(what)}
	if text == "" {
		return p, nil
	}
	call, when, _ := strings.Cut(text, ".")
	p.call, p.moment = call, moment(when)
	store, known := calls[p.call]
	switch {
	case !known || !slices.Contains([]moment{before, within, after}, p.moment):
		return nil, fmt.Errorf("there is no point %q", text)
	case !slices.Contains([]deed{kill, stop, doubt}, p.deed):
		return nil, fmt.Errorf("there is no deed %q", what)
	case !store && p.moment == within:
		return nil, fmt.Errorf("%s has no inside", p.call)
	case p.deed == doubt && (!store || p.moment == within):
		return nil, fmt.Errorf("only before and after a call of the store can be in doubt")
	}
	return p, nil
}

var errDoubt = errors.New("the connection was lost")

// at does the deed if this is the point, and returns an error if the call is to be
// in doubt.
func (p *point) at(call string, when moment) error {
	if p.call != call || p.moment != when || p.left.Add(-1) < 0 {
		return nil
	}
	if p.deed == doubt {
		return onejob.Unavailable(errDoubt)
	}
	p.strike()
	return nil
}

// strike ends the process, or stops it until somebody lets it go on.
func (p *point) strike() {
	if p.deed == stop {
		stopHere()
		return
	}
	dieHere()
}

// aboutToCommit is told of every commit of the process. It strikes at the first
// that is made within the call.
func (p *point) aboutToCommit() {
	if p.armed() && p.spared.Add(-1) < 0 {
		p.strike()
	}
}

// armed reports whether the call whose commit counts is under way.
func (p *point) armed() bool { return p.moment == within && p.inside.Load() }

// around makes a call of the store with its three moments. came says of an answer
// whether the call did what it is watched for: a claim that found nothing did not.
func around[R any](p *point, call string, do func() (R, error), came func(R) bool) (R, error) {
	var nothing R
	if p.moment == within {
		p.turn.Lock()
		defer p.turn.Unlock()
	}
	if err := p.at(call, before); err != nil {
		return nothing, err
	}
	if p.call == call {
		p.inside.Store(true)
		defer p.inside.Store(false)
	}
	r, err := do()
	if err != nil || !came(r) {
		return r, err
	}
	if err := p.at(call, after); err != nil {
		return nothing, err
	}
	return r, nil
}
