// Package generation notices when a store has gone back in time.
//
// A store that is restored from a backup forgets jobs that were done, and would do
// them again. So it carries a number that grows while work is done, and the highest
// number seen is kept outside it: in this process, and in a file. A store behind
// that number was restored. It then takes no work until a person confirms it, which
// the store itself sees to; see [onejob.RestoreStore].
//
// [New] wraps a store: it looks before anything is done, counts work into the
// number, refuses new work early, and holds what the restored copy left open.
package generation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onejob-dev/onejob"
)

// Options tunes a [Store]. The zero value is ready to use.
type Options struct {
	// Path is the file that keeps the highest number seen. It must not be part of a
	// backup of the store. Empty: only this process remembers.
	Path string

	// Every is the least time between two advances of the number. A copy of the
	// store that is younger cannot be told from what follows it. Zero means 1 s.
	Every time.Duration

	// LookEvery is how often an idle store is looked at for what others found. Zero
	// means 10 s.
	LookEvery time.Duration

	// Logger hears of a restore, and of a mark that could not be kept. Nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Every < 0 || o.LookEvery < 0 {
		err := errors.New("Every or LookEvery is negative")
		return o, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.LookEvery == 0 {
		o.LookEvery = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// holdAtOnce is how much of a restored store is held in one transaction.
const holdAtOnce = 500

// Store is a store that is watched. Make one with [New], and let [Store.Run] run. It
// is safe for concurrent use.
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
	restore onejob.RestoreStore
	opts    Options

	marking     sync.Mutex // the file is written by one at a time, or it could go back
	seen        atomic.Int64
	unconfirmed atomic.Bool
	restoredAt  atomic.Int64  // of the restore that is unconfirmed, in Unix microseconds
	held        atomic.Int64  // of the restore whose open work is all held
	written     chan struct{} // work was written since the last advance
	suspected   chan struct{} // the store refused work
}

var (
	_ onejob.Store = (*Store)(nil)
	_ Watched      = (*Store)(nil)
)

// Watched is a store that can be watched.
type Watched interface {
	onejob.Store
	onejob.ProbeStore
	onejob.DeliveryStore
	onejob.AuditStore
	onejob.IncidentStore
	onejob.CostStore
	onejob.CertificateStore
	onejob.WaiterStore
	onejob.StreamStore
}

// New looks whether the database behind store was restored and, if so, holds what
// it left open before it returns. restore is the same database. It returns an error
// when the mark outside cannot be read or written.
func New(ctx context.Context, store Watched, restore onejob.RestoreStore, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		Store: store, ProbeStore: store, DeliveryStore: store, AuditStore: store, IncidentStore: store, CostStore: store,
		CertificateStore: store, WaiterStore: store, StreamStore: store,
		restore: restore, opts: opts,
		written: make(chan struct{}, 1), suspected: make(chan struct{}, 1),
	}
	mark, err := ReadMark(opts.Path)
	if err != nil {
		return nil, err
	}
	s.raise(mark)
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	if s.unconfirmed.Load() {
		return s, s.hold(ctx)
	}
	return s, s.advance(ctx) // what this process does is told from every copy made before
}

// Run advances the number while work is written, and looks for a restore, until ctx
// ends. The last advance is made then. Run may be called once.
func (s *Store) Run(ctx context.Context) {
	look := time.NewTicker(s.opts.LookEvery)
	defer look.Stop()
	if s.unconfirmed.Load() {
		s.suspect()
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.written:
			s.complain("the store's generation is not advanced", s.advance(ctx))
		case <-s.suspected:
			s.complain("the store's generation is not known", s.look(ctx))
		case <-look.C:
			s.complain("the store's generation is not known", s.look(ctx))
		}
		s.complain("the restored store is not all held yet", s.hold(ctx))
		s.rest(ctx)
	}
	s.last(ctx)
}

