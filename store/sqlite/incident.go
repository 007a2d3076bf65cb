package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// incidents is what an incident is read from. The words are those of the index.
const incidents = `
	SELECT e.part, e.id, e.job_id, e.attempt_id, j.owner, e.kind, e.at, e.detail, e.closed_at, e.closed_by, e.note
	FROM events e JOIN jobs j ON j.part = e.part AND j.id = e.job_id`

const isIncident = `e.kind IN ('duplicate_effect', 'effect_after_close')`

// IncidentList reads one page of incidents, newest first.
func (s *Store) IncidentList(ctx context.Context, p onejob.IncidentListParams) (page onejob.IncidentPage, err error) {
	w, ok := incidentsWanted(&p)
	if !ok {
		return page, nil
	}
	limit := pageOf(p.Limit)
	err = s.read(ctx, func(x *tx) (err error) {
		page.Incidents, err = x.incidents(w, limit+1)
		return err
	})
	if page.More = len(page.Incidents) > limit; page.More {
		page.Incidents = page.Incidents[:limit]
	}
	return page, err
}

func (x *tx) incidents(w where, limit int) (found []onejob.Incident, err error) {
	err = x.query(incidents+w.sql()+` ORDER BY e.at DESC, e.part DESC, e.id DESC LIMIT ?`, func(r *row) error {
		found = append(found, scanIncident(r))
		return nil
	}, append(w.args, limit)...)
	return found, err
}

func scanIncident(r *row) onejob.Incident {
	i := onejob.Incident{
		ID: onejob.NewIncidentID(uint8(r.Int64()), r.Int64()), JobID: r.String(), AttemptID: r.String(),
		Owner: r.String(), Kind: onejob.EventKind(r.String()), At: r.Time(),
	}
	i.Detail = onejob.DetailOfIncident(i.Kind, i.AttemptID, r.String())
	i.ClosedAt, i.ClosedBy, i.Note = r.Time(), r.String(), r.String()
	return i
}

// incidentsWanted reports false when no incident can be meant.
func incidentsWanted(p *onejob.IncidentListParams) (w where, ok bool) {
	w.and(isIncident)
	if p.ID != "" {
		part, event, isID := onejob.ParseIncidentID(p.ID)
		if !isID {
			return w, false
		}
		w.and(`e.part = ? AND e.id = ?`, int(part), event)
	}
	if p.Owner != "" {
		w.and(`j.owner = ?`, p.Owner)
	}
	states := known(p.States, onejob.IncidentStates())
	if len(states) == 0 && len(p.States) > 0 {
		return w, false
	}
	if len(states) == 1 {
		w.and(map[onejob.IncidentState]string{
			onejob.IncidentOpen: `e.closed_at IS NULL`, onejob.IncidentClosed: `e.closed_at IS NOT NULL`,
		}[states[0]])
	}
	if b := p.Before; b != nil {
		part, event, isID := onejob.ParseIncidentID(b.ID)
		if !isID {
			return w, false
		}
		w.and(`(e.at, e.part, e.id) < (?, ?, ?)`, millis(b.At), int(part), event)
	}
	return w, true
}

// IncidentClose closes an incident. A repeat keeps the first note.
func (s *Store) IncidentClose(ctx context.Context, p onejob.IncidentCloseParams) (closed onejob.Incident, err error) {
	if err := p.CheckClose(); err != nil {
		return closed, err
	}
	w, ok := incidentsWanted(&onejob.IncidentListParams{ID: p.ID, Owner: p.Owner})
	if !ok {
		return closed, onejob.ErrorOfNoIncident(p.ID)
	}
	err = s.write(ctx, func(x *tx) error {
		found, err := x.incidents(w, 1)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return onejob.ErrorOfNoIncident(p.ID)
		}
		if err := x.closeIncident(&p, found[0].Owner); err != nil {
			return err
		}
		found, err = x.incidents(w, 1)
		closed = found[0]
		return err
	})
	return closed, err
}

// closeIncident closes an incident that is open. Zero rows: somebody closed it
// before.
func (x *tx) closeIncident(p *onejob.IncidentCloseParams, owner string) error {
	part, event, _ := onejob.ParseIncidentID(p.ID)
	n, err := x.exec(`
		UPDATE events AS e SET closed_at = ?, closed_by = ?, note = ?
		WHERE e.part = ? AND e.id = ? AND e.closed_at IS NULL AND `+isIncident,
		x.now, p.Actor, p.Note, int(part), event)
	if err != nil || n == 0 {
		return err
	}
	return x.audit(p.AuditOf(owner))
}
