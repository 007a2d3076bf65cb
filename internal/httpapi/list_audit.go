package httpapi

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// AuditEntry is one thing that a person did with power.
type AuditEntry struct {
	Owner   string             `json:"owner" doc:"Whose jobs or keys it concerns; /instance: everybody's"`
	Seq     int64              `json:"seq" doc:"1 for the owner's first"`
	At      time.Time          `json:"at"`
	Actor   string             `json:"actor" doc:"Who did it"`
	Action  onejob.AuditAction `json:"action" doc:"As in job.cancel; more may come"`
	Subject string             `json:"subject" doc:"Id of the job, attempt, incident, key, webhook or endpoint; empty: the store"`
	Detail  string             `json:"detail" doc:"The outcome and the reason given"`
	Prev    string             `json:"prev" doc:"Hash of the owner's entry before, hexadecimal; empty for the first"`
	Hash    string             `json:"hash" doc:"SHA-256 of prev and the canonical form of the rest, hexadecimal"`
}

// AuditList is one page of the audit, newest first.
type AuditList struct {
	Items      []AuditEntry `json:"items" nullable:"false"`
	NextCursor string       `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

// listAudit serves GET /v1/audit.
func (a *api) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "owner", "cursor", "limit")
	p := onejob.AuditListParams{Owner: q.scope(exchangeOf(r).caller), After: q.auditCursor(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.client.Audit(r.Context(), p)
	if err != nil {
		return err
	}
	items := make([][]byte, len(page.Entries))
	for i := range page.Entries {
		if items[i], err = encode(entryOf(&page.Entries[i])); err != nil {
			return err
		}
	}
	next := ""
	if n := len(page.Entries); page.More && n > 0 {
		last := &page.Entries[n-1]
		next = cursorOf(last.At, strconv.FormatInt(last.Seq, 10)+" "+last.Owner)
	}
	writeItems(w, items, next)
	return nil
}

func entryOf(e *onejob.AuditEntry) AuditEntry {
	return AuditEntry{
		Owner: e.Owner, Seq: e.Seq, At: e.At.UTC(), Actor: e.Actor, Action: e.Action, Subject: e.Subject, Detail: e.Detail,
		Prev: hex.EncodeToString(e.Prev), Hash: hex.EncodeToString(e.Hash),
	}
}

func (q *query) auditCursor() *onejob.AuditCursor {
	at, rest, ok := q.place()
	if !ok {
		return nil
	}
	digits, owner, _ := strings.Cut(rest, " ")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || owner == "" {
		q.refuseCursor()
		return nil
	}
	return &onejob.AuditCursor{At: at, Owner: owner, Seq: seq}
}

func listAuditDoc() operation {
	return operation{
		id: "listAudit", summary: "List what people did with power, newest first",
		description: "Rulings, cancels, unblocks, presses of the fallback button, webhooks sent again, endpoints enabled, closed incidents, keys. What concerns the whole instance, as restores do, is under the owner /instance, for admins. Entries are never changed or removed.",
		query: []param{
			{name: "owner", says: "For admins"}, {name: "cursor", says: "next_cursor of the page before"}, limitParam,
		},
		answers:  []answer{{status: 200, says: "One page", body: AuditList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}
