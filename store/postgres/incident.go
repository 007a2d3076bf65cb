package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// What an incident is read from. The kinds are those of the indexes.
const (
	sqlIncidents = `
SELECT e.part, e.id, e.job_id, e.attempt_id, j.owner, e.kind, e.at, e.detail, e.closed_at, e.closed_by, e.note
  FROM events e JOIN jobs j ON j.part = e.part AND j.id = e.job_id`
	sqlIncidentKinds = `e.kind IN ('duplicate_effect', 'effect_after_close')`
)

// IncidentList implements [onejob.IncidentStore].
func (s *Store) IncidentList(ctx context.Context, p onejob.IncidentListParams) (page onejob.IncidentPage, err error) {
	f, ok := incidentFilter(p)
	if !ok {
		return page, nil
	}
	limit := pageOf(p.Limit)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s ORDER BY e.at DESC, e.part DESC, e.id DESC LIMIT %d", sqlIncidents, f.sql(), limit+1), f.args...)
	if err != nil {
		return page, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		i, err := scanIncident(row)
		page.Incidents = append(page.Incidents, i)
		return err
	})
	if page.More = len(page.Incidents) > limit; page.More {
		page.Incidents = page.Incidents[:limit]
	}
	return page, onejob.Unavailable(err)
}

func scanIncident(row pgx.Row) (i onejob.Incident, err error) {
	var part int16
	var event int64
	var winner string
	var closed pgtype.Timestamptz
	var by, note pgtype.Text
	err = row.Scan(&part, &event, &i.JobID, &i.AttemptID, &i.Owner, &i.Kind, &i.At, &winner, &closed, &by, &note)
	i.ID, i.At = onejob.NewIncidentID(uint8(part), event), i.At.UTC()
	i.Detail = onejob.DetailOfIncident(i.Kind, i.AttemptID, winner)
	i.ClosedAt, i.ClosedBy, i.Note = timeOf(closed), by.String, note.String
	return i, err
}

// incidentFilter reports false when no incident can be meant.
func incidentFilter(p onejob.IncidentListParams) (*filter, bool) {
	f := &filter{}
	if !storable(p.Owner) {
		return nil, false
	}
	f.where(sqlIncidentKinds)
	if p.ID != "" {
		part, event, ok := onejob.ParseIncidentID(p.ID)
		if !ok {
			return nil, false
		}
		f.where("e.part = $%d AND e.id = $%d", int16(part), event)
	}
	if p.Owner != "" {
		f.where("j.owner = $%d", p.Owner)
	}
	if condition, ok := incidentStates(p.States); condition != "" {
		f.where(condition)
	} else if !ok {
		return nil, false
	}
	if p.Before != nil {
		part, event, ok := onejob.ParseIncidentID(p.Before.ID)
		if !ok {
			return nil, false
		}
		f.where("(e.at, e.part, e.id) < ($%d, $%d, $%d)", stamp(p.Before.At), int16(part), event)
	}
	return f, true
}

// incidentStates is the condition of being in one of states, empty for any. It
// reports false for states that no incident is in.
func incidentStates(states []onejob.IncidentState) (condition string, ok bool) {
	open, closed := false, false
	for _, s := range states {
		open, closed = open || s == onejob.IncidentOpen, closed || s == onejob.IncidentClosed
	}
	switch {
	case open && !closed:
		return "e.closed_at IS NULL", true
	case closed && !open:
		return "e.closed_at IS NOT NULL", true
	}
	return "", open || len(states) == 0
}

// Zero rows: it is closed already, or no incident.
const sqlIncidentClose = `
UPDATE events e SET closed_at = onejob_now(), closed_by = $3, note = $4
 WHERE e.part = $1 AND e.id = $2 AND e.closed_at IS NULL AND ` + sqlIncidentKinds

// IncidentClose implements [onejob.IncidentStore].
func (s *Store) IncidentClose(ctx context.Context, p onejob.IncidentCloseParams) (onejob.Incident, error) {
	if err := p.CheckClose(); err != nil {
		return onejob.Incident{}, err
	}
	found, err := s.incident(ctx, p.ID, p.Owner)
	if err != nil || found.State() == onejob.IncidentClosed {
		return found, err
	}
	part, event, _ := onejob.ParseIncidentID(p.ID)
	err = s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		var closed int64
		b := t.batch()
		b.Queue(sqlIncidentClose, int16(part), event, clean(p.Actor), clean(p.Note)).Exec(affected(&closed))
		if err := t.send(ctx, b); err != nil || closed == 0 {
			return nil, err
		}
		return []onejob.AuditEntry{p.AuditOf(found.Owner)}, nil
	})
	if err != nil {
		return onejob.Incident{}, err
	}
	return s.incident(ctx, p.ID, p.Owner)
}

func (s *Store) incident(ctx context.Context, id, owner string) (onejob.Incident, error) {
	page, err := s.IncidentList(ctx, onejob.IncidentListParams{ID: id, Owner: owner, Limit: 1})
	if err == nil && len(page.Incidents) == 0 {
		err = onejob.ErrorOfNoIncident(id)
	}
	if err != nil {
		return onejob.Incident{}, err
	}
	return page.Incidents[0], nil
}
