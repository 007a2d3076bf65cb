package onejob

import (
	"context"
	"math"
	"time"
)

// Generation tells whether a store went back in time. Its number only grows while
// the store lives on; whoever has seen a higher one is looking at a restored copy.
type Generation struct {
	Number int64
	// RestoredAt is when the store was found to have been restored from a backup,
	// by its own clock. Zero: it was not, or a person has confirmed it. Until then
	// it takes no new job and no new attempt.
	RestoredAt time.Time
	// ConfirmedAt and ConfirmedBy are of the last restore that was confirmed. Zero:
	// none was.
	ConfirmedAt time.Time
	ConfirmedBy string
}

// generationStep is how far a store moves ahead when it is found to be behind: more
// than any two nodes' knowledge lies apart. A node that was away and comes back with
// a little more than the one that found it must not take a restore that was confirmed
// since for another one.
const generationStep = 1_000_000_000

// GenerationBeyond is the number of a store that was found to be behind seen.
func GenerationBeyond(seen int64) int64 {
	if seen > math.MaxInt64-generationStep {
		return math.MaxInt64
	}
	return seen + generationStep
}

// Unconfirmed reports whether the store was restored and nobody has confirmed it.
func (g Generation) Unconfirmed() bool { return !g.RestoredAt.IsZero() }

// RestoreDeclareParams is a number that somebody has seen.
type RestoreDeclareParams struct {
	Seen  int64
	Actor string // who says so, for the audit; empty: a node, which is not in it
}

// RestoreHeld is what one batch of [RestoreStore.RestoreHold] changed.
type RestoreHeld struct {
	Attempts []AttemptRef // now unknown
	Jobs     []JobRef     // now held, those of the attempts too
}

// None reports whether there was nothing left to hold.
func (h RestoreHeld) None() bool { return len(h.Attempts) == 0 && len(h.Jobs) == 0 }

// RestoreStore is a store that can be found to have gone back in time. While its
// restore is unconfirmed it refuses to insert jobs and attempts, to mark attempts
// and to announce replays with [CodeRestoreUnconfirmed], ends no lease, and goes on
// answering everything else.
//
// An error says nothing about whether the change was made, as with [Store]; each
// method can be repeated.
type RestoreStore interface {
	// Generation reads where the store is.
	Generation(ctx context.Context) (Generation, error)
	// GenerationAdvance makes the number one higher. What follows a copy of the
	// store is told from the copy by that.
	GenerationAdvance(ctx context.Context) (Generation, error)
	// RestoreDeclare says that somebody has seen a number. A store that is behind it
	// was restored: it is unconfirmed from then on, and ahead of what was seen, at
	// [GenerationBeyond]. One
	// that is not behind stays as it is, so that many nodes may say so.
	RestoreDeclare(ctx context.Context, params RestoreDeclareParams) (Generation, error)
	// RestoreHold makes attempts in starting and running unknown, whatever their
	// workers say, and holds open jobs until a person unblocks each: the work may
	// have gone on after the copy was made. It takes at most limit of either in one
	// transaction, and changes nothing of a store that is not unconfirmed. Repeat it
	// until it answers none.
	RestoreHold(ctx context.Context, limit int) (RestoreHeld, error)
	// RestoreConfirm lets the store take work again. Held jobs stay held. It returns
	// [CodeRestoreUnconfirmed] while there is something left to hold, and changes
	// nothing of a store that is not unconfirmed.
	RestoreConfirm(ctx context.Context, actor string) (Generation, error)
}

// restoreRetryAfter is when asking a restored store again can help: a person has
// to confirm it first.
const restoreRetryAfter = 30 * time.Second

// ErrorOfRestore is the answer to new work of a store that waits for its restore
// to be confirmed.
func ErrorOfRestore() *Error {
	return &Error{
		Code: CodeRestoreUnconfirmed, RetryAfter: restoreRetryAfter,
		Message: "the store was restored from a backup, and nobody has confirmed it yet; repeat with the same idempotency key",
	}
}

// ErrorOfHold refuses to confirm a restore while open jobs are not held yet.
func ErrorOfHold() *Error {
	return &Error{
		Code: CodeRestoreUnconfirmed, RetryAfter: time.Second,
		Message: "open jobs of the restored store are not all held yet; confirm it once they are",
	}
}

// EvidenceOfRestore is why an attempt is in doubt that was under way in the copy.
const EvidenceOfRestore = "the store was restored from a backup in which this attempt was under way; what became of it is not known"

// RestoreAttempt makes an attempt unknown that was under way in a restored copy. It
// reports false for one that the event does not move.
func RestoreAttempt(a *Attempt) bool {
	next, err := a.State.Next(EventRestored)
	if err != nil {
		return false
	}
	a.State, a.Outcome, a.Evidence.Error = next, OutcomeUnknown, EvidenceOfRestore
	a.Error = &Failure{Code: FailureRestored, Message: EvidenceOfRestore}
	return true
}
