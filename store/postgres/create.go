package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// createTries bounds how often an intent is tried whose key was seen taken and
// then found free, because its other creator rolled back.
const createTries = 3

// JobCreate implements [onejob.Store]. New intents cost one round trip and one
// commit for all of them; repeats cost three more, in a transaction of their own.
func (s *Store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	c := newCreating(params)
	for len(c.pending()) > 0 {
		plain, superseding := c.leaders()
		if err := s.each(ctx, plain, c.insert, c.fail); err != nil {
			return nil, err
		}
		for _, row := range superseding { // each locks another job: alone, so that they cannot wait for each other
			if err := s.each(ctx, []int{row}, c.supersede, c.fail); err != nil {
				return nil, err
			}
		}
		if len(c.pending()) == 0 {
			break
		}
		found, err := c.find(ctx, s.pool)
		if err != nil {
			return nil, onejob.Unavailable(err)
		}
		if err := s.each(ctx, found, c.repeat, c.fail); err != nil {
			return nil, err
		}
	}
	return c.results, nil
}

// joined creates jobs inside a caller's own transaction.
type joined struct{ tx pgx.Tx }

// JobCreate implements [onejob.JobCreator].
func (j *joined) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	params = slices.Clone(params)
	for i := range params {
		params[i].Start = nil // nothing may be sent before the caller commits
	}
	c := newCreating(params)
	t := &txn{db: j.tx}
	for len(c.pending()) > 0 {
		plain, superseding := c.leaders()
		if err := c.insert(ctx, t, plain); err != nil {
			return nil, joinedError(err)
		}
		for _, row := range superseding {
			if err := c.supersede(ctx, t, []int{row}); err != nil {
				return nil, joinedError(err)
			}
		}
		found, err := c.find(ctx, j.tx)
		if err != nil {
			return nil, joinedError(err)
		}
		if err := c.repeat(ctx, t, found); err != nil {
			return nil, joinedError(err)
		}
	}
	return c.results, nil
}

// joinedError is what a caller's transaction hears, which is over with the first
// error: roll it back, and do the whole of it again if the code says so.
func joinedError(err error) error {
	if !ofRow(err) {
		return onejob.Unavailable(err)
	}
	e := rowError(err)
	if onejob.CodeOf(e) == onejob.CodeStoreUnavailable {
		return &onejob.Error{
			Code: onejob.CodeStoreUnavailable, RetryAfter: time.Second, Err: err,
			Message: "another transaction is in the way; roll back and repeat the whole transaction",
		}
	}
	return e
}

// creating is one call of JobCreate: intents, most of them settled in the first
// round. A round inserts the first pending intent of every key; whatever is still
// pending then looks its key up, and an existing job answers. So later intents of
// a batch compare against the first, and an intent whose key turns out free after
// all leads in the next round.
type creating struct {
	intents []intent
	results []onejob.JobCreateResult
	pins    []*pinned
}

type intent struct {
	*onejob.JobCreateParams
	key    string
	pinned *pinned
	refuse *onejob.Error // why it may not be inserted; an existing job still answers
	first  *onejob.Claimed
	target string // the first
	tries  int
	led    bool // in this round
	done   bool
	stored *stored // the row under its key
}

func newCreating(params []onejob.JobCreateParams) *creating {
	c := &creating{intents: make([]intent, len(params)), results: make([]onejob.JobCreateResult, len(params))}
	params = slices.Clone(params) // the caller's own stay as they are
	for i := range params {
		p := &params[i]
		c.intents[i] = intent{
			JobCreateParams: p, refuse: p.Refuse,
			key: keyOf(p.Part, p.Owner, p.KeyHash),
		}
		in := &c.intents[i]
		if !in.storable() {
			c.fail(i, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the store does not take this row: a text in it is not UTF-8, or holds NUL"})
			continue
		}
		in.pinned = c.pin(&p.Policy)
		if in.refuse == nil {
			in.refuse = in.prepare()
		}
	}
	return c
}

// storable reports whether the intent can be in the database at all. One that
// cannot is under no key either.
func (in *intent) storable() bool {
	for _, w := range in.Webhooks {
		if !storable(w.Endpoint) || !storable(w.Events...) {
			return false
		}
	}
	if w := in.Waiter; w != nil && !storable(w.Route, w.Token) {
		return false
	}
	return storable(in.ID, in.Owner, in.KeyPrefix, in.Token, in.Kind, in.Target, in.Supersedes, in.Trace)
}

// prepare makes the attempt that is to start with the job, or says why the intent
// may not be inserted. An existing job answers ahead of that.
func (in *intent) prepare() *onejob.Error {
	if in.Priority < math.MinInt16 || in.Priority > math.MaxInt16 {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "priority is out of range"}
	}
	if err := in.pinned.invalid; err != nil {
		return &onejob.Error{Code: onejob.CodeOf(err), Message: "the policy is not valid", Err: err}
	}
	// Before everything, so that neither a backoff nor a deadline stands in the way.
	job := in.job()
	d := onejob.Decide(&job, nil, nil, time.Time{}, onejob.Ask{Now: true})
	if d.Verb != onejob.Start || d.Target == "" {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the policy names no target to start at"}
	}
	in.target = d.Target
	if in.Start == nil {
		return nil
	}
	if _, callable := in.Start.Targets[d.Target]; callable {
		in.first = &onejob.Claimed{Attempt: onejob.NewAttempt(&job, nil, d, *in.Start, time.Time{})} // its times are the database's
	}
	return nil
}

