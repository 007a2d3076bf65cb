package sqlite

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptClaim starts attempts of due jobs at targets that the claimer knows:
// higher priority first, then longest due.
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	var result onejob.AttemptClaimResult
	err := s.write(ctx, func(x *tx) error {
		result = onejob.AttemptClaimResult{}
		due, err := x.due(p)
		if err != nil {
			return err
		}
		for _, d := range due {
			refused, err := x.row(func() error { return x.claim(d.ref, &p, &result) })
			if onejob.CodeOf(refused) == onejob.CodeRestoreUnconfirmed {
				return refused
			}
			if err == nil && refused != nil {
				s.log.Error("claim a job; it is set aside for a while", "job_id", d.ref.ID, "error", refused)
				err = x.setAside(d.ref)
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
	d := onejob.Decide(&j.Job, j.Attempts, nil, x.now, onejob.Ask{})
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
	_, err := x.exec(`UPDATE job_states SET run_after = ? WHERE part = ? AND job_id = ? AND state = 'queued'`,
		x.now.Add(asideFor), int(ref.Part), ref.ID)
	return err
}

// dueJob is one queued job in the order of claims.
type dueJob struct {
	ref      onejob.JobRef
	priority int
	runAfter time.Time
}

// due lists due jobs, at most Max of them. It reads the index one target and one
// priority at a time, so that jobs of later days or of other claimers' targets are
// never walked over.
func (x *tx) due(p onejob.AttemptClaimParams) ([]dueJob, error) {
	var due []dueJob
	wanted := wantedBy(&p)
	for _, target := range slices.Sorted(maps.Keys(p.Targets)) {
		found := 0
		err := x.priorities(target, func(priority int) (more bool, err error) {
			err = x.query(`
				SELECT part, job_id, run_after FROM job_states
				WHERE state = 'queued' AND next_target = ? AND priority = ? AND run_after <= ?`+wanted.sql+`
				ORDER BY run_after LIMIT ?`, func(r *row) error {
				found++
				due = append(due, dueJob{
					ref: onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()}, priority: priority, runAfter: r.Time(),
				})
				return nil
			}, slices.Concat([]any{target, priority, x.now}, wanted.args, []any{max(0, p.Max-found)})...)
			return found < p.Max, err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(due, func(a, b dueJob) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.runAfter.Compare(b.runAfter), cmp.Compare(a.ref.ID, b.ref.ID))
	})
	return due[:min(max(0, p.Max), len(due))], nil
}

// wanted is the condition that a claimer may be given a job, beside its target.
type wanted struct {
	sql  string
	args []any
}

// wantedBy is nothing to ask for a claimer who takes any owner's jobs of any kind.
func wantedBy(p *onejob.AttemptClaimParams) wanted {
	if p.Owner == "" && len(p.Kinds) == 0 {
		return wanted{}
	}
	return wanted{
		sql: ` AND EXISTS (SELECT 1 FROM jobs j WHERE j.part = job_states.part AND j.id = job_states.job_id
			AND ? IN ('', j.owner) AND (? OR j.kind IN (SELECT value FROM json_each(?))))`,
		args: []any{p.Owner, len(p.Kinds) == 0, encode(slices.Concat([]string{}, p.Kinds))},
	}
}

// priorities calls each with every priority that queued jobs of a target have,
// highest first, while it wants more.
func (x *tx) priorities(target string, each func(priority int) (more bool, err error)) error {
	below := int64(math.MaxInt64)
	for {
		found := false
		err := x.query(`
			SELECT priority FROM job_states
			WHERE state = 'queued' AND next_target = ? AND priority < ?
			ORDER BY priority DESC LIMIT 1`, func(r *row) error {
			found, below = true, r.Int64()
			return nil
		}, target, below)
		if err != nil || !found {
			return err
		}
		if more, err := each(int(below)); err != nil || !more {
			return err
		}
	}
}

// nextDue is when the next queued job of these targets becomes due. What is due
// already was claimed, or left for a reason that waiting for it does not change.
func (x *tx) nextDue(p *onejob.AttemptClaimParams) (next time.Time, err error) {
	wanted := wantedBy(p)
	for target := range p.Targets {
		err := x.priorities(target, func(priority int) (more bool, err error) {
			return true, x.query(`
				SELECT run_after FROM job_states
				WHERE state = 'queued' AND next_target = ? AND priority = ? AND run_after > ?`+wanted.sql+`
				ORDER BY run_after LIMIT 1`, func(r *row) error {
				if at := r.Time(); next.IsZero() || at.Before(next) {
					next = at
				}
				return nil
			}, slices.Concat([]any{target, priority, x.now}, wanted.args)...)
		})
		if err != nil {
			return next, err
		}
	}
	return next, nil
}
