package onejob

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// Client records intents and asks about them. It executes nothing: an engine on
// the same store does. It is safe for concurrent use.
type Client struct {
	store Store
	opts  Options
	turns turns // among owners, of the workers that take anybody's jobs

	fingerprints *fingerprinter
}

// New returns a client of store. It returns [CodeInvalidArgument] with all that
// is wrong with opts at once.
func New(store Store, opts Options) (*Client, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Client{store: store, opts: opts, fingerprints: newFingerprinter(opts.Secret)}, nil
}

// SubmitParams is one intent. Owner, Key, Kind and Input are required.
type SubmitParams struct {
	Owner string
	Key   string // idempotency key, 1 to 255 printable ASCII characters, unique per owner for ever
	Kind  string
	Input []byte // one JSON value; the provider gets these bytes

	Target     string    // one of the kind's targets; empty: the first
	Metadata   []byte    // a JSON object; not part of the intent
	Priority   int       // -100 to 100, higher first among the owner's own jobs; not part of the intent
	RunAfter   time.Time // zero: now
	Deadline   time.Time // no attempt starts after it; zero: what the kind says
	Supersedes string    // id of a terminal job of the same owner that this one replaces
	Trace      string    // a W3C traceparent; not part of the intent

	// Webhook is the URL of the one endpoint to be told about the job, not part of
	// the intent. Empty: every endpoint that is told about the owner's jobs.
	Webhook string

	// Refuse is why the intent is refused if it would be a new job. A key that was used
	// answers all the same. Nil: it is not.
	Refuse *Error
}

// SubmitResult is the job of one intent as it is now, or why there is none.
type SubmitResult struct {
	Job *Job
	// Existed says that the key had been used before, with the same intent.
	Existed bool
	Err     error
}

// Submit records the intent p and returns its job. It is safe to repeat: a
// second call with the same owner, key and intent returns the same job as it is
// then, with existed true, and starts nothing.
//
// Submit returns [ErrKeyConflict] if the key was used with another intent, in
// whatever state that job is, and [ErrKeyExpired] once its payload is gone. An
// existing job answers ahead of every complaint about kind, target or quota.
// [CodeInvalidJob], [CodePayloadNotCanonical], [CodePayloadTooLarge] and the
// refusals of Options.AdmitFunc leave the key free.
//
// After [ErrStoreUnavailable], or when ctx ends first, the job may or may not
// have been recorded; repeat the call with the same key to find out.
func (c *Client) Submit(ctx context.Context, p SubmitParams) (job *Job, existed bool, err error) {
	r := c.SubmitBatch(ctx, []SubmitParams{p})[0]
	return r.Job, r.Existed, r.Err
}

// SubmitBatch records many intents, each judged by itself as [Client.Submit]
// does. Of two with the same owner and key the first wins.
func (c *Client) SubmitBatch(ctx context.Context, params []SubmitParams) []SubmitResult {
	results := make([]SubmitResult, len(params))
	var rows []JobCreateParams
	var index []int // which result each row answers
	for i := range params {
		row, err := c.prepare(ctx, &params[i])
		if err != nil {
			results[i].Err = err
			continue
		}
		rows, index = append(rows, row), append(index, i)
	}
	if len(rows) == 0 {
		return results
	}
	for n, r := range c.record(ctx, rows) {
		results[index[n]] = SubmitResult{Job: r.Job, Existed: r.Existed, Err: r.Err}
	}
	return results
}

// prepare checks an intent in the documented order: what is malformed is refused
// here; what only guards the insert becomes Refuse, so that an existing job
// answers ahead of it.
func (c *Client) prepare(ctx context.Context, p *SubmitParams) (JobCreateParams, error) {
	if err := c.checkSubmit(p); err != nil {
		return JobCreateParams{}, err
	}
	key, err := ParseKey(p.Key)
	if err != nil {
		return JobCreateParams{}, err
	}
	in := intentOf(p)
	fingerprint, err := c.fingerprints.bind(&in, FingerprintVersion)
	if err != nil {
		return JobCreateParams{}, err
	}
	return c.row(ctx, p, key, &in, fingerprint)
}

// checkSubmit finds what is wrong with an intent before anything of it is read.
func (c *Client) checkSubmit(p *SubmitParams) error {
	if p.Owner == "" || p.Owner == InstanceOwner {
		return &Error{Code: CodeInvalidArgument, Message: fmt.Sprintf("Owner is empty or the reserved name %q", InstanceOwner)}
	}
	if len(p.Input) > c.opts.MaxInputBytes {
		return &Error{Code: CodePayloadTooLarge, Message: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(p.Input), c.opts.MaxInputBytes)}
	}
	return nil
}

