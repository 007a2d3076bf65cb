// Package grouped gathers concurrent callers of a store into one transaction.
//
// A commit costs about the same for one row as for a hundred. [New] wraps a store
// so that callers who arrive while a flush is under way share the next one: under
// load the batches grow by themselves, and an idle store answers at once, since
// nobody waits for a timer. Nothing else changes. Each row is still judged by
// itself, and nobody is answered before the commit that holds their row returned.
//
// A row that somebody else's open transaction holds does not hold its neighbours:
// they are answered, and it is tried again alone, while its own caller waits.
package grouped

import (
	"context"
	"errors"
	"fmt"

	"github.com/onejob-dev/onejob"
)

// Options tunes [New]. The zero value is ready to use.
type Options struct {
	// MaxBatch is the most rows one flush takes. A caller's own batch is never
	// split, so a larger one makes a larger flush. Zero means 256.
	MaxBatch int
	// MaxWaiting is the most rows that may wait for a flush, per kind of call;
	// one more is refused with [onejob.CodeOverloaded]. Zero means 8192.
	MaxWaiting int
}

const (
	defaultMaxBatch   = 256
	defaultMaxWaiting = 8192
)

// Store is a store whose hot calls are gathered. Make one with [New].
type Store struct {
	onejob.Store
	onejob.ProbeStore
	onejob.DeliveryStore
	onejob.AuditStore
	onejob.IncidentStore
	onejob.CostStore
	onejob.CertificateStore
	onejob.WaiterStore
	onejob.StreamStore

	get    *gatherer[onejob.JobGetParams, onejob.JobResult]
	create *gatherer[onejob.JobCreateParams, onejob.JobCreateResult]
	mark   *gatherer[onejob.AttemptMarkParams, onejob.AttemptMarkResult]
	renew  *gatherer[onejob.AttemptRenewParams, onejob.AttemptRenewResult]
	finish *gatherer[onejob.AttemptFinishParams, onejob.AttemptFinishResult]
	end    *gatherer[onejob.WaiterEndParams, bool]
	chunks *gatherer[onejob.ChunkAppendParams, onejob.ChunkAppendResult]
}

var (
	_ onejob.Store         = (*Store)(nil)
	_ onejob.ProbeStore    = (*Store)(nil)
	_ onejob.DeliveryStore = (*Store)(nil)
	_ onejob.AuditStore    = (*Store)(nil)
	_ onejob.IncidentStore = (*Store)(nil)
	_ onejob.CostStore     = (*Store)(nil)

	_ onejob.CertificateStore = (*Store)(nil)
	_ onejob.WaiterStore      = (*Store)(nil)
	_ onejob.StreamStore      = (*Store)(nil)
)

// Hasty is a store that can be asked not to wait for others' open transactions.
// Without it a shared flush waits for as long as its store does.
type Hasty interface {
	// Hasty returns the same store, which answers a row that another transaction
	// holds with [onejob.ReasonRowLocked] soon. Closing it is closing the store.
	Hasty() onejob.Store
}

// readsAtOnce is how many flushes of reads are under way at most, so that one
// large answer does not hold up the small ones.
const readsAtOnce = 2

// maxReads is the most jobs that are read together: each may have a large result.
const maxReads = 64

