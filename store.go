package onejob

import (
	"context"
	"time"
)

// Store keeps jobs and attempts, and is the arbiter of every rule that must
// hold. Each method is one transaction and takes a batch; each row of a batch is
// judged by itself, so that one row's conflict never fails its neighbours.
//
// A method's own error (never a row's) means that nothing is known of the whole
// batch: it may or may not have been committed. It carries [CodeStoreUnavailable].
// Every method can be repeated with the same arguments to find out.
//
// Only the store's clock decides leases, expiry and quarantine. Results of a
// batch come in the order of its params.
type Store interface {
	// JobCreate inserts jobs that are new by (owner, key) and answers those that
	// exist as they are now. A repeat and a conflict are written down before they
	// are answered, so that every answer is as durable as the first. Within one
	// batch the first of a key wins and later ones compare against it.
	JobCreate(ctx context.Context, params []JobCreateParams) ([]JobCreateResult, error)
	// JobGet reads jobs with their attempts and, for a winner, its result.
	JobGet(ctx context.Context, params []JobGetParams) ([]JobResult, error)
	// JobList reads one page, newest first, without inputs and results.
	JobList(ctx context.Context, params JobListParams) (JobPage, error)
	// JobCancel asks jobs to be given up: no new attempt, those in starting
	// become cancelled, and with nothing in doubt the job is cancelled at once. A
	// job that ended otherwise answers [ErrJobTerminal].
	JobCancel(ctx context.Context, params []JobCancelParams) ([]JobResult, error)
	// JobUnblock lets jobs that need an operator, or are parked, go on.
	JobUnblock(ctx context.Context, params []JobUnblockParams) ([]JobResult, error)
	// JobDecide decides again about blocked jobs that a changed certificate or
	// configuration may free, oldest first, at most limit of them.
	JobDecide(ctx context.Context, limit int) (changed []JobRef, err error)
	// JobPurge empties the payload of terminal jobs that finished long enough
	// ago, shrinks tombstones past the life of keys, and forgets waiters that have long
	// gone, at most limit of them all.
	JobPurge(ctx context.Context, params JobPurgeParams) (purged int, err error)

	// AttemptClaim starts attempts of due jobs, at most Max of them, each in
	// state starting under a fresh token. Owners take turns: see [TakeTurns]; an
	// owner's own jobs go by priority, then longest due. Decide runs on every job
	// it touches; a job that it says to finish or block is settled so in the same
	// commit. With fewer than Max claimed and settled, no more are due.
	AttemptClaim(ctx context.Context, params AttemptClaimParams) (AttemptClaimResult, error)
	// AttemptStart starts one more attempt of a job because somebody asked: the
	// fallback button, or a racing lane.
	AttemptStart(ctx context.Context, params []AttemptStartParams) ([]AttemptStartResult, error)
	// AttemptMark moves attempts from starting to running, before anything is
	// sent. Zero rows, or an error: do not send.
	AttemptMark(ctx context.Context, params []AttemptMarkParams) ([]AttemptMarkResult, error)
	// AttemptRenew extends the leases of attempts in starting or running.
	AttemptRenew(ctx context.Context, params []AttemptRenewParams) ([]AttemptRenewResult, error)
	// AttemptFinish records what came of attempts, under their claim tokens. A
	// success takes the result slot by compare-and-swap, or is discarded. A
	// repeat with the same token answers as the first did.
	AttemptFinish(ctx context.Context, params []AttemptFinishParams) ([]AttemptFinishResult, error)
	// AttemptResolve settles unknown attempts by a ruling.
	AttemptResolve(ctx context.Context, params []AttemptResolveParams) ([]AttemptResolveResult, error)
	// AttemptExpired lists attempts in starting or running whose lease has ended,
	// at most limit of them. It changes nothing.
	AttemptExpired(ctx context.Context, limit int) ([]AttemptRef, error)
	// AttemptExpire ends those whose lease has ended, checking state and lease
	// again in the statement that acts: starting becomes failed (never sent),
	// running becomes unknown. It returns those that changed.
	AttemptExpire(ctx context.Context, refs []AttemptRef) ([]AttemptRef, error)
	// AttemptList reads attempts, newest first: one by id, or by state.
	AttemptList(ctx context.Context, params AttemptListParams) (AttemptPage, error)

	// Stats counts what is live.
	Stats(ctx context.Context) (Stats, error)
	// Check reports whether the store can be written to and its schema is the
	// one this program knows.
	Check(ctx context.Context) error
	// Close waits for what is under way and releases everything.
	Close() error
}

// JobCreator is the one thing that may be done inside a caller's own
// transaction: the job exists exactly if that transaction commits.
type JobCreator interface {
	JobCreate(ctx context.Context, params []JobCreateParams) ([]JobCreateResult, error)
}

// JobRef names a job.
type JobRef struct {
	Part uint8
	ID   string
}

// AttemptRef names an attempt.
type AttemptRef struct {
	Part  uint8
	JobID string
	ID    string
}

