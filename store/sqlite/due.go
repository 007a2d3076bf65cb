package sqlite

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// comeDueSpare is how many more jobs of a target than a claim takes may come due in it.
const comeDueSpare = 128

// due lists jobs that a claim may take, at most Max, owners taking turns. It reads
// the index one target at a time, so that jobs of later days or of other claimers'
// targets are never walked over.
func (x *tx) due(p *onejob.AttemptClaimParams) (due []onejob.JobRef, last string, err error) {
	targets := slices.Sorted(maps.Keys(p.Targets))
	if p.Max <= 0 {
		return nil, p.AfterOwner, nil
	}
	if err := x.comeDue(targets, p.Max+comeDueSpare); err != nil {
		return nil, p.AfterOwner, err
	}
	wanted := wantedBy(p)
	return onejob.TakeTurns(p, func(l onejob.TurnLook) (turn onejob.Turn, err error) {
		if turn.Owners = []string{p.Owner}; p.Owner == "" {
			if turn.Owners, err = x.ownersAfter(targets, l.After, l.Owners+1); err != nil {
				return turn, err
			}
		}
		looked := min(len(turn.Owners), l.Owners)
		share := l.Share(looked)
		for _, owner := range turn.Owners[:looked] {
			jobs, err := x.dueOf(owner, targets, wanted, l.Taken, min(share, l.Max-len(turn.Jobs)))
			if err != nil {
				return turn, err
			}
			turn.Jobs = append(turn.Jobs, jobs...)
			if len(turn.Jobs) == l.Max {
				break
			}
		}
		return turn, nil
	})
}

// comeDue lets jobs whose time has come join those that are due, longest due first
// and at most limit of each target: the next claim goes on.
func (x *tx) comeDue(targets []string, limit int) error {
	var refs []onejob.JobRef
	for _, target := range targets {
		err := x.query(`
			SELECT part, job_id FROM job_states
			WHERE state = 'queued' AND due = 0 AND next_target = ? AND run_after <= ?
			ORDER BY run_after LIMIT ?`, func(r *row) error {
			refs = append(refs, onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()})
			return nil
		}, target, x.now, limit)
		if err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if _, err := x.exec(`UPDATE job_states SET due = 1 WHERE seq = `+seqOfJob, int(ref.Part), ref.ID); err != nil {
			return err
		}
	}
	return nil
}

// ownersAfter lists owners who have due jobs at these targets, in order, at most
// limit of them: one look into the index for each owner and target.
func (x *tx) ownersAfter(targets []string, after string, limit int) (owners []string, err error) {
	for len(owners) < limit {
		next := ""
		for _, target := range targets {
			err := x.query(`
				SELECT owner FROM job_states
				WHERE state = 'queued' AND due = 1 AND next_target = ? AND owner > ?
				ORDER BY owner LIMIT 1`, func(r *row) error {
				if owner := r.String(); next == "" || owner < next {
					next = owner
				}
				return nil
			}, target, after)
			if err != nil {
				return nil, err
			}
		}
		if next == "" {
			break
		}
		owners, after = append(owners, next), next
	}
	return owners, nil
}

// dueJob is one due job in the order of its owner's claims.
type dueJob struct {
	ref      onejob.JobRef
	priority int
	runAfter time.Time
}

// dueOf lists an owner's due jobs, at most limit: higher priority first, then
// longest due.
func (x *tx) dueOf(owner string, targets []string, wanted wanted, taken []onejob.JobRef, limit int) ([]onejob.TurnJob, error) {
	var due []dueJob
	for _, target := range targets {
		err := x.query(`
			SELECT part, job_id, priority, run_after FROM job_states
			WHERE state = 'queued' AND due = 1 AND next_target = ? AND owner = ?`+wanted.sql+`
			ORDER BY priority DESC, run_after LIMIT ?`, func(r *row) error {
			d := dueJob{
				ref: onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()}, priority: r.Int(), runAfter: r.Time(),
			}
			if !slices.Contains(taken, d.ref) {
				due = append(due, d)
			}
			return nil
		}, slices.Concat([]any{target, owner}, wanted.args, []any{limit + len(taken)})...)
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(due, func(a, b dueJob) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.runAfter.Compare(b.runAfter), cmp.Compare(a.ref.ID, b.ref.ID))
	})
	jobs := make([]onejob.TurnJob, min(limit, len(due)))
	for i := range jobs {
		jobs[i] = onejob.TurnJob{Owner: owner, Ref: due[i].ref}
	}
	return jobs, nil
}

// wanted is the condition that a claimer may be given a job, beside its target and
// its owner.
type wanted struct {
	sql  string
	args []any
}

// wantedBy is nothing to ask for a claimer who takes jobs of any kind.
func wantedBy(p *onejob.AttemptClaimParams) wanted {
	if len(p.Kinds) == 0 {
		return wanted{}
	}
	return wanted{
		sql: ` AND EXISTS (SELECT 1 FROM jobs j WHERE j.seq = job_states.seq
			AND j.kind IN (SELECT value FROM json_each(?)))`,
		args: []any{encode(p.Kinds)},
	}
}

// nextDue is when the next queued job of these targets becomes due. What is due
// already was claimed, or left for a reason that waiting for it does not change; what
// is overdue and was not let come due yet is worth another claim at once.
func (x *tx) nextDue(p *onejob.AttemptClaimParams) (next time.Time, err error) {
	wanted := wantedBy(p)
	for target := range p.Targets {
		err := x.query(`
			SELECT run_after FROM job_states
			WHERE state = 'queued' AND due = 0 AND next_target = ? AND ? IN ('', owner)`+wanted.sql+`
			ORDER BY run_after LIMIT 1`, func(r *row) error {
			if at := r.Time(); next.IsZero() || at.Before(next) {
				next = at
			}
			return nil
		}, slices.Concat([]any{target, p.Owner}, wanted.args)...)
		if err != nil {
			return next, err
		}
	}
	return next, nil
}
