package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"

	"github.com/onejob-dev/onejob"
)

// enableWebhookEndpoint serves POST /v1/webhook-endpoints/{id}:enable.
func (a *api) enableWebhookEndpoint(w http.ResponseWriter, r *http.Request) error {
	if err := a.readNothing(w, r); err != nil {
		return err
	}
	c, id := exchangeOf(r).caller, r.PathValue("id")
	endpoints, err := a.endpoints(r.Context(), c)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(endpoints, func(e WebhookEndpoint) bool { return e.ID == id })
	if n < 0 {
		return &onejob.Error{Code: onejob.CodeNotFound, Message: "there is no endpoint \"" + shorten(id) + "\""}
	}
	enable := onejob.EndpointEnableParams{ID: id, Owner: cmp.Or(endpoints[n].Owner, c.owner), Actor: c.actor}
	if err := a.client.EnableEndpoint(r.Context(), enable); err != nil {
		return err
	}
	a.log.InfoContext(r.Context(), "an endpoint of webhooks was enabled", slog.String("endpoint", id), slog.String("actor", c.actor))
	endpoints[n].Disabled = nil
	body, err := encode(endpoints[n])
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func enableWebhookEndpointDoc() operation {
	return operation{
		id: "enableWebhookEndpoint", summary: "Let an endpoint be sent webhooks again",
		description: "What waited for it is sent when it is due. Safe to repeat.",
		answers:     []answer{{status: 200, says: "The endpoint, enabled", body: WebhookEndpoint{}}},
		problems: []onejob.Code{
			onejob.CodeNotFound, onejob.CodePayloadNotCanonical, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}