// row is what is recorded of an intent under a key that was parsed.
func (c *Client) row(ctx context.Context, p *SubmitParams, key string, in *intent, fingerprint []byte) (JobCreateParams, error) {
	if err := checkMetadata(p.Metadata); err != nil {
		return JobCreateParams{}, err
	}
	part := PartOf(p.Owner, key)
	kind, refuse := c.admit(ctx, p)
	subscriptions, unknown := c.subscriptions(p)
	if refuse == nil {
		refuse = unknown
	}
	return JobCreateParams{
		ID: NewJobID(part, c.opts.NowFunc()), Owner: p.Owner, Part: part,
		KeyHash: HashKey(key), KeyPrefix: keyPrefix(key),
		Fingerprint: fingerprint, FingerprintVersion: FingerprintVersion,
		FingerprintFunc: func(version int) ([]byte, error) { return c.fingerprints.bind(in, version) },
		Token:           NewToken(),
		Kind:            p.Kind, Input: p.Input, Target: p.Target, Policy: kind.Policy,
		Metadata: p.Metadata, Priority: p.Priority, Supersedes: p.Supersedes, Trace: p.Trace,
		Webhooks: subscriptions,
		RunAfter: p.RunAfter, Deadline: p.Deadline,
		Refuse: refuse,
	}, nil
}

func checkMetadata(metadata []byte) error {
	if len(metadata) == 0 {
		return nil
	}
	canonical, err := Canonical(metadata)
	if err == nil && canonical[0] != '{' {
		err = &Error{Code: CodeInvalidRequest, Message: "metadata is not a JSON object"}
	}
	return err
}

// admit finds the kind and says why a new job of it would be refused.
func (c *Client) admit(ctx context.Context, p *SubmitParams) (Kind, *Error) {
	kind, known := c.opts.Kinds[p.Kind]
	if p.Refuse != nil {
		return kind, p.Refuse
	}
	if !known {
		return kind, &Error{Code: CodeInvalidJob, Message: fmt.Sprintf("there is no kind %q; %s", p.Kind, c.kindNames())}
	}
	if p.Target != "" && !slices.Contains(kind.Policy.Targets, p.Target) {
		return kind, &Error{Code: CodeInvalidJob, Message: fmt.Sprintf("kind %q has no target %q; it has %s", p.Kind, p.Target, list(kind.Policy.Targets))}
	}
	if p.Priority < -100 || p.Priority > 100 {
		return kind, &Error{Code: CodeInvalidJob, Message: "priority is not between -100 and 100"}
	}
	if kind.CheckFunc != nil {
		if err := kind.CheckFunc(p.Input); err != nil {
			return kind, &Error{Code: CodeInvalidJob, Message: "the input does not fit the kind: " + err.Error(), Err: err}
		}
	}
	if c.opts.AdmitFunc != nil {
		return kind, c.opts.AdmitFunc(ctx, p.Owner, len(p.Input))
	}
	return kind, nil
}

// subscriptions finds the endpoints that are told about a job.
func (c *Client) subscriptions(p *SubmitParams) ([]Subscription, *Error) {
	if c.opts.SubscribeFunc != nil {
		return c.opts.SubscribeFunc(p.Owner, p.Webhook)
	}
	if p.Webhook != "" {
		return nil, &Error{Code: CodeInvalidJob, Message: "no webhook endpoint is registered here"}
	}
	return nil, nil
}

// InTx is a client inside a transaction of the caller's.
type InTx struct {
	client *Client
	tx     JobCreator
}

// In returns a client that submits inside a caller's own transaction: see
// postgres.Tx and sqlite.Tx.
func (c *Client) In(tx JobCreator) InTx { return InTx{client: c, tx: tx} }

// Submit records the intent p in the caller's transaction: the job exists
// exactly if that commits, and a rollback forgets it. The answer is provisional
// until then. It starts nothing and waits for no other caller; an engine finds
// the job after the commit. The errors are those of [Client.Submit]; after any
// error of the store the transaction is to be rolled back and may be repeated.
func (t InTx) Submit(ctx context.Context, p SubmitParams) (job *Job, existed bool, err error) {
	row, err := t.client.prepare(ctx, &p)
	if err != nil {
		return nil, false, err
	}
	created, err := t.tx.JobCreate(ctx, []JobCreateParams{row})
	if err != nil {
		return nil, false, Unavailable(err)
	}
	return created[0].Job, created[0].Existed, created[0].Err
}

// Get returns a job with its attempts and, once it has one, its result. An empty
// owner may see every job; for anybody else another owner's job is [ErrNotFound].
func (c *Client) Get(ctx context.Context, owner, id string) (*Job, error) {
	return one(c.store.JobGet(ctx, []JobGetParams{{ID: id, Owner: owner}}))
}

// List returns one page of jobs, newest first, without inputs and results. An
// empty Owner lists everybody's.
func (c *Client) List(ctx context.Context, p JobListParams) (JobPage, error) {
	page, err := c.store.JobList(ctx, p)
	return page, Unavailable(err)
}

// Cancel asks for a job to be given up. It forbids new attempts; an attempt in
// doubt ends by itself, and if it succeeds after all, so does the job. With
// nothing in doubt the job is cancelled at once. It is safe to repeat.
func (c *Client) Cancel(ctx context.Context, p JobCancelParams) (*Job, error) {
	job, err := one(c.store.JobCancel(ctx, []JobCancelParams{p}))
	c.changed(job)
	if err == nil && !job.State.Terminal() {
		c.opts.Signals.CancelAsked(job.ID)
	}
	return job, err
}

