// Package storetest checks that an [onejob.Store] keeps its promises.
//
// A store's whole test is one call of [Run]. Each promise is one small function,
// registered under the name Subject/Behaviour, so that a failure reads as the
// sentence that does not hold:
//
//	--- FAIL: TestStore/AttemptFinish/OneWinner
//
// The suite knows a store only through the interfaces of package onejob, and
// imports nothing else, so that a store outside this module can be held to it.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// Opened is one fresh, empty database, as the suite sees it.
type Opened struct {
	// Stores are handles on the same database, as many as were asked for. A
	// store of one process may give the same handle several times.
	Stores []onejob.Store
	// Advance moves the store's clock forward by d, for every handle. Nil: its
	// clock cannot be moved, and what needs that is skipped.
	Advance func(d time.Duration)
	// Exec runs one statement of SQL on the database, around the store. Nil:
	// there is no SQL, and what needs it is skipped.
	Exec func(sql string) error
	// Behind runs one statement of SQL in a transaction around the store, then calls do
	// and commits only when do has ended or waits for that transaction. Nil: the
	// database does not write in several transactions at once, and what needs that is
	// skipped.
	Behind func(sql string, do func()) error
}

// EventReader is how the suite reads what a store wrote down about a job. It is
// optional, a method of the concrete store and no part of [onejob.Store]; a store
// without it skips the promises about events.
//
// JobEvents returns a job's events, oldest first, and an empty slice for a job
// without any. A repeat may be counted rather than written as a row of its own,
// but it must show here as at least one [onejob.EventReplayed].
type EventReader interface {
	JobEvents(ctx context.Context, ref onejob.JobRef) ([]onejob.JobEvent, error)
}

// promise is one thing that every store keeps.
type promise struct {
	name string // Subject/Behaviour
	test func(f *fixture)
	// handles on the same database that it needs. Zero means one.
	handles int
}

// Run checks every promise on databases that open makes, one for each promise,
// in parallel. open registers its own cleanup; handles is how many handles on the
// same database the promise needs, at least one. With -short the races are shorter.
//
// A store that is also an [onejob.KeyStore] is held to the promises about API keys.
func Run(t *testing.T, open func(t *testing.T, handles int) Opened) {
	t.Helper()
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(newFixture(t, open(t, max(p.handles, 1))))
		})
	}
}

func promises() []promise {
	var all []promise
	for _, subject := range [][]promise{
		creating(), conflicting(), superseding(), reading(), claiming(), takingTurns(), starting(), holding(), finishing(), winning(), arrivingLate(),
		resolving(), cancelling(), parking(), restoring(), purging(), isolating(), probing(), telling(), sending(), working(), keeping(),
		auditing(), auditTelling(), happening(), summing(), racingForReal(), constraining(), outboxConstraining(),
		certifying(), observing(), gating(), gatingAgain(), certificateConstraining(), waiting(), streaming(),
	} {
		all = append(all, subject...)
	}
	return all
}
