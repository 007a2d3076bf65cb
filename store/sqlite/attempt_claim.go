package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptClaim starts attempts of due jobs at targets that the claimer knows,
// owners taking turns.
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	var result onejob.AttemptClaimResult
	err := s.write(ctx, func(x *tx) error {
		result = onejob.AttemptClaimResult{}
		due, last, err := x.due(&p)
		if err != nil {
			return err
		}
		result.LastOwner = last
		for _, ref := range due {
			refused, err := x.row(func() error { return x.claim(ref, &p, &result) })
			if onejob.CodeOf(refused) == onejob.CodeRestoreUnconfirmed {
				return refused
			}
			if err == nil && refused != nil {
				s.log.Error("claim a job; it is set aside for a while", "job_id", ref.ID, "error", refused)
				err = x.setAside(ref)
			}
			if err != nil {
				return err
			}
		}
		result.NextDue, err = x.nextDue(&p)
		return err
	})
	if err != nil {
		return onejob.AttemptClaimResult{}, err
	}
	return result, nil
}

// claim does what Decide says about one due job.
func (x *tx) claim(ref onejob.JobRef, p *onejob.AttemptClaimParams, result *onejob.AttemptClaimResult) error {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.ID)
	if err != nil || j == nil {
		return err
	}
	verdicts, err := x.verdicts(&j.Job, onejob.Ask{})
	if err != nil {
		return err
	}
	d := onejob.Decide(&j.Job, j.Attempts, verdicts, x.now, onejob.Ask{})
	if _, known := p.Targets[d.Target]; d.Verb != onejob.Start || !known {
		// It waits, ends, blocks, or goes to somebody else's target.
		if err := x.stand(&j.Job); err != nil {
			return err
		}
		result.Settled = append(result.Settled, ref)
		return nil
	}
	a := onejob.NewAttempt(&j.Job, j.Attempts, d, p.StartParams, x.now)
	if p.Mark {
		markAtOnce(&a, p.Lease, p.Targets[d.Target], x.now)
	}
	claimed, err := x.start(&j.Job, a)
	if err != nil {
		return err
	}
	result.Claimed = append(result.Claimed, *claimed)
	return nil
}

// asideFor is how long a job that could not be claimed makes room for others.
const asideFor = time.Minute

// setAside puts off a job whose rows cannot be read, or are refused when written.
// At the head of the queue it would keep all others from their turn.
func (x *tx) setAside(ref onejob.JobRef) error {
	_, err := x.exec(`UPDATE job_states SET run_after = ?, due = 0 WHERE seq = `+seqOfJob+` AND state = 'queued'`,
		x.now.Add(asideFor), int(ref.Part), ref.ID)
	return err
}
