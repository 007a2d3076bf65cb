package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// getAttempt serves GET /v1/attempts/{id}.
func (a *api) getAttempt(w http.ResponseWriter, r *http.Request) error {
	attempt, err := a.client.Attempt(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.writeAttempt(w, http.StatusOK, &attempt)
}

func getAttemptDoc() operation {
	return operation{
		id: "getAttempt", summary: "Read an attempt, with its own answer",
		answers:  []answer{{status: 200, says: "The attempt", body: Attempt{}}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}
