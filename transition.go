package onejob

import "fmt"

// Event is a past fact about an attempt that moves it from one state to another.
type Event string

// The events of an attempt's life.
const (
	EventMarked    Event = "marked"     // the mark is committed; bytes may leave
	EventNotSent   Event = "not_sent"   // proven: nothing the provider could act on left
	EventLeaseOver Event = "lease_over" // the claim's lease ended, by the database's clock
	EventAnswered  Event = "answered"   // a complete success
	EventBeaten    Event = "beaten"     // a complete success, but the slot was taken or the job closed
	EventRefused   Event = "refused"    // the provider said that it did nothing
	EventFailed    Event = "failed"     // the provider did the work and it failed
	EventCancelled Event = "cancelled"  // proven to have been given up
	EventSilence   Event = "silence"    // a timeout, a reset, a lost answer: no proof of anything
	EventLost      Event = "lost"       // done, but its result cannot be had
	EventRestored  Event = "restored"   // the database went back in time
)

type attemptTransition struct {
	from  AttemptState
	on    Event
	to    AttemptState
	ruled bool // only for an attempt whose state came from a ruling
}

// attemptTransitions is the whole life of an attempt. Nothing else in the
// program decides which state follows which; docs/state-machine.md is printed
// from this table, and both databases carry the states as constraints.
var attemptTransitions = []attemptTransition{
	{from: AttemptStarting, on: EventMarked, to: AttemptRunning},
	{from: AttemptStarting, on: EventNotSent, to: AttemptFailed},
	{from: AttemptStarting, on: EventLeaseOver, to: AttemptFailed}, // the mark is committed before the wire: never sent
	{from: AttemptStarting, on: EventCancelled, to: AttemptCancelled},
	{from: AttemptStarting, on: EventRestored, to: AttemptUnknown},

	{from: AttemptRunning, on: EventAnswered, to: AttemptSucceeded},
	{from: AttemptRunning, on: EventBeaten, to: AttemptDiscarded},
	{from: AttemptRunning, on: EventNotSent, to: AttemptFailed}, // dial refused after the mark
	{from: AttemptRunning, on: EventRefused, to: AttemptFailed},
	{from: AttemptRunning, on: EventFailed, to: AttemptFailed},
	{from: AttemptRunning, on: EventCancelled, to: AttemptCancelled},
	{from: AttemptRunning, on: EventSilence, to: AttemptUnknown},
	{from: AttemptRunning, on: EventLost, to: AttemptUnknown},
	{from: AttemptRunning, on: EventLeaseOver, to: AttemptUnknown},
	{from: AttemptRunning, on: EventRestored, to: AttemptUnknown},

	// Only evidence from the provider, or a ruling, leaves unknown.
	{from: AttemptUnknown, on: EventAnswered, to: AttemptSucceeded},
	{from: AttemptUnknown, on: EventBeaten, to: AttemptDiscarded},
	{from: AttemptUnknown, on: EventNotSent, to: AttemptFailed},
	{from: AttemptUnknown, on: EventRefused, to: AttemptFailed},
	{from: AttemptUnknown, on: EventFailed, to: AttemptFailed},
	{from: AttemptUnknown, on: EventCancelled, to: AttemptCancelled},

	// A ruling can be proven wrong: the success arrives after all.
	{from: AttemptFailed, on: EventAnswered, to: AttemptSucceeded, ruled: true},
	{from: AttemptFailed, on: EventBeaten, to: AttemptDiscarded, ruled: true},
	{from: AttemptCancelled, on: EventAnswered, to: AttemptSucceeded, ruled: true},
	{from: AttemptCancelled, on: EventBeaten, to: AttemptDiscarded, ruled: true},
}

// Next returns the state that follows s when e is observed on an attempt that
// was not ruled. It returns [*Error] with [CodeInvalidTransition], and s itself,
// when the table has no such row.
func (s AttemptState) Next(e Event) (AttemptState, error) { return s.next(e, false) }

// NextRuled is [AttemptState.Next] for an attempt whose state came from a ruling:
// it has one more exit, a success that arrives after all.
func (s AttemptState) NextRuled(e Event) (AttemptState, error) { return s.next(e, true) }

func (s AttemptState) next(e Event, ruled bool) (AttemptState, error) {
	for _, t := range attemptTransitions {
		if t.from == s && t.on == e && (ruled || !t.ruled) {
			return t.to, nil
		}
	}
	return s, &Error{Code: CodeInvalidTransition, Message: fmt.Sprintf("an attempt cannot go on %q from %q", e, s)}
}