// job is what the intent becomes, without what only the database knows.
func (in *intent) job() onejob.Job {
	return onejob.Job{
		Part: in.Part, ID: in.ID, Owner: in.Owner,
		KeyHash: in.KeyHash, KeyPrefix: in.KeyPrefix,
		Fingerprint: in.Fingerprint, FingerprintVersion: in.FingerprintVersion,
		Kind: in.Kind, Target: in.Target, Policy: in.Policy, Metadata: in.Metadata,
		Priority: in.Priority, Supersedes: in.Supersedes, Trace: in.Trace, Webhooks: in.Webhooks,
		State: onejob.JobQueued, Version: 1, Revision: 1,
	}
}

func (c *creating) fail(row int, err error) { c.settle(row, onejob.JobCreateResult{Err: err}) }

func (c *creating) settle(row int, r onejob.JobCreateResult) {
	c.results[row] = r
	c.intents[row].done = true
}

func (c *creating) pending() []int {
	var rows []int
	for i := range c.intents {
		if !c.intents[i].done {
			rows = append(rows, i)
		}
	}
	return rows
}

// leaders returns the first pending intent of every key, in the order of locking:
// those to insert, and those that supersede another job. One that may not be
// inserted leads nowhere, but is looked up.
func (c *creating) leaders() (plain, superseding []int) {
	seen := map[string]bool{}
	for _, row := range c.pending() {
		in := &c.intents[row]
		in.led = !seen[in.key]
		seen[in.key] = true
		switch {
		case !in.led || in.refuse != nil:
		case in.Supersedes != "":
			superseding = append(superseding, row)
		default:
			plain = append(plain, row)
		}
	}
	slices.SortFunc(plain, func(a, b int) int { return compareKeys(&c.intents[a], &c.intents[b]) })
	return plain, superseding
}

func compareKeys(a, b *intent) int {
	return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Owner, b.Owner), bytes.Compare(a.KeyHash, b.KeyHash))
}

// supersede inserts one intent that replaces another job, or leaves it pending
// with a reason to refuse it: a job that exists under its key still answers.
func (c *creating) supersede(ctx context.Context, t *txn, rows []int) error {
	in := &c.intents[rows[0]]
	ref, ok := refOf(in.Supersedes)
	if !ok {
		in.refuse = noJob(in.Supersedes)
		return nil
	}
	b := t.batch()
	l := load(b, []onejob.JobRef{ref}, loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	if in.refuse = refusalToSupersede(l.job(ref), in); in.refuse != nil {
		return t.commit(ctx, t.batch())
	}
	return c.insertSuperseding(ctx, t, rows[0], ref)
}

func refusalToSupersede(old *onejob.Job, in *intent) *onejob.Error {
	if old == nil || old.Owner != in.Owner {
		return noJob(in.Supersedes)
	}
	var refusal *onejob.Error
	if err := onejob.CheckSuperseded(old); err != nil && !errors.As(err, &refusal) {
		return &onejob.Error{Code: onejob.CodeInvalidJob, JobID: old.ID, Err: err}
	}
	return refusal
}

func noJob(id string) *onejob.Error {
	e := &onejob.Error{}
	_ = errors.As(onejob.ErrorOfNoJob(id), &e)
	return e
}

// Zero rows: somebody superseded it first, or the new job was not inserted.
const sqlJobSupersede = `
UPDATE job_states
   SET superseded_by = $3, version = version + 1, revision = revision + 1
 WHERE part = $1 AND job_id = $2 AND superseded_by IS NULL
   AND state IN ('succeeded', 'failed', 'cancelled')
   AND EXISTS (SELECT FROM jobs WHERE part = $4 AND id = $3)`

func (c *creating) insertSuperseding(ctx context.Context, t *txn, row int, old onejob.JobRef) error {
	in := &c.intents[row]
	b := t.batch()
	answers := c.queueInsert(b, []int{row})
	c.queueWaiters(b, []int{row})
	var swapped int64
	b.Queue(sqlJobSupersede, int16(old.Part), old.ID, in.ID, int16(in.Part)).Exec(affected(&swapped))
	if err := t.send(ctx, b); err != nil {
		return c.refuseByRestore(t, []int{row}, err)
	}
	if len(*answers) > 0 && swapped == 0 {
		return spoiled{&onejob.Error{Code: onejob.CodeInvalidJob, JobID: old.ID, Message: "the job was superseded by another"}}
	}
	if err := t.commit(ctx, t.batch()); err != nil {
		return err
	}
	c.settleInserted(*answers)
	return nil
}