// New returns store with its hot calls gathered. It returns
// [onejob.CodeInvalidArgument] for a negative option.
func New(store onejob.Store, opts Options) (*Store, error) {
	if opts.MaxBatch < 0 || opts.MaxWaiting < 0 {
		err := errors.New("MaxBatch or MaxWaiting is negative")
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: fmt.Sprintf("invalid Options: %v", err), Err: err}
	}
	if opts.MaxBatch == 0 {
		opts.MaxBatch = defaultMaxBatch
	}
	if opts.MaxWaiting == 0 {
		opts.MaxWaiting = defaultMaxWaiting
	}
	shared := store
	if h, ok := store.(Hasty); ok {
		shared = h.Hasty()
	}
	reads := opts
	reads.MaxBatch = min(reads.MaxBatch, maxReads)
	return &Store{
		Store: store, ProbeStore: probesOf(store), DeliveryStore: deliveriesOf(store),
		AuditStore: auditOf(store), IncidentStore: incidentsOf(store), CostStore: costsOf(store),
		CertificateStore: certificatesOf(store), WaiterStore: waitersOf(store), StreamStore: streamsOf(store),
		get: newGatherer(reads, method[onejob.JobGetParams, onejob.JobResult]{
			flush: shared.JobGet, alone: store.JobGet, atOnce: readsAtOnce,
			errOf: func(r *onejob.JobResult) error { return r.Err },
		}),
		create: newGatherer(opts, method[onejob.JobCreateParams, onejob.JobCreateResult]{
			flush: shared.JobCreate, alone: store.JobCreate, atOnce: 1,
			errOf: func(r *onejob.JobCreateResult) error { return r.Err },
		}),
		// Two rows about one job go into two flushes: which of them is first is
		// then decided by a commit, not by the order of rows in a statement.
		mark: newGatherer(opts, method[onejob.AttemptMarkParams, onejob.AttemptMarkResult]{
			flush: shared.AttemptMark, alone: store.AttemptMark, atOnce: 1,
			errOf: func(r *onejob.AttemptMarkResult) error { return r.Err },
			keyOf: func(p *onejob.AttemptMarkParams) string { return p.Ref.JobID },
		}),
		renew: newGatherer(opts, method[onejob.AttemptRenewParams, onejob.AttemptRenewResult]{
			flush: shared.AttemptRenew, alone: store.AttemptRenew, atOnce: 1,
			errOf: func(r *onejob.AttemptRenewResult) error { return r.Err },
		}),
		finish: newGatherer(opts, method[onejob.AttemptFinishParams, onejob.AttemptFinishResult]{
			flush: shared.AttemptFinish, alone: store.AttemptFinish, atOnce: 1,
			errOf: func(r *onejob.AttemptFinishResult) error { return r.Err },
			keyOf: func(p *onejob.AttemptFinishParams) string { return p.Ref.JobID },
		}),
		end: newGatherer(opts, method[onejob.WaiterEndParams, bool]{
			flush: waitersOf(store).WaiterEnd, atOnce: 1,
			errOf: func(*bool) error { return nil },
		}),
		chunks: newGatherer(opts, method[onejob.ChunkAppendParams, onejob.ChunkAppendResult]{
			flush: streamsOf(shared).ChunkAppend, alone: streamsOf(store).ChunkAppend, atOnce: 1,
			errOf: func(r *onejob.ChunkAppendResult) error { return r.Err },
			keyOf: func(p *onejob.ChunkAppendParams) string { return p.Ref.JobID },
		}),
	}, nil
}

// JobGet implements [onejob.Store]. Callers who wait for jobs that one commit
// finished read them together.
func (s *Store) JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	return s.get.do(ctx, params)
}

// JobCreate implements [onejob.Store].
func (s *Store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	return s.create.do(ctx, params)
}

// AttemptMark implements [onejob.Store].
func (s *Store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	return s.mark.do(ctx, params)
}

// AttemptRenew implements [onejob.Store].
func (s *Store) AttemptRenew(ctx context.Context, params []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	return s.renew.do(ctx, params)
}

// AttemptFinish implements [onejob.Store].
func (s *Store) AttemptFinish(ctx context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	return s.finish.do(ctx, params)
}

// WaiterEnd implements [onejob.WaiterStore].
func (s *Store) WaiterEnd(ctx context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	return s.end.do(ctx, params)
}

// Close waits for the flushes under way and closes the store behind. A call that
// comes later fails as the closed store fails it.
func (s *Store) Close() error {
	s.get.drain()
	s.create.drain()
	s.mark.drain()
	s.renew.drain()
	s.finish.drain()
	s.end.drain()
	return s.Store.Close()
}