// JobCreateParams is one intent to record. The caller makes the id and the token.
type JobCreateParams struct {
	ID    string
	Owner string
	Part  uint8 // [PartOf] owner and key

	KeyHash   []byte // SHA-256 of the idempotency key
	KeyPrefix string // at most eight characters of it, for people

	// Fingerprint under the current version, and FingerprintFunc for a row that
	// was written under another.
	Fingerprint        []byte
	FingerprintVersion int
	FingerprintFunc    func(version int) ([]byte, error)

	// Token makes a lost acknowledgement recognisable as our own: a repeat with
	// the token of the stored row was the creation itself.
	Token string

	Kind       string
	Input      []byte
	Target     string
	Policy     Policy
	Metadata   []byte
	Priority   int
	Supersedes string
	Trace      string
	Webhooks   []Subscription // of endpoints, each at most once
	RunAfter   time.Time      // zero: now
	// Deadline, absolute. Zero: Policy.Deadline after creation, if that is set.
	Deadline time.Time

	// Refuse, when set, keeps the row from being inserted: an existing job still
	// answers, and without one Refuse is the answer. The key stays free.
	Refuse *Error

	// Start, when set, starts and marks the first attempt in the same commit,
	// provided that the job is due.
	Start *StartParams

	// Waiter, when set, writes down in the same commit that the creator waits for the
	// answer: see [WaiterStore]. A store that is none leaves it out.
	Waiter *WaiterCreateParams
}

// StartParams is what a claim needs to know of its claimer.
type StartParams struct {
	Worker  string
	Lease   time.Duration
	Targets map[string]TargetPins // the targets this worker can call
	// Since is the claimer's own clock, read before it asked: what it may send, it
	// may send until Since plus the policy's SendWithin. The store ignores it.
	Since time.Time
}

// TargetPins is what an attempt records of its target when it is marked.
type TargetPins struct {
	Digest       string
	MaxExecution time.Duration // zero: not declared
}

// JobCreateResult answers one intent. Exactly one of Job and Err is set, but for
// a conflict or an expired key, whose Err names the job.
type JobCreateResult struct {
	Job     *Job
	Existed bool
	// Started is the first attempt, marked, when Start was given and taken.
	Started *Claimed
	Err     error
}

// JobGetParams names a job and who asks. An empty Owner may see every job.
type JobGetParams struct {
	ID    string
	Owner string
	// WithInput asks for the input, which is left out otherwise.
	WithInput bool
}

// JobResult is a job as it is now, or why there is none: [ErrNotFound] also for
// another owner's job.
type JobResult struct {
	Job *Job
	Err error
}

// JobListParams filters a list. Zero members do not filter.
type JobListParams struct {
	Owner         string
	States        []JobState
	Kind          string
	Target        string // asked for, or of any attempt's
	KeyHash       []byte
	ErrorCode     string
	CreatedAfter  time.Time
	CreatedBefore time.Time

	// Before is the last job of the page before: what follows is older than it
	// by (CreatedAt, ID).
	Before *JobCursor
	Limit  int // 1 to 200
}

// JobCursor is a place in a list of jobs.
type JobCursor struct {
	CreatedAt time.Time
	ID        string
}

// JobPage is one page of a list. More is set when there are older jobs.
type JobPage struct {
	Jobs []*Job
	More bool
}

// JobCancelParams asks for one job to be given up.
type JobCancelParams struct {
	ID    string
	Owner string // empty: any
	Actor string
	// IfRevision refuses with [CodeVersionMismatch] unless the job is at it. Nil: any.
	IfRevision *int64
}

// JobUnblockParams lets one job go on.
type JobUnblockParams struct {
	ID         string
	Owner      string // empty: any
	Actor      string
	Reason     string
	IfRevision *int64
}

// JobPurgeParams says what is old enough.
type JobPurgeParams struct {
	PayloadAge time.Duration // since the job finished; zero: payloads are kept
	KeyAge     time.Duration // since creation; zero: tombstones are kept whole
	WaiterAge  time.Duration // since a waiter has gone, of who may be forgotten; zero: nobody is
	Limit      int
}

// AttemptClaimParams says what a claimer can take.
type AttemptClaimParams struct {
	StartParams
	Max int // at most so many; zero or less claims nothing

	// Owner and Kinds limit what a pull worker is given. Empty: any.
	Owner string
	Kinds []string
	// AfterOwner is where the claimer's last claim ended: owners take turns, and
	// the one after it is next. Empty: the first.
	AfterOwner string
	// Mark claims straight into running, with send_by at the end of the lease: for
	// workers out of our sight, who may begin at any moment.
	Mark bool
}

// AttemptClaimResult is what was claimed, and the jobs that were settled on the way.
type AttemptClaimResult struct {
	Claimed []Claimed
	Settled []JobRef
	// NextDue is when the next queued job becomes due. Zero: none is known.
	NextDue time.Time
	// LastOwner is the AfterOwner of the claimer's next claim.
	LastOwner string
}

