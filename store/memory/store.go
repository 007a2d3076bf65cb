// Package memory is an [onejob.Store] in memory, for simulation and tests.
//
// It keeps every promise that the real stores keep but one: nothing outlives the
// process. Each method is judged row by row under one mutex, in plain Go over the
// pure functions of package onejob, so that it also reads as what a store owes:
// where a database needs a constraint or a compare-and-swap, there is an if.
//
// It starts no goroutine and tells the time by [Options.NowFunc] alone, so that it
// works inside the bubbles of testing/synctest.
package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

var (
	_ onejob.Store         = (*Store)(nil)
	_ onejob.ProbeStore    = (*Store)(nil)
	_ onejob.DeliveryStore = (*Store)(nil)
	_ onejob.KeyStore      = (*Store)(nil)
	_ onejob.AuditStore    = (*Store)(nil)
	_ onejob.IncidentStore = (*Store)(nil)
	_ onejob.CostStore     = (*Store)(nil)
	_ onejob.RestoreStore  = (*Store)(nil)

	_ onejob.CertificateStore = (*Store)(nil)
	_ onejob.WaiterStore      = (*Store)(nil)
	_ onejob.StreamStore      = (*Store)(nil)
)

// Options tunes a [Store]. The zero value is ready to use.
type Options struct {
	// NowFunc is the store's clock, which decides leases, expiry and quarantine.
	// Nil means [time.Now].
	NowFunc func() time.Time
}

// Store keeps jobs and attempts in memory. It is safe for concurrent use. What it
// is given and what it answers are copies: neither side sees the other's changes.
type Store struct {
	nowFunc func() time.Time

	mu     sync.Mutex
	closed bool
	jobs   map[string]*row // by job id, tombstones included
	byKey  map[keyOf]*row  // the constraint that makes one key one job
	byTry  map[string]*row // by attempt id
	live   map[*row]bool   // open, or with an attempt in doubt: all that claims and sweeps look at
	keys   map[string]onejob.APIKey

	waiters map[string]*waiter // by job id
	chunks  map[string]*chunks // by job id

	outbox   map[string]*delivery // by delivery id
	disabled map[string]onejob.DisabledEndpoint

	chains    map[string][]onejob.AuditEntry // by owner, oldest first
	incidents map[string]*onejob.Incident    // by id, of every job
	happened  int64                          // incidents so far

	generation onejob.Generation

	terms        onejob.GateTerms
	contracts    map[string]onejob.ContractVersion // by digest
	versions     []string                          // their digests, oldest first
	targets      map[string]onejob.TargetVersion   // by digest
	runs         map[string]*onejob.VerificationRun
	samples      []onejob.VerificationSample // oldest first
	certificates map[string]*onejob.Certificate
	watches      map[string]onejob.CertificateWatch // by id of certificate
	pairs        map[pairOf]onejob.PairResult
	waivers      map[string]onejob.Waiver
}

// pairOf names a pair.
type pairOf struct{ contract, primary, fallback, environment string }

// keyOf names an owner's idempotency key.
type keyOf struct{ owner, hash string }

// Open returns an empty store.
func Open(o Options) *Store {
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	return &Store{
		nowFunc: o.NowFunc,
		jobs:    map[string]*row{}, byKey: map[keyOf]*row{}, byTry: map[string]*row{},
		live: map[*row]bool{}, keys: map[string]onejob.APIKey{}, waiters: map[string]*waiter{}, chunks: map[string]*chunks{},
		outbox: map[string]*delivery{}, disabled: map[string]onejob.DisabledEndpoint{},
		chains: map[string][]onejob.AuditEntry{}, incidents: map[string]*onejob.Incident{},
		generation: onejob.Generation{Number: 1},
		contracts:  map[string]onejob.ContractVersion{}, targets: map[string]onejob.TargetVersion{},
		runs: map[string]*onejob.VerificationRun{}, certificates: map[string]*onejob.Certificate{},
		watches: map[string]onejob.CertificateWatch{}, pairs: map[pairOf]onejob.PairResult{}, waivers: map[string]onejob.Waiver{},
	}
}

// Check returns [onejob.ErrStoreUnavailable] once the store is closed.
func (s *Store) Check(ctx context.Context) error {
	_, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	end()
	return nil
}

// Close makes every later call fail. It is safe to repeat.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// JobEvents returns what was written down about a job, oldest first.
func (s *Store) JobEvents(ctx context.Context, ref onejob.JobRef) ([]onejob.JobEvent, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if r := s.jobs[ref.ID]; r != nil {
		return slices.Clone(r.events), nil
	}
	return nil, nil
}

// begin opens a transaction: until end, no other sees or changes anything. now is
// the one time that the whole transaction happens at.
func (s *Store) begin(ctx context.Context) (now time.Time, end func(), err error) {
	s.mu.Lock()
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return now, nil, onejob.Unavailable(err)
	}
	if s.closed {
		s.mu.Unlock()
		return now, nil, onejob.Unavailable(errors.New("the store is closed"))
	}
	return s.nowFunc().UTC().Truncate(time.Microsecond), s.mu.Unlock, nil
}

// each judges every row of a batch by itself, in order, in one transaction.
func each[P, R any](ctx context.Context, s *Store, params []P, judge func(p *P, now time.Time) R) ([]R, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	results := make([]R, len(params))
	for i := range params {
		results[i] = judge(&params[i], now)
	}
	return results, nil
}
