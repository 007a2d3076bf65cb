package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// listAttempts serves GET /v1/attempts. With state=unknown it is the inbox.
func (a *api) listAttempts(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "state", "owner", "cursor", "limit")
	p := onejob.AttemptListParams{
		Owner: q.scope(exchangeOf(r).caller), States: states(q, onejob.AttemptStates()),
		Before: q.cursor(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	page, err := a.client.Attempts(r.Context(), p)
	if err != nil {
		return err
	}
	next := ""
	if n := len(page.Attempts); page.More && n > 0 {
		next = cursorOf(page.Attempts[n-1].StartedAt, page.Attempts[n-1].ID)
	}
	return writeAttempts(w, page.Attempts, next)
}

func listAttemptsDoc() operation {
	return operation{
		id: "listAttempts", summary: "List attempts, newest first; with state=unknown, what waits for a person",
		query: []param{
			{name: "state", says: "One state or several, with commas", list: true},
			{name: "owner", says: "For admins"},
			{name: "cursor", says: "next_cursor of the page before"},
			limitParam,
		},
		answers:  []answer{{status: 200, says: "One page", body: AttemptList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}
