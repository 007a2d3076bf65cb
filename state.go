package onejob

import "slices"

// JobState is where a job stands. It is a pure function of the job and its
// attempts, written in the transaction that changes them.
type JobState string

const (
	// JobQueued waits for an attempt to start, now or at its run_after.
	JobQueued JobState = "queued"
	// JobRunning has an attempt in starting or running.
	JobRunning JobState = "running"
	// JobBlocked needs a ruling, a certificate or a person; see [BlockReason].
	JobBlocked JobState = "blocked"
	// JobSucceeded has its one result. Terminal.
	JobSucceeded JobState = "succeeded"
	// JobFailed ended with nothing in doubt and no result. Terminal.
	JobFailed JobState = "failed"
	// JobCancelled was given up on request, with nothing in doubt. Terminal.
	JobCancelled JobState = "cancelled"
)

// JobStates lists every job state, in the order of a job's life.
func JobStates() []JobState {
	return []JobState{JobQueued, JobRunning, JobBlocked, JobSucceeded, JobFailed, JobCancelled}
}

// Terminal reports whether the state never changes again.
func (s JobState) Terminal() bool {
	return s == JobSucceeded || s == JobFailed || s == JobCancelled
}

// BlockReason says what a blocked job waits for.
type BlockReason string

const (
	// BlockAttemptUnknown : an attempt's outcome is not known; only evidence from
	// the provider or a ruling may settle it.
	BlockAttemptUnknown BlockReason = "attempt_unknown"
	// BlockFailoverNotCertified : the next target has no proof that it may stand in.
	BlockFailoverNotCertified BlockReason = "failover_not_certified"
	// BlockFailoverUnproven : the kind has an effect and it is not proven that the
	// last attempt did nothing.
	BlockFailoverUnproven BlockReason = "failover_unproven"
	// BlockTargetsExhaustedUnproven : no target is left, and a ruling that
	// acknowledged a risk is all that says nothing happened.
	BlockTargetsExhaustedUnproven BlockReason = "targets_exhausted_unproven"
	// BlockParked : the job's attempts repeatedly killed the process.
	BlockParked BlockReason = "parked"
	// BlockNeedsOperator : our own side failed too often, or a ruling left the
	// job without a way on.
	BlockNeedsOperator BlockReason = "needs_operator"
)

// BlockReasons lists every reason a job may be blocked for.
func BlockReasons() []BlockReason {
	return []BlockReason{
		BlockAttemptUnknown, BlockFailoverNotCertified, BlockFailoverUnproven,
		BlockTargetsExhaustedUnproven, BlockParked, BlockNeedsOperator,
	}
}

// NeedsUnblock reports whether only [Client.Unblock] (or the end of the job)
// leaves a block of this reason.
func (r BlockReason) NeedsUnblock() bool {
	return r == BlockParked || r == BlockNeedsOperator
}

// AttemptState is where one try stands. [AttemptState.Next] is the whole life.
type AttemptState string

const (
	// AttemptStarting is claimed; nothing has left.
	AttemptStarting AttemptState = "starting"
	// AttemptRunning is marked: bytes may have left.
	AttemptRunning AttemptState = "running"
	// AttemptUnknown may or may not have had its effect. Not terminal, and it
	// blocks every other attempt in its lane.
	AttemptUnknown AttemptState = "unknown"
	// AttemptSucceeded won the job's result slot. Terminal.
	AttemptSucceeded AttemptState = "succeeded"
	// AttemptDiscarded succeeded after the slot was taken or the job had closed. Terminal.
	AttemptDiscarded AttemptState = "discarded"
	// AttemptFailed is proven not to have succeeded. Terminal, but for the one exit of a ruling proven wrong.
	AttemptFailed AttemptState = "failed"
	// AttemptCancelled is proven to have been given up. Terminal, with the same exit.
	AttemptCancelled AttemptState = "cancelled"
)

// AttemptStates lists every attempt state, in the order of an attempt's life.
func AttemptStates() []AttemptState {
	return []AttemptState{
		AttemptStarting, AttemptRunning, AttemptUnknown,
		AttemptSucceeded, AttemptDiscarded, AttemptFailed, AttemptCancelled,
	}
}

// InDoubt reports whether an attempt in this state may still have an effect that
// nobody has recorded. At most one attempt of a job and lane is in doubt.
func (s AttemptState) InDoubt() bool {
	return s == AttemptStarting || s == AttemptRunning || s == AttemptUnknown
}

// Terminal reports whether the state ends an attempt. It is computed from the
// transition table, leaving out the exit of a ruling proven wrong.
func (s AttemptState) Terminal() bool {
	return !slices.ContainsFunc(attemptTransitions, func(t attemptTransition) bool {
		return t.from == s && !t.ruled
	})
}
