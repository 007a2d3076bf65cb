package postgres

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/onejob-dev/onejob"
)

// A spoiled batch is done again in so many pieces, which share so few connections:
// of 256 rows, those beside a bad one wait for two more rounds.
const (
	pieces       = 16
	piecesAtOnce = 4
)

// each runs act on rows (indices into a method's params) in one transaction. If
// one of them spoils it, they are done in pieces, down to each in a transaction of
// its own, and fail hears of those that could not be. act commits, and writes its
// answers anew each time.
//
// The error is the whole batch's: nothing is known of it.
func (s *Store) each(ctx context.Context, rows []int, act func(ctx context.Context, t *txn, rows []int) error, fail func(row int, err error)) error {
	if len(rows) == 0 {
		return nil
	}
	err := s.inTx(ctx, sqlBegin, func(t *txn) error { return act(ctx, t, rows) })
	switch {
	case err == nil:
		return nil
	case !ofRow(err):
		return onejob.Unavailable(err)
	case len(rows) == 1:
		return s.alone(ctx, rows, err, act, fail)
	}
	s.log.InfoContext(ctx, "a batch is done in pieces", "rows", len(rows), "error", err)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(piecesAtOnce)
	for piece := range slices.Chunk(rows, (len(rows)+pieces-1)/pieces) {
		group.Go(func() error { return s.each(ctx, piece, act, fail) })
	}
	return group.Wait()
}

// alone deals with the one row that spoiled its transaction with err: it waits for
// whoever is in its way, unless the store is in haste.
func (s *Store) alone(ctx context.Context, row []int, err error, act func(ctx context.Context, t *txn, rows []int) error, fail func(row int, err error)) error {
	if inTheWay(err) && !s.hasty {
		err = s.patiently(ctx, func(t *txn) error { return act(ctx, t, row) })
	}
	if err == nil || !ofRow(err) {
		return onejob.Unavailable(err)
	}
	if !inTheWay(err) {
		s.log.WarnContext(ctx, "the database refused a row", "error", err)
	}
	fail(row[0], rowError(err))
	return nil
}

// inWaves runs each on waves of rows, so that no two in one transaction concern
// the same thing and later ones see what the earlier did.
func (s *Store) inWaves(ctx context.Context, n int, same func(row int) string, act func(ctx context.Context, t *txn, rows []int) error, fail func(row int, err error)) error {
	for _, wave := range waves(n, same) {
		if err := s.each(ctx, wave, act, fail); err != nil {
			return err
		}
	}
	return nil
}

// waves splits 0..n-1 so that each wave names a thing once, in order.
func waves(n int, same func(row int) string) [][]int {
	var waves [][]int
	seen := make(map[string]int, n)
	for i := range n {
		key := same(i)
		w := seen[key]
		seen[key]++
		if w == len(waves) {
			waves = append(waves, nil)
		}
		waves[w] = append(waves[w], i)
	}
	return waves
}

// column gathers one parameter of an unnest.
func column[R, T any](rows []R, field func(r R) T) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i] = field(r)
	}
	return values
}

// distinct returns refs in the order of locking, each once.
func distinct(refs []onejob.JobRef) []onejob.JobRef {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs)
}

func compareRefs(a, b onejob.JobRef) int {
	return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.ID, b.ID))
}

// refOf returns the ref of a job by its id. It reports false for what is no id.
func refOf(id string) (onejob.JobRef, bool) {
	part, ok := onejob.PartOfID(id)
	return onejob.JobRef{Part: part, ID: id}, ok
}
