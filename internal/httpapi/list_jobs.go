package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// JobList is one page of jobs, newest first.
type JobList struct {
	Items      []Job  `json:"items" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

// listJobs serves GET /v1/jobs.
func (a *api) listJobs(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "state", "kind", "target", "owner", "idempotency_key", "created_after", "created_before", "error_code", "cursor", "limit")
	p := onejob.JobListParams{
		Owner: q.scope(exchangeOf(r).caller), States: states(q, onejob.JobStates()),
		Kind: q.text("kind"), Target: q.text("target"), ErrorCode: q.text("error_code"),
		CreatedAfter: q.time("created_after"), CreatedBefore: q.time("created_before"),
		Before: q.cursor(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	if q.values.Has("idempotency_key") {
		key, err := onejob.ParseKey(q.text("idempotency_key"))
		if err != nil {
			return err
		}
		p.KeyHash = onejob.HashKey(key)
	}
	page, err := a.client.List(r.Context(), p)
	if err != nil {
		return err
	}
	items := make([][]byte, len(page.Jobs))
	for i, job := range page.Jobs {
		if items[i], err = encode(jobOf(job)); err != nil {
			return err
		}
	}
	next := ""
	if n := len(page.Jobs); page.More && n > 0 {
		next = cursorOf(page.Jobs[n-1].CreatedAt, page.Jobs[n-1].ID)
	}
	writeItems(w, items, next)
	return nil
}

func listJobsDoc() operation {
	return operation{
		id: "listJobs", summary: "List jobs, newest first, without results",
		query: []param{
			{name: "state", says: "One state or several, with commas", list: true},
			{name: "kind"},
			{name: "target", says: "Asked for, or of any attempt"},
			{name: "owner", says: "For admins"},
			{name: "idempotency_key"},
			{name: "error_code"},
			{name: "created_after", format: "date-time"},
			{name: "created_before", format: "date-time"},
			{name: "cursor", says: "next_cursor of the page before"},
			limitParam,
		},
		answers:  []answer{{status: 200, says: "One page", body: JobList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest, onejob.CodeKeyInvalid},
	}
}
