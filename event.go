package onejob

import "time"

// JobEvent is something about a job that its rows cannot tell.
type JobEvent struct {
	Part      uint8
	JobID     string
	AttemptID string // empty when it concerns no attempt
	Kind      EventKind
	At        time.Time
	Actor     string // who did it; empty: the machine
	Detail    string // safe to show
}

// EventKind names what happened.
type EventKind string

// The kinds of event.
const (
	EventReplayed        EventKind = "replayed"           // a repeat was answered with the job
	EventConflicted      EventKind = "conflicted"         // a key came with another intent
	EventBlocked         EventKind = "blocked"            // the job entered blocked; Detail is the reason
	EventUnblocked       EventKind = "unblocked"          // a person let it go on
	EventRaceLost        EventKind = "race_lost"          // a success found the slot taken
	EventRuled           EventKind = "ruled"              // a ruling settled an attempt
	EventAsked           EventKind = "asked"              // a person is asked about an attempt in doubt
	EventCancelAsked     EventKind = "cancel_requested"   // somebody asked to cancel
	EventDuplicateEffect EventKind = "duplicate_effect"   // incident: ruled otherwise, yet it happened, and another won
	EventLateEffect      EventKind = "effect_after_close" // incident: it happened after the job had closed
	EventPurged          EventKind = "purged"             // the payload was emptied
)

// RepeatEventInterval is the least time between two events of one job that say
// [EventReplayed], and between two that say [EventConflicted].
const RepeatEventInterval = time.Hour

// Incident reports whether the event may mean money spent twice.
func (k EventKind) Incident() bool { return k == EventDuplicateEffect || k == EventLateEffect }
