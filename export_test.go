package onejob

import "slices"

// KeyInPart makes a key for an intent that came without one.
var KeyInPart = keyInPart

// TableEvents lists the events of the transition table, in order of appearance.
func TableEvents() []Event {
	var events []Event
	for _, t := range attemptTransitions {
		if !slices.Contains(events, t.on) {
			events = append(events, t.on)
		}
	}
	return events
}
