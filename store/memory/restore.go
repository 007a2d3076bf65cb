package memory

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// Generation reads where the store is.
func (s *Store) Generation(ctx context.Context) (onejob.Generation, error) {
	return s.generationAfter(ctx, func(time.Time) error { return nil })
}

// GenerationAdvance makes the number one higher.
func (s *Store) GenerationAdvance(ctx context.Context) (onejob.Generation, error) {
	return s.generationAfter(ctx, func(time.Time) error {
		s.generation.Number++
		return nil
	})
}

// RestoreDeclare says that somebody has seen a number. There is no copy of this
// store that could be behind it; simulations say so all the same.
func (s *Store) RestoreDeclare(ctx context.Context, p onejob.RestoreDeclareParams) (onejob.Generation, error) {
	return s.generationAfter(ctx, func(now time.Time) error {
		if s.generation.Number >= p.Seen {
			return nil
		}
		s.generation.Number, s.generation.RestoredAt = onejob.GenerationBeyond(p.Seen), now
		if entry, byPerson := p.AuditOf(s.generation); byPerson {
			s.audit(entry, now)
		}
		return nil
	})
}

// RestoreConfirm lets the store take work again.
func (s *Store) RestoreConfirm(ctx context.Context, actor string) (onejob.Generation, error) {
	return s.generationAfter(ctx, func(now time.Time) error {
		if !s.generation.Unconfirmed() {
			return nil
		}
		for r := range s.live {
			if s.toHold(r) {
				return onejob.ErrorOfHold()
			}
		}
		s.audit(s.generation.AuditOfConfirm(actor), now)
		s.generation.RestoredAt, s.generation.ConfirmedAt, s.generation.ConfirmedBy = time.Time{}, now, actor
		return nil
	})
}

func (s *Store) generationAfter(ctx context.Context, change func(now time.Time) error) (onejob.Generation, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Generation{}, err
	}
	defer end()
	err = change(now)
	return s.generation, err
}

// RestoreHold makes attempts under way unknown and holds open jobs.
func (s *Store) RestoreHold(ctx context.Context, limit int) (held onejob.RestoreHeld, err error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return held, err
	}
	defer end()
	if !s.generation.Unconfirmed() {
		return held, nil
	}
	for _, r := range s.liveRows(func(*onejob.Job) bool { return true }, func(_, _ *onejob.Job) int { return 0 }) {
		if len(held.Attempts)+len(held.Jobs) >= limit {
			break
		}
		if s.toHold(r) {
			s.hold(r, now, &held)
		}
	}
	return held, nil
}

// toHold reports whether a restore has still something to do about a job.
func (s *Store) toHold(r *row) bool {
	for i := range r.job.Attempts {
		if leased(&r.job.Attempts[i]) {
			return true
		}
	}
	return !r.job.State.Terminal() && r.job.HeldAt.Before(s.generation.RestoredAt)
}

func (s *Store) hold(r *row, now time.Time, held *onejob.RestoreHeld) {
	for i := range r.job.Attempts {
		if a := &r.job.Attempts[i]; onejob.RestoreAttempt(a) {
			r.ask(a, now)
			held.Attempts = append(held.Attempts, onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID})
		}
	}
	if !r.job.State.Terminal() && r.job.HeldAt.Before(s.generation.RestoredAt) {
		r.job.HeldAt = s.generation.RestoredAt
		held.Jobs = append(held.Jobs, r.ref())
	}
	s.changed(r, now)
}
