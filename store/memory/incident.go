package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// raise opens an incident about an attempt.
func (s *Store) raise(r *row, a *onejob.Attempt, kind onejob.EventKind, now time.Time) {
	s.happened++
	i := &onejob.Incident{
		ID: onejob.NewIncidentID(r.job.Part, s.happened), JobID: r.job.ID, AttemptID: a.ID, Owner: r.job.Owner,
		Kind: kind, At: now, Detail: onejob.DetailOfIncident(kind, a.ID, r.job.CompletedBy),
	}
	s.incidents[i.ID] = i
	r.incidents = append(r.incidents, i)
}

// IncidentList reads one page of incidents, newest first.
func (s *Store) IncidentList(ctx context.Context, p onejob.IncidentListParams) (onejob.IncidentPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.IncidentPage{}, err
	}
	defer end()
	var incidents []onejob.Incident
	for _, i := range s.incidents {
		if (p.ID == "" || p.ID == i.ID) && (p.Owner == "" || p.Owner == i.Owner) &&
			(len(p.States) == 0 || slices.Contains(p.States, i.State())) &&
			(p.Before == nil || newestIncidentFirst(p.Before.At, i.At, p.Before.ID, i.ID) < 0) {
			incidents = append(incidents, *i)
		}
	}
	slices.SortFunc(incidents, func(a, b onejob.Incident) int { return newestIncidentFirst(a.At, b.At, a.ID, b.ID) })
	incidents, more := page(incidents, p.Limit)
	return onejob.IncidentPage{Incidents: incidents, More: more}, nil
}

func newestIncidentFirst(a, b time.Time, idA, idB string) int {
	partA, eventA, _ := onejob.ParseIncidentID(idA)
	partB, eventB, _ := onejob.ParseIncidentID(idB)
	return cmp.Or(b.Compare(a), cmp.Compare(partB, partA), cmp.Compare(eventB, eventA))
}

// IncidentClose closes an incident. A repeat keeps the first note.
func (s *Store) IncidentClose(ctx context.Context, p onejob.IncidentCloseParams) (onejob.Incident, error) {
	if err := p.CheckClose(); err != nil {
		return onejob.Incident{}, err
	}
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Incident{}, err
	}
	defer end()
	i := s.incidents[p.ID]
	if i == nil || p.Owner != "" && p.Owner != i.Owner {
		return onejob.Incident{}, onejob.ErrorOfNoIncident(p.ID)
	}
	if i.State() == onejob.IncidentOpen {
		i.ClosedAt, i.ClosedBy, i.Note = now, p.Actor, p.Note
		s.audit(p.AuditOf(i.Owner), now)
	}
	return *i, nil
}
