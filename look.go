package onejob

import (
	"context"
	"time"
)

// Looker is a store that can tell in one cheap question whether anybody has
// anything to do. A store of many nodes is one: what ten of them spend on having
// nothing to do should not grow with the number of things that they might do.
type Looker interface {
	// WorkLook looks, and changes nothing. What it finds is a hint: whoever acts on it
	// reads the store again.
	WorkLook(ctx context.Context, params WorkLookParams) (WorkFound, error)
}

// WorkLookParams say what to look for.
type WorkLookParams struct {
	// Targets are those whose jobs may be claimed, Askable those whose attempts may be
	// asked about. Empty: none.
	Targets, Askable []string
	// Endpoints are those that webhooks are sent to.
	Endpoints []string
	// Held are jobs whose providers the asker could ask to give up.
	Held []JobRef
	// Soon is how far ahead a job counts as due.
	Soon time.Duration
}

// WorkFound is what there is to do.
type WorkFound struct {
	Due       bool // a queued job of the targets is due, or will be soon
	Expired   bool // a lease is over: see [Store].AttemptExpired
	Undecided bool // a job may stand otherwise by now: see [Store].JobDecide
	Questions bool // an attempt at one of the askable targets is due to be asked about
	Unasked   bool // a person is to be asked: see [ProbeStore].AttemptAsk
	Outbox    bool // a webhook is due at one of the endpoints
	// Cancelled are those of the held that are to be given up.
	Cancelled []string
}
