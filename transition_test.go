package onejob_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestAttemptStateNext(t *testing.T) {
	t.Parallel()
	refused := &onejob.Error{Code: onejob.CodeInvalidTransition}
	for _, tt := range []struct {
		name string
		from onejob.AttemptState
		on   onejob.Event
		want onejob.AttemptState
		err  error
	}{
		{"TimeoutIsUnknownNotFailed", onejob.AttemptRunning, onejob.EventSilence, onejob.AttemptUnknown, nil},
		{"CrashBeforeTheMarkIsFailed", onejob.AttemptStarting, onejob.EventLeaseOver, onejob.AttemptFailed, nil},
		{"CrashAfterTheMarkIsUnknown", onejob.AttemptRunning, onejob.EventLeaseOver, onejob.AttemptUnknown, nil},
		{"LostResultIsUnknown", onejob.AttemptRunning, onejob.EventLost, onejob.AttemptUnknown, nil},
		{"ProvenNotSentIsFailed", onejob.AttemptRunning, onejob.EventNotSent, onejob.AttemptFailed, nil},
		{"LateAnswerWins", onejob.AttemptUnknown, onejob.EventAnswered, onejob.AttemptSucceeded, nil},
		{"LateAnswerLoses", onejob.AttemptUnknown, onejob.EventBeaten, onejob.AttemptDiscarded, nil},
		{"NothingAnswersBeforeTheMark", onejob.AttemptStarting, onejob.EventAnswered, onejob.AttemptStarting, refused},
		{"SilenceBeforeTheMarkProvesNothing", onejob.AttemptStarting, onejob.EventSilence, onejob.AttemptStarting, refused},
		{"UnknownIsNotMarkedAgain", onejob.AttemptUnknown, onejob.EventMarked, onejob.AttemptUnknown, refused},
		{"MarkedOnce", onejob.AttemptRunning, onejob.EventMarked, onejob.AttemptRunning, refused},
		{"ProviderThatSaidFailedStaysFailed", onejob.AttemptFailed, onejob.EventAnswered, onejob.AttemptFailed, refused},
		{"WinnerStaysWinner", onejob.AttemptSucceeded, onejob.EventFailed, onejob.AttemptSucceeded, refused},
		{"DiscardedStaysDiscarded", onejob.AttemptDiscarded, onejob.EventAnswered, onejob.AttemptDiscarded, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.from.Next(tt.on)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s.Next(%s) = %s, %v; want %s, %v", tt.from, tt.on, got, err, tt.want, tt.err)
			}
		})
	}
}

// life is the transition table, written a second time by hand: whoever changes
// one must mean it enough to change the other.
var life = map[onejob.AttemptState]map[onejob.Event]onejob.AttemptState{
	onejob.AttemptStarting: {
		onejob.EventMarked:    onejob.AttemptRunning,
		onejob.EventNotSent:   onejob.AttemptFailed,
		onejob.EventLeaseOver: onejob.AttemptFailed,
		onejob.EventCancelled: onejob.AttemptCancelled,
		onejob.EventRestored:  onejob.AttemptUnknown,
	},
	onejob.AttemptRunning: {
		onejob.EventAnswered:  onejob.AttemptSucceeded,
		onejob.EventBeaten:    onejob.AttemptDiscarded,
		onejob.EventNotSent:   onejob.AttemptFailed,
		onejob.EventRefused:   onejob.AttemptFailed,
		onejob.EventFailed:    onejob.AttemptFailed,
		onejob.EventCancelled: onejob.AttemptCancelled,
		onejob.EventSilence:   onejob.AttemptUnknown,
		onejob.EventLost:      onejob.AttemptUnknown,
		onejob.EventLeaseOver: onejob.AttemptUnknown,
		onejob.EventRestored:  onejob.AttemptUnknown,
	},
	onejob.AttemptUnknown: {
		onejob.EventAnswered:  onejob.AttemptSucceeded,
		onejob.EventBeaten:    onejob.AttemptDiscarded,
		onejob.EventNotSent:   onejob.AttemptFailed,
		onejob.EventRefused:   onejob.AttemptFailed,
		onejob.EventFailed:    onejob.AttemptFailed,
		onejob.EventCancelled: onejob.AttemptCancelled,
	},
}

