package onejob

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Incident is a success that may mean money spent twice: on an attempt that had
// been ruled otherwise while another won, or after its job had closed. It stays
// open, and keeps its job's payload from being purged, until a person closes it.
type Incident struct {
	ID        string // see [NewIncidentID]
	JobID     string
	AttemptID string // whose success it was
	Owner     string
	Kind      EventKind // [EventDuplicateEffect] or [EventLateEffect]
	At        time.Time
	Detail    string // in words. Safe to show

	ClosedAt time.Time // zero: open
	ClosedBy string
	Note     string // what came of it, as whoever closed it says
}

// State says whether the incident waits for a person.
func (i *Incident) State() IncidentState {
	if i.ClosedAt.IsZero() {
		return IncidentOpen
	}
	return IncidentClosed
}

// IncidentState says whether an incident waits for a person.
type IncidentState string

// The states of an incident.
const (
	IncidentOpen   IncidentState = "open"
	IncidentClosed IncidentState = "closed"
)

// IncidentStates lists the states of an incident.
func IncidentStates() []IncidentState { return []IncidentState{IncidentOpen, IncidentClosed} }

// IncidentKinds lists the kinds of event that are incidents.
func IncidentKinds() []EventKind { return []EventKind{EventDuplicateEffect, EventLateEffect} }

// DetailOfIncident says in words what happened. winner is the attempt that has the
// job's result; empty: none has.
func DetailOfIncident(kind EventKind, attemptID, winner string) string {
	if kind == EventDuplicateEffect {
		return fmt.Sprintf("attempt %s succeeded beside %s, the winner: a ruling was wrong, and the effect happened twice", attemptID, winner)
	}
	return fmt.Sprintf("attempt %s succeeded after its job had closed without a winner", attemptID)
}

const incidentPrefix = "inc_"

// NewIncidentID returns the id of the incident that is an event of a part: the
// part in two digits and the event's number, both hexadecimal.
func NewIncidentID(part uint8, event int64) string {
	return fmt.Sprintf("%s%02x%x", incidentPrefix, part, event)
}

// ParseIncidentID reads what [NewIncidentID] wrote. It reports false for anything
// else.
func ParseIncidentID(id string) (part uint8, event int64, ok bool) {
	digits, is := strings.CutPrefix(id, incidentPrefix)
	if !is || len(digits) < 3 {
		return 0, 0, false
	}
	p, err := strconv.ParseUint(digits[:2], 16, 8)
	if err != nil {
		return 0, 0, false
	}
	event, err = strconv.ParseInt(digits[2:], 16, 64)
	if err != nil || event < 1 || NewIncidentID(uint8(p), event) != id { // upper case, signs, leading zeros
		return 0, 0, false
	}
	return uint8(p), event, true
}

// IncidentStore keeps incidents. Every store implements it.
type IncidentStore interface {
	// IncidentList reads one page, newest first: by state, or one by id.
	IncidentList(ctx context.Context, params IncidentListParams) (IncidentPage, error)
	// IncidentClose closes an incident, writes that to the audit, and returns it. It
	// is safe to repeat: who closed it first, and their note, stay. It returns
	// [ErrNotFound], also for another owner's.
	IncidentClose(ctx context.Context, params IncidentCloseParams) (Incident, error)
}

// IncidentListParams picks incidents. Zero members do not filter.
type IncidentListParams struct {
	ID     string
	Owner  string
	States []IncidentState
	Before *IncidentCursor // the last incident of the page before
	Limit  int             // 1 to 200
}

// IncidentCursor is a place in a list of incidents.
type IncidentCursor struct {
	At time.Time
	ID string
}

// IncidentPage is one page of incidents. More is set when there are older ones.
type IncidentPage struct {
	Incidents []Incident
	More      bool
}

// IncidentCloseParams closes one incident.
type IncidentCloseParams struct {
	ID    string
	Owner string // empty: any
	Actor string
	Note  string // required: what came of it
}

// CheckClose refuses a close without a note, before anything is looked up.
func (p *IncidentCloseParams) CheckClose() error {
	if strings.TrimSpace(p.Note) == "" {
		return &Error{Code: CodeInvalidRequest, Message: "a note is required: what came of the incident"}
	}
	return nil
}

// ErrorOfNoIncident is what anybody is told of an incident that is not there, or
// not theirs.
func ErrorOfNoIncident(id string) error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no incident %q", id)}
}

// incidents returns the store's incidents.
func (c *Client) incidents() (IncidentStore, error) {
	if s, ok := c.store.(IncidentStore); ok {
		return s, nil
	}
	return nil, &Error{Code: CodeInternal, Message: "the store keeps no incidents"}
}

// Incidents returns one page of incidents, newest first. An empty Owner lists
// everybody's.
func (c *Client) Incidents(ctx context.Context, p IncidentListParams) (IncidentPage, error) {
	store, err := c.incidents()
	if err != nil {
		return IncidentPage{}, err
	}
	page, err := store.IncidentList(ctx, p)
	return page, Unavailable(err)
}

// Incident returns one incident, or [ErrNotFound].
func (c *Client) Incident(ctx context.Context, owner, id string) (Incident, error) {
	page, err := c.Incidents(ctx, IncidentListParams{ID: id, Owner: owner, Limit: 1})
	if err == nil && len(page.Incidents) == 0 {
		err = ErrorOfNoIncident(id)
	}
	if err != nil {
		return Incident{}, err
	}
	return page.Incidents[0], nil
}

// CloseIncident closes an incident with a note, and returns it as it is then. It is
// safe to repeat: the first note stays. After [ErrStoreUnavailable] it may or may
// not be closed; repeat the call to find out.
func (c *Client) CloseIncident(ctx context.Context, p IncidentCloseParams) (Incident, error) {
	store, err := c.incidents()
	if err != nil {
		return Incident{}, err
	}
	i, err := store.IncidentClose(ctx, p)
	return i, Unavailable(err)
}