// Claimed is one attempt with its job, input included.
type Claimed struct {
	Job     *Job
	Attempt Attempt
	// Since is [StartParams.Since] of an attempt that came marked. The store
	// leaves it zero.
	Since time.Time
}

// AttemptStartParams asks for one more attempt.
type AttemptStartParams struct {
	JobID  string
	Owner  string // empty: any
	Actor  string
	Target string // empty: the next in order
	Lane   int    // above 0: a racing lane

	// RequestKeyHash and RequestFingerprint bind the request to one attempt: a
	// repeat answers it, with another fingerprint it is a conflict, and a refused
	// request takes no key. Nil for a racing lane.
	RequestKeyHash     []byte
	RequestFingerprint []byte

	StartParams
	IfRevision *int64
}

// AttemptStartResult is the attempt, in starting, or why there is none.
type AttemptStartResult struct {
	Claimed *Claimed
	Existed bool
	Err     error
}

// AttemptMarkParams is the last thing before the wire.
type AttemptMarkParams struct {
	Ref        AttemptRef
	ClaimToken string
	Lease      time.Duration
	SendWithin time.Duration
	Pins       TargetPins
}

// AttemptMarkResult is the attempt, running, or [ErrClaimLost], or
// [CodeFailoverNotCertified] when what let it start has ended since: the attempt has
// then failed, with nothing sent, and its job was decided again.
type AttemptMarkResult struct {
	Attempt Attempt
	Err     error
}

// AttemptRenewParams extends one lease by Lease from now.
type AttemptRenewParams struct {
	Ref        AttemptRef
	Owner      string // empty: any; another's attempt is [ErrNotFound]
	ClaimToken string
	Lease      time.Duration
	// Within keeps the lease from ending later than so long after the attempt was
	// marked. When that is over the attempt is no longer held. Zero: there is no bound.
	Within time.Duration
	// MoveSendBy moves send_by with the lease, and quarantine with it, of an attempt
	// that was claimed marked. They never move back.
	MoveSendBy bool
}

// AttemptRenewResult is [ErrClaimLost] when the attempt is no longer held, and
// says whether its job is to be cancelled.
type AttemptRenewResult struct {
	CancelRequested bool
	Err             error
}

// AttemptFinishParams is what came of one attempt.
type AttemptFinishParams struct {
	Ref        AttemptRef
	Owner      string // empty: any; another's attempt is [ErrNotFound]
	ClaimToken string

	Outcome  Outcome
	Phase    Phase
	Evidence Evidence
	Failure  *Failure
	Next     Next
	OwnFault bool
	// RetryAfter counts from now, by the store's clock. Zero: unsaid.
	RetryAfter time.Duration

	Result     *Result // with OutcomeSucceeded
	ProviderID string
	CostMicros int64
	Currency   string
	Usage      []byte
}

// AttemptFinishResult is where the attempt and its job stand now. An attempt that
// this outcome could not move is [ErrClaimLost]; State then is what it was.
type AttemptFinishResult struct {
	State     AttemptState
	JobState  JobState
	Discarded *Discarded // the success lost
	Incident  EventKind  // empty: none
	// Due is when the job's next attempt is due. Zero: none is.
	Due time.Time
	// Won is set by a success that took the slot, where the store knows it without
	// reading the job again. Nil says nothing.
	Won *Won
	Err error
}

// Won is what taking the result slot wrote.
type Won struct {
	Revision int64 // of the job, after it
	At       time.Time
}

// AttemptResolveParams is one ruling. Who rules must already be allowed to.
type AttemptResolveParams struct {
	ID    string
	Owner string // empty: any
	Actor string

	// Outcome is succeeded, not_executed, executed_failed, cancelled or
	// result_lost (a success whose result cannot be had).
	Outcome         Outcome
	Evidence        string
	Result          *Result // with OutcomeSucceeded
	AcknowledgeRisk bool
	IfRevision      *int64 // of the job
}

// AttemptResolveResult answers with the attempt and its job as they are after
// the ruling.
type AttemptResolveResult struct {
	Attempt *Attempt
	Job     *Job
	Err     error
}

// AttemptListParams picks attempts. Zero members do not filter.
type AttemptListParams struct {
	ID     string
	JobID  string // oldest first
	Owner  string
	States []AttemptState
	Before *JobCursor // by (StartedAt, ID)
	Limit  int        // 1 to 200
	// WithResult asks for answers, which are left out otherwise.
	WithResult bool
}

// AttemptPage is one page of attempts.
type AttemptPage struct {
	Attempts []Attempt
	More     bool
}

// Stats counts live rows.
type Stats struct {
	Jobs            map[JobState]int64 // queued, running and blocked only
	Blocked         map[BlockReason]int64
	UnknownByTarget map[string]int64
	OldestUnknown   time.Time // since when the oldest unknown attempt is unknown; zero: none
	OldestQueued    time.Time // run_after of the job longest due; zero: none

	PendingDeliveries int64     // webhooks that are to be sent, those to disabled endpoints too
	OldestDelivery    time.Time // since when the oldest of them waits: made or resent; zero: none
}