// Unblock lets a job go on that needs an operator or is parked. It returns
// [ErrAttemptUnresolved] while something is in doubt.
func (c *Client) Unblock(ctx context.Context, p JobUnblockParams) (*Job, error) {
	job, err := one(c.store.JobUnblock(ctx, []JobUnblockParams{p}))
	c.changed(job)
	return job, err
}

// StartAttemptParams is one press of the fallback button.
type StartAttemptParams struct {
	JobID  string
	Owner  string // empty: any
	Actor  string
	Key    string // of this press; a repeat answers the same attempt
	Target string // empty: the next in order

	IfRevision *int64
}

// StartAttempt starts one more attempt of a job because somebody asked. It goes
// by the same rules as the job itself, but does not wait out a backoff. It
// returns [ErrAttemptUnresolved] while an attempt is in doubt,
// [CodeFailoverNotCertified] with the candidates when no target may take over,
// and [ErrJobTerminal]. A refused press takes no key.
func (c *Client) StartAttempt(ctx context.Context, p StartAttemptParams) (attempt Attempt, existed bool, err error) {
	key, err := ParseKey(p.Key)
	if err != nil {
		return Attempt{}, false, err
	}
	start, reserved := StartParams{}, false
	if c.opts.Starter != nil {
		if start, reserved = c.opts.Starter.Await(ctx); !reserved {
			return Attempt{}, false, &Error{Code: CodeOverloaded, Message: "every slot is taken; ask again with the same key", RetryAfter: time.Second}
		}
	}
	results, err := c.store.AttemptStart(ctx, []AttemptStartParams{{
		JobID: p.JobID, Owner: p.Owner, Actor: p.Actor, Target: p.Target, IfRevision: p.IfRevision,
		RequestKeyHash: HashKey(key), RequestFingerprint: c.fingerprintRequest(p),
		StartParams: start,
	}})
	if err == nil {
		err = results[0].Err
	}
	dispatched := err == nil && !results[0].Existed && reserved
	if dispatched {
		c.opts.Starter.Dispatch(*results[0].Claimed)
	} else if reserved {
		c.opts.Starter.Release()
	}
	if err != nil {
		return Attempt{}, false, Unavailable(err)
	}
	c.opts.Signals.JobChanged(p.JobID)
	return results[0].Claimed.Attempt, results[0].Existed, nil
}

func (c *Client) fingerprintRequest(p StartAttemptParams) []byte {
	mac := hmac.New(sha256.New, c.opts.Secret)
	_, _ = fmt.Fprintf(mac, `{"job":%s,"operation":"attempt","target":%s,"v":1}`, quote(p.JobID), quote(p.Target))
	return mac.Sum(nil)
}

// Attempts returns one page of attempts: of one job oldest first, otherwise by
// state newest first.
func (c *Client) Attempts(ctx context.Context, p AttemptListParams) (AttemptPage, error) {
	page, err := c.store.AttemptList(ctx, p)
	return page, Unavailable(err)
}

// Attempt returns one attempt with its own answer, or [ErrNotFound].
func (c *Client) Attempt(ctx context.Context, owner, id string) (Attempt, error) {
	page, err := c.store.AttemptList(ctx, AttemptListParams{ID: id, Owner: owner, Limit: 1, WithResult: true})
	if err != nil {
		return Attempt{}, Unavailable(err)
	}
	if len(page.Attempts) == 0 {
		return Attempt{}, ErrorOfNoAttempt(id)
	}
	return page.Attempts[0], nil
}

// Resolve settles an unknown attempt by a person's ruling. A success needs its
// result; a failure needs the end of quarantine and what it proves. The job then
// goes on by itself. Of two people at once one is answered [CodeAttemptTerminal].
//
// A success passes the contract of the job's kind, or is refused with
// [CodeInvalidResolution].
func (c *Client) Resolve(ctx context.Context, p AttemptResolveParams) (*Attempt, *Job, error) {
	if err := c.checkResolved(ctx, &p); err != nil {
		return nil, nil, err
	}
	results, err := c.store.AttemptResolve(ctx, []AttemptResolveParams{p})
	if err != nil {
		return nil, nil, Unavailable(err)
	}
	c.changed(results[0].Job)
	return results[0].Attempt, results[0].Job, results[0].Err
}

// Stats counts what is live in the store.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	stats, err := c.store.Stats(ctx)
	return stats, Unavailable(err)
}

// Check reports whether the store can be written to.
func (c *Client) Check(ctx context.Context) error { return Unavailable(c.store.Check(ctx)) }

// MaxInputBytes is the largest input that [Client.Submit] takes.
func (c *Client) MaxInputBytes() int { return c.opts.MaxInputBytes }

// changed tells watchers and the engine about a job that a person moved.
func (c *Client) changed(job *Job) {
	if job == nil {
		return
	}
	c.opts.Signals.JobChanged(job.ID)
	if job.State == JobQueued {
		c.opts.Signals.WorkReady()
	}
}

func one(results []JobResult, err error) (*Job, error) {
	if err != nil {
		return nil, Unavailable(err)
	}
	return results[0].Job, results[0].Err
}
