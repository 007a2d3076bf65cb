package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// resendDelivery serves POST /v1/deliveries/{id}:resend.
func (a *api) resendDelivery(w http.ResponseWriter, r *http.Request) error {
	if err := a.readNothing(w, r); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	d, err := a.client.ResendDelivery(r.Context(), onejob.DeliveryResendParams{ID: r.PathValue("id"), Owner: c.scope, Actor: c.actor})
	if err != nil {
		return err
	}
	return writeDelivery(w, &d)
}

func resendDeliveryDoc() operation {
	return operation{
		id: "resendDelivery", summary: "Send a webhook again, whatever became of it before",
		description: "It keeps its webhook-id, by which a receiver knows what it has seen, and what it was first sent as. To a disabled endpoint it goes once that is enabled. Safe to repeat: one that is pending is only due at once.",
		answers:     []answer{{status: 200, says: "The webhook as it is now, due", body: Delivery{}}},
		problems: []onejob.Code{
			onejob.CodeNotFound, onejob.CodePayloadNotCanonical, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}
