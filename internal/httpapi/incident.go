package httpapi

import (
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// Incident is a success that may mean money spent twice.
type Incident struct {
	ID        string               `json:"id"`
	JobID     string               `json:"job_id"`
	AttemptID string               `json:"attempt_id" doc:"Whose success it was"`
	Owner     string               `json:"owner"`
	Kind      onejob.EventKind     `json:"kind"`
	State     onejob.IncidentState `json:"state"`
	At        time.Time            `json:"at"`
	Detail    string               `json:"detail" doc:"What happened, in words"`
	ClosedAt  time.Time            `json:"closed_at,omitzero"`
	ClosedBy  string               `json:"closed_by,omitzero"`
	Note      string               `json:"note,omitzero" doc:"What came of it, as whoever closed it says"`
}

// IncidentList is one page of incidents, newest first.
type IncidentList struct {
	Items      []Incident `json:"items" nullable:"false"`
	NextCursor string     `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

// CloseRequest says what came of an incident.
type CloseRequest struct {
	Note string `json:"note" minLength:"1" maxLength:"4096" doc:"Kept for ever in the audit"`
}

func incidentOf(i *onejob.Incident) Incident {
	return Incident{
		ID: i.ID, JobID: i.JobID, AttemptID: i.AttemptID, Owner: i.Owner, Kind: i.Kind, State: i.State(), At: i.At.UTC(),
		Detail: i.Detail, ClosedAt: utc(i.ClosedAt), ClosedBy: i.ClosedBy, Note: i.Note,
	}
}

// listIncidents serves GET /v1/incidents.
func (a *api) listIncidents(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "state", "owner", "cursor", "limit")
	p := onejob.IncidentListParams{
		Owner: q.scope(exchangeOf(r).caller), States: states(q, onejob.IncidentStates()),
		Before: q.incidentCursor(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	page, err := a.client.Incidents(r.Context(), p)
	if err != nil {
		return err
	}
	items := make([][]byte, len(page.Incidents))
	for i := range page.Incidents {
		if items[i], err = encode(incidentOf(&page.Incidents[i])); err != nil {
			return err
		}
	}
	next := ""
	if n := len(page.Incidents); page.More && n > 0 {
		next = cursorOf(page.Incidents[n-1].At, page.Incidents[n-1].ID)
	}
	writeItems(w, items, next)
	return nil
}

func (q *query) incidentCursor() *onejob.IncidentCursor {
	at, id, ok := q.place()
	if !ok {
		return nil
	}
	if _, _, isID := onejob.ParseIncidentID(id); !isID {
		q.refuseCursor()
		return nil
	}
	return &onejob.IncidentCursor{At: at, ID: id}
}

func listIncidentsDoc() operation {
	return operation{
		id: "listIncidents", summary: "List incidents, newest first; with state=open, what waits for a person",
		description: "An incident is a success of an attempt that had been ruled otherwise while another won, or after its job had closed.",
		query: []param{
			{name: "state", says: "open, closed, or both with a comma", list: true},
			{name: "owner", says: "For admins"},
			{name: "cursor", says: "next_cursor of the page before"},
			limitParam,
		},
		answers:  []answer{{status: 200, says: "One page", body: IncidentList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}

// getIncident serves GET /v1/incidents/{id}.
func (a *api) getIncident(w http.ResponseWriter, r *http.Request) error {
	i, err := a.client.Incident(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeIncident(w, &i)
}

func writeIncident(w http.ResponseWriter, i *onejob.Incident) error {
	body, err := encode(incidentOf(i))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func getIncidentDoc() operation {
	return operation{
		id: "getIncident", summary: "Read an incident",
		answers:  []answer{{status: 200, says: "The incident", body: Incident{}}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}

// closeIncident serves POST /v1/incidents/{id}:close.
func (a *api) closeIncident(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req CloseRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.Note == "" || len(req.Note) > maxEvidenceBytes {
		return invalid("member %q is required, and at most %d bytes", "note", maxEvidenceBytes)
	}
	if err := checkText("note", req.Note); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	i, err := a.client.CloseIncident(r.Context(), onejob.IncidentCloseParams{
		ID: r.PathValue("id"), Owner: c.scope, Actor: c.actor, Note: req.Note,
	})
	if err != nil {
		return err
	}
	return writeIncident(w, &i)
}

func closeIncidentDoc() operation {
	return operation{
		id: "closeIncident", summary: "Close an incident: somebody has seen to it",
		description: "Safe to repeat: the first note stays. The job's payload may be purged from then on.",
		body:        CloseRequest{},
		answers:     []answer{{status: 200, says: "The incident, closed", body: Incident{}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}
