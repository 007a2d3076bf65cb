package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobPurge empties old jobs in place, oldest first. Their keys answer for ever.
func (s *Store) JobPurge(ctx context.Context, p onejob.JobPurgeParams) (purged int, err error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	purged = s.forgetWaiters(p, now)
	if p.PayloadAge <= 0 && p.KeyAge <= 0 {
		return purged, nil
	}
	for _, r := range s.oldestFirst() {
		switch {
		case purged >= p.Limit:
			return purged, nil
		case r.purgeable() && p.PayloadAge > 0 && !now.Before(r.job.FinishedAt.Add(p.PayloadAge)):
			r.purge(now)
			delete(s.chunks, r.job.ID)
			purged++
		case r.job.Purged() && !r.shrunk && !r.needed() && p.KeyAge > 0 && !now.Before(r.job.CreatedAt.Add(p.KeyAge)):
			s.shrink(r)
			purged++
		}
	}
	return purged, nil
}

func (s *Store) oldestFirst() []*row {
	rows := make([]*row, 0, len(s.jobs))
	for _, r := range s.jobs {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(a.job.CreatedAt.Compare(b.job.CreatedAt), cmp.Compare(a.job.ID, b.job.ID))
	})
	return rows
}

// purgeable reports whether nobody can still need the payload: the job is over,
// nothing is in doubt, nobody is yet to be told, and no incident is open.
func (r *row) purgeable() bool { return r.job.State.Terminal() && !r.job.Purged() && !r.needed() }

// needed reports whether somebody may still need what is left of a job.
func (r *row) needed() bool {
	return r.inDoubt() || r.telling() || slices.ContainsFunc(r.incidents, func(i *onejob.Incident) bool { return i.ClosedAt.IsZero() })
}

func (r *row) purge(now time.Time) {
	r.job.PurgedAt = now
	r.job.Input, r.job.Metadata, r.job.Result = nil, nil, nil
	for i := range r.job.Attempts {
		a := &r.job.Attempts[i]
		a.Result, a.Evidence.Excerpt = nil, ""
	}
	for _, d := range r.doubts {
		for i := range d.probes {
			d.probes[i].Evidence.Excerpt = ""
		}
	}
	for _, d := range r.told {
		d.Body = nil
	}
	r.record(now, onejob.EventPurged, "", "", "")
	r.job.Revision++
}

// shrink leaves what it takes to refuse the key.
func (s *Store) shrink(r *row) {
	for _, i := range r.incidents {
		delete(s.incidents, i.ID)
	}
	for i := range r.job.Attempts {
		delete(s.byTry, r.job.Attempts[i].ID)
	}
	for _, d := range r.told {
		delete(s.outbox, d.ID)
	}
	j := &r.job
	r.job = onejob.Job{
		Part: j.Part, ID: j.ID, Owner: j.Owner, KeyHash: j.KeyHash,
		Fingerprint: j.Fingerprint, FingerprintVersion: j.FingerprintVersion,
		State: j.State, CreatedAt: j.CreatedAt, PurgedAt: j.PurgedAt,
	}
	r.shrunk, r.events, r.doubts, r.told, r.incidents = true, nil, nil, nil, nil
}