// rest is the pause between two looks or advances. A restore that waits to be
// confirmed is looked at after each.
func (s *Store) rest(ctx context.Context) {
	pause := time.NewTimer(s.opts.Every)
	defer pause.Stop()
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
	if s.unconfirmed.Load() {
		s.suspect()
	}
}

// lastWithin bounds the advance of a process that ends.
const lastWithin = 5 * time.Second

func (s *Store) last(ctx context.Context) {
	select {
	case <-s.written:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
	defer cancel()
	s.complain("the store's generation is not advanced", s.advance(ctx))
}

func (s *Store) complain(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.opts.Logger.Error(what, "err", err)
	}
}

// advance makes the number one higher, first in the database and then outside. A
// number that is no higher than one seen before is a restored store's.
func (s *Store) advance(ctx context.Context) error {
	known := s.seen.Load()
	g, err := s.restore.GenerationAdvance(ctx)
	if err != nil {
		s.wrote()
		return err
	}
	if g.Number <= known {
		known++
	}
	return s.observe(ctx, g, known)
}

// look reads where the store is.
func (s *Store) look(ctx context.Context) error {
	known := s.seen.Load() // before the reading, which of a store that lives on is no less
	g, err := s.restore.Generation(ctx)
	if err != nil {
		return err
	}
	return s.observe(ctx, g, known)
}

// observe concludes from a reading, made when known had been seen.
func (s *Store) observe(ctx context.Context, g onejob.Generation, known int64) (err error) {
	if g.Number < known {
		if g, err = s.restore.RestoreDeclare(ctx, onejob.RestoreDeclareParams{Seen: known}); err != nil {
			return err
		}
	}
	s.raise(g.Number)
	switch was := s.unconfirmed.Swap(g.Unconfirmed()); {
	case !was && g.Unconfirmed():
		s.opts.Logger.Error("the store was restored from a backup: nothing is sent and no job is taken until it is confirmed with: onejob restore confirm",
			"restored_at", g.RestoredAt)
	case was && !g.Unconfirmed():
		s.opts.Logger.Info("the restore is confirmed", "by", g.ConfirmedBy)
	}
	s.restoredAt.Store(g.RestoredAt.UnixMicro())
	return s.mark()
}

// mark puts the highest number seen outside.
func (s *Store) mark() error {
	s.marking.Lock()
	defer s.marking.Unlock()
	return writeMark(s.opts.Path, s.seen.Load())
}

// hold holds what an unconfirmed restore left open, once for each restore.
func (s *Store) hold(ctx context.Context) error {
	restoredAt := s.restoredAt.Load()
	if !s.unconfirmed.Load() || s.held.Load() == restoredAt {
		return nil
	}
	held, err := Hold(ctx, s.restore)
	if err != nil {
		return err
	}
	s.held.Store(restoredAt)
	s.opts.Logger.Warn("what the restored store left open is held", "attempts_unknown", held.Attempts, "jobs", held.Jobs)
	return nil
}

// Held counts what a restore left open.
type Held struct{ Attempts, Jobs int }

// Hold holds all that an unconfirmed restore left open. After an error some of it
// is held, and the rest is found by holding again.
func Hold(ctx context.Context, store onejob.RestoreStore) (all Held, err error) {
	for {
		held, err := store.RestoreHold(ctx, holdAtOnce)
		if err != nil {
			return all, fmt.Errorf("hold what the restored store left open: %w", err)
		}
		if held.None() {
			return all, ctx.Err()
		}
		all.Attempts += len(held.Attempts)
		all.Jobs += len(held.Jobs)
	}
}

func (s *Store) raise(number int64) {
	for {
		known := s.seen.Load()
		if known >= number || s.seen.CompareAndSwap(known, number) {
			return
		}
	}
}

// wrote says that work was written, or may have been.
func (s *Store) wrote() { ring(s.written) }

// suspect asks for a look.
func (s *Store) suspect() { ring(s.suspected) }

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // already rung
	}
}
