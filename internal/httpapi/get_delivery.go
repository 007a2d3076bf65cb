package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// getDelivery serves GET /v1/deliveries/{id}.
func (a *api) getDelivery(w http.ResponseWriter, r *http.Request) error {
	d, err := a.client.Delivery(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeDelivery(w, &d)
}

func getDeliveryDoc() operation {
	return operation{
		id: "getDelivery", summary: "Read a webhook: how often it was tried, and what came of it",
		answers:  []answer{{status: 200, says: "The webhook", body: Delivery{}}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}
