package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// listDeliveries serves GET /v1/deliveries.
func (a *api) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "job_id", "endpoint", "state", "owner", "cursor", "limit")
	return a.answerDeliveries(w, r, q, q.text("job_id"))
}

// listJobDeliveries serves GET /v1/jobs/{id}/deliveries. A job that the caller does
// not see is not found, where an empty list would do for a filter.
func (a *api) listJobDeliveries(w http.ResponseWriter, r *http.Request) error {
	job, err := a.client.Get(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.answerDeliveries(w, r, queryOf(r, "endpoint", "state", "cursor", "limit"), job.ID)
}

func (a *api) answerDeliveries(w http.ResponseWriter, r *http.Request, q *query, job string) error {
	p := onejob.DeliveryListParams{
		Owner: q.scope(exchangeOf(r).caller), JobID: job, Endpoint: q.text("endpoint"),
		States: states(q, onejob.DeliveryStates()), Before: q.cursorAt(onejob.PartOfDeliveryID), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	page, err := a.client.Deliveries(r.Context(), p)
	if err != nil {
		return err
	}
	return writeDeliveries(w, &page)
}

// The parameters that both lists of deliveries have.
var deliveryParams = []param{
	{name: "endpoint", says: "To the endpoint with this id"},
	{name: "state", says: "One state or several, with commas", list: true},
	{name: "cursor", says: "next_cursor of the page before"},
	limitParam,
}

func listDeliveriesDoc() operation {
	return operation{
		id: "listDeliveries", summary: "List webhooks, newest first",
		description: "Of jobs of the caller's owner. Bodies are not shown: they are what the endpoint was sent.",
		query: append([]param{
			{name: "job_id", says: "About the job with this id"}, {name: "owner", says: "For admins"},
		}, deliveryParams...),
		answers:  []answer{{status: 200, says: "One page", body: DeliveryList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}

func listJobDeliveriesDoc() operation {
	return operation{
		id: "listJobDeliveries", summary: "List the webhooks about a job, newest first",
		query:    deliveryParams,
		answers:  []answer{{status: 200, says: "One page", body: DeliveryList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest, onejob.CodeNotFound},
	}
}