// afterRuling is what a success adds for an attempt whose state came from a ruling.
var afterRuling = map[onejob.Event]onejob.AttemptState{
	onejob.EventAnswered: onejob.AttemptSucceeded,
	onejob.EventBeaten:   onejob.AttemptDiscarded,
}

func TestEveryTransitionIsTheTablesAndNoOtherIsAllowed(t *testing.T) {
	t.Parallel()
	events := append(onejob.TableEvents(), "invented")
	for _, s := range append(onejob.AttemptStates(), "invented") {
		for _, e := range events {
			want, follows := life[s][e]
			got, err := s.Next(e)
			checkFollows(t, "Next", s, e, got, err, want, follows)

			if s == onejob.AttemptFailed || s == onejob.AttemptCancelled {
				want, follows = afterRuling[e]
			}
			got, err = s.NextRuled(e)
			checkFollows(t, "NextRuled", s, e, got, err, want, follows)
		}
	}
	for s, row := range life {
		for e := range row {
			if !slices.Contains(events, e) {
				t.Errorf("%s on %s is not in the table", s, e)
			}
		}
	}
}

func checkFollows(t *testing.T, how string, s onejob.AttemptState, e onejob.Event, got onejob.AttemptState, err error, want onejob.AttemptState, follows bool) {
	t.Helper()
	switch {
	case follows && (got != want || err != nil):
		t.Errorf("%s.%s(%s) = %s, %v; want %s", s, how, e, got, err, want)
	case !follows && (got != s || onejob.CodeOf(err) != onejob.CodeInvalidTransition):
		t.Errorf("%s.%s(%s) = %s, %v; want %s and code %s", s, how, e, got, err, s, onejob.CodeInvalidTransition)
	}
}

func TestAnAttemptIsInDoubtExactlyUntilItIsTerminal(t *testing.T) {
	t.Parallel()
	inDoubt := []onejob.AttemptState{onejob.AttemptStarting, onejob.AttemptRunning, onejob.AttemptUnknown}
	for _, s := range onejob.AttemptStates() {
		want := slices.Contains(inDoubt, s)
		if s.InDoubt() != want || s.Terminal() == want {
			t.Errorf("%s: in doubt %t, terminal %t; want %t, %t", s, s.InDoubt(), s.Terminal(), want, !want)
		}
	}
}

func TestEveryStateCanBeReachedAndEveryDoubtCanEnd(t *testing.T) {
	t.Parallel()
	reached := reachable(onejob.AttemptStarting)
	for _, s := range onejob.AttemptStates() {
		if !slices.Contains(reached, s) {
			t.Errorf("no attempt can ever be %s", s)
		}
		if s.InDoubt() && !slices.ContainsFunc(reachable(s), onejob.AttemptState.Terminal) {
			t.Errorf("an attempt in %s can never end", s)
		}
	}
}

// reachable lists the states that an attempt can come to from s, s included.
func reachable(s onejob.AttemptState) []onejob.AttemptState {
	reached := []onejob.AttemptState{s}
	for i := 0; i < len(reached); i++ {
		for _, e := range onejob.TableEvents() {
			next, err := reached[i].Next(e)
			if err == nil && !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
	}
	return reached
}

func TestJobStatesAndBlockReasons(t *testing.T) {
	t.Parallel()
	terminal := []onejob.JobState{onejob.JobSucceeded, onejob.JobFailed, onejob.JobCancelled}
	for _, s := range onejob.JobStates() {
		if want := slices.Contains(terminal, s); s.Terminal() != want {
			t.Errorf("%s.Terminal() = %t; want %t", s, s.Terminal(), want)
		}
	}
	unblocked := []onejob.BlockReason{onejob.BlockParked, onejob.BlockNeedsOperator}
	for _, r := range onejob.BlockReasons() {
		if want := slices.Contains(unblocked, r); r.NeedsUnblock() != want {
			t.Errorf("%s.NeedsUnblock() = %t; want %t", r, r.NeedsUnblock(), want)
		}
	}
}
