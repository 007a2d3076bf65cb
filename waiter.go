package onejob

import (
	"context"
	"time"
)

// WaiterStore knows who waits for the answer of a job that came without a key, so
// that a retry which has no key either finds the job that its first try made. A store
// may do without: then every call without a key is a new job.
//
// A job has at most one waiter, written by the commit that creates it and named by a
// random token. It holds a lease while its caller is there. Once the caller has gone
// without the answer, or the lease is over without word, another call that is alike
// may take the job over; once the answer was delivered nobody may, ever.
type WaiterStore interface {
	// WaiterTake takes over one job of the same owner, route and fingerprint whose
	// waiter has gone, longest gone first: of many callers at once one has it. It
	// reports false when there is none. A repeat with the same token takes the same job.
	WaiterTake(ctx context.Context, params WaiterTakeParams) (ref JobRef, taken bool, err error)
	// WaiterRenew extends leases, each from now. It reports which of the waiters still
	// wait for their job; those that have gone, or were taken over from, do not.
	WaiterRenew(ctx context.Context, params []WaiterRenewParams) (held []bool, err error)
	// WaiterEnd ends waitings, and reports which it did: those that were held.
	WaiterEnd(ctx context.Context, params []WaiterEndParams) (ended []bool, err error)
}

// Waiter is one caller's waiting for the answer of one job.
type Waiter struct {
	JobRef
	Token string // random, of this caller alone
}

// WaiterCreateParams records with a new job that its creator waits for the answer.
type WaiterCreateParams struct {
	Route string // where the call came in
	Token string
	Lease time.Duration // how long the caller is taken to be there without news
}

// WaiterTakeParams is a call that may take over the job of one that was alike.
type WaiterTakeParams struct {
	Part        uint8
	Owner       string
	Route       string
	Fingerprint []byte
	Token       string        // of the caller who takes over
	Lease       time.Duration // as in [WaiterCreateParams]
	// Within is how long after its waiter has gone a job may be taken over.
	Within time.Duration
}

// WaiterRenewParams extends one lease by Lease from now.
type WaiterRenewParams struct {
	Waiter
	Lease time.Duration
}

// WaiterEndParams ends one waiting.
type WaiterEndParams struct {
	Waiter
	// Delivered says that the caller has the answer: nobody takes the job over then.
	// Otherwise the caller left without it, now.
	Delivered bool
}

// KeylessParams is an intent that came without a key. Two are alike if owner, Route,
// kind, target and input are.
type KeylessParams struct {
	SubmitParams        // but for its Key, which is made
	Route        string // where the call came in

	// Lease is how long the caller is taken to wait without [Client.KeepWaiting].
	// Zero means [DefaultWaiterLease].
	Lease time.Duration
	// TakeOverWithin lets the call take over a job whose caller went without the answer,
	// at most so long ago. Zero: it is an intent of its own.
	TakeOverWithin time.Duration
}

const (
	// DefaultWaiterLease is how long a caller is taken to wait without news.
	DefaultWaiterLease = 30 * time.Second
	// MaxTakeOverWithin is the longest that a job can be taken over after its caller
	// has gone: what is older is forgotten.
	MaxTakeOverWithin = 24 * time.Hour
)

// KeylessResult is the job of an intent that came without a key, as it is now.
type KeylessResult struct {
	Job *Job
	// TakenOver says that an earlier call made it, which went without its answer.
	TakenOver bool
	Watch     *Watch // to be stopped
	// Waiter is the caller's waiting, to be ended by [Client.StopWaiting].
	Waiter Waiter
}

// SubmitKeyless records an intent that came without a key, under one that is made for
// it. With TakeOverWithin it first looks for the job of a call that was alike and
// whose caller went without the answer; it takes at most one over, and nobody else is
// given the same. The caller then says that it goes on waiting, and how that ended.
//
// The part of such jobs comes from owner, route and intent, so that those that are
// alike lie together. The errors are those of [Client.Submit].
func (c *Client) SubmitKeyless(ctx context.Context, p KeylessParams) (KeylessResult, error) {
	if err := c.checkSubmit(&p.SubmitParams); err != nil {
		return KeylessResult{}, err
	}
	in := intentOf(&p.SubmitParams)
	fingerprint, err := c.fingerprints.bind(&in, FingerprintVersion)
	if err != nil {
		return KeylessResult{}, err
	}
	fill(&p.Lease, DefaultWaiterLease)
	take := WaiterTakeParams{
		Part: PartOf(p.Owner, p.Route+"\x00"+string(fingerprint)), Owner: p.Owner, Route: p.Route,
		Fingerprint: fingerprint, Token: NewToken(), Lease: p.Lease, Within: min(p.TakeOverWithin, MaxTakeOverWithin),
	}
	if take.Within > 0 {
		if r, err := c.takeOver(ctx, take); err != nil || r.TakenOver {
			return r, err
		}
	}
	row, err := c.row(ctx, &p.SubmitParams, keyInPart(p.Owner, take.Part), &in, fingerprint)
	if err != nil {
		return KeylessResult{}, err
	}
	row.Waiter = &WaiterCreateParams{Route: p.Route, Token: take.Token, Lease: p.Lease}
	created, watch := c.recordWatched(ctx, row)
	return KeylessResult{
		Job: created.Job, Watch: watch, Waiter: Waiter{JobRef: JobRef{Part: row.Part, ID: row.ID}, Token: take.Token},
	}, created.Err
}

// takeOver asks twice when the store does not confirm: the token tells whether the
// first time was committed after all.
func (c *Client) takeOver(ctx context.Context, take WaiterTakeParams) (KeylessResult, error) {
	waiters, ok := c.store.(WaiterStore)
	if !ok {
		return KeylessResult{}, nil
	}
	ref, taken, err := waiters.WaiterTake(ctx, take)
	if err != nil {
		ref, taken, err = waiters.WaiterTake(ctx, take)
	}
	if err != nil || !taken {
		return KeylessResult{}, Unavailable(err)
	}
	waiter := Waiter{JobRef: ref, Token: take.Token}
	watch := &Watch{client: c, owner: take.Owner, id: ref.ID, seen: c.opts.Signals.watch(ref.ID)}
	if watch.job, err = c.Get(ctx, take.Owner, ref.ID); err != nil {
		watch.Stop()
		_ = c.StopWaiting(ctx, WaiterEndParams{Waiter: waiter}) // its lease ends by itself
		return KeylessResult{}, err
	}
	return KeylessResult{Job: watch.job, TakenOver: true, Watch: watch, Waiter: waiter}, nil
}

// KeepWaiting says that callers still wait, for as long again as lease.
func (c *Client) KeepWaiting(ctx context.Context, waiters []Waiter, lease time.Duration) error {
	store, ok := c.store.(WaiterStore)
	if !ok || len(waiters) == 0 {
		return nil
	}
	params := make([]WaiterRenewParams, len(waiters))
	for i, w := range waiters {
		params[i] = WaiterRenewParams{Waiter: w, Lease: lease}
	}
	_, err := store.WaiterRenew(ctx, params)
	return Unavailable(err)
}

// StopWaiting says how a caller's waiting ended. Without it the waiting ends with its
// lease, as if the caller had left then.
func (c *Client) StopWaiting(ctx context.Context, p WaiterEndParams) error {
	store, ok := c.store.(WaiterStore)
	if !ok {
		return nil
	}
	_, err := store.WaiterEnd(ctx, []WaiterEndParams{p})
	return Unavailable(err)
}
