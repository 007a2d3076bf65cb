package onejob

import (
	"fmt"
	"strings"
)

// ownSide finds what only an operator can mend: a job parked or held, and faults
// of our own beyond their budget.
func (d *decider) ownSide() (reason BlockReason, detail string) {
	if b := d.job.Blocked; b != nil && b.Reason.NeedsUnblock() {
		return b.Reason, b.Detail
	}
	if d.held() {
		return BlockNeedsOperator, "the store was restored from a backup; this job may have gone on after it was made"
	}
	if detail, deadly := d.deadly(); deadly {
		return BlockParked, detail
	}
	faults := 0
	for i := range d.attempts {
		if a := &d.attempts[i]; ours(a) && a.StartedAt.After(d.job.UnblockedAt) {
			faults++
		}
	}
	if faults > MaxOwnFaults {
		return BlockNeedsOperator, fmt.Sprintf("%d attempts were lost on our own side", faults)
	}
	if n := len(d.attempts); n > 0 {
		a := &d.attempts[n-1]
		if a.State == AttemptCancelled && a.Ruling != nil && d.job.UnblockedAt.Before(a.Ruling.At) {
			return BlockNeedsOperator, "the attempt was ruled cancelled, but nobody asked to cancel the job"
		}
	}
	return "", ""
}

// held reports whether the job waits for a person since the store was restored.
func (d *decider) held() bool {
	return !d.job.HeldAt.IsZero() && !d.job.UnblockedAt.After(d.job.HeldAt)
}

// deadly reports whether the last attempts took their workers with them: each was
// lost with its lease, nothing of it was executed, and each had a worker of its
// own. A worker is one process's life, so a name that comes twice has survived.
func (d *decider) deadly() (detail string, deadly bool) {
	if len(d.attempts) < ParkAfter {
		return "", false
	}
	workers, lost := map[string]bool{}, make([]string, 0, ParkAfter)
	for i := range d.attempts[len(d.attempts)-ParkAfter:] {
		a := &d.attempts[len(d.attempts)-ParkAfter+i]
		if a.LeaseOverAt.IsZero() || !a.Outcome.Proven() || workers[a.Worker] || !a.StartedAt.After(d.job.UnblockedAt) {
			return "", false
		}
		workers[a.Worker] = true
		lost = append(lost, fmt.Sprintf("%d with %s", a.Number, a.Worker))
	}
	return "the last attempts were each lost with the process that worked on them: " + strings.Join(lost, ", "), true
}

// ours reports whether an attempt was lost on our own side: it failed there, or
// its worker went away and nothing was executed. What was executed is never ours
// alone.
func ours(a *Attempt) bool {
	lost := !a.LeaseOverAt.IsZero() && a.Outcome == OutcomeNotExecuted
	return lost || (a.OwnFault && a.Outcome.Proven())
}
