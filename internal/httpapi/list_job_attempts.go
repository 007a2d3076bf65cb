package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// AttemptList is a list of attempts, without their results.
type AttemptList struct {
	Items      []Attempt `json:"items" nullable:"false"`
	NextCursor string    `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

// listJobAttempts serves GET /v1/jobs/{id}/attempts, oldest first.
func (a *api) listJobAttempts(w http.ResponseWriter, r *http.Request) error {
	job, err := a.client.Get(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(job))
	return writeAttempts(w, job.Attempts, "")
}

func writeAttempts(w http.ResponseWriter, attempts []onejob.Attempt, next string) error {
	items := make([][]byte, len(attempts))
	for i := range attempts {
		var err error
		if items[i], err = encode(attemptOf(&attempts[i])); err != nil {
			return err
		}
	}
	writeItems(w, items, next)
	return nil
}

func listJobAttemptsDoc() operation {
	return operation{
		id: "listJobAttempts", summary: "List a job's attempts, oldest first",
		answers:  []answer{{status: 200, says: "All of them", body: AttemptList{}, headers: []string{"ETag"}}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}
