package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// EndpointInfo is an endpoint of webhooks that is configured.
type EndpointInfo struct {
	ID string
	// URL is shown to operators: without userinfo and query, which may be secret.
	URL string
	// Owner whose jobs it is told about, and those of the owners below. Empty:
	// everybody's.
	Owner  string
	Events []onejob.WebhookEvent // beyond the end of a job
}

// tells reports whether the endpoint is told about jobs of an owner. An empty
// owner stands for all of them.
func (e *EndpointInfo) tells(owner string) bool {
	return owner == "" || e.Owner == "" || e.Owner == owner || strings.HasPrefix(owner, e.Owner+"/")
}

// WebhookEndpoint is an endpoint as operators see it.
type WebhookEndpoint struct {
	ID       string                `json:"id"`
	URL      string                `json:"url,omitzero" doc:"Without userinfo and query; absent: it is not configured here any more"`
	Owner    string                `json:"owner,omitzero" doc:"Whose jobs it is told about, and those of the owners below; absent: everybody's, or not known"`
	Events   []onejob.WebhookEvent `json:"events" nullable:"false" doc:"What it is told beyond the end of a job"`
	Disabled *EndpointDisabled     `json:"disabled,omitzero" doc:"It is sent nothing until it is enabled"`
}

// EndpointDisabled says why an endpoint is sent nothing.
type EndpointDisabled struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// WebhookEndpointList is every endpoint there is.
type WebhookEndpointList struct {
	Items []WebhookEndpoint `json:"items" nullable:"false"`
}

// listWebhookEndpoints serves GET /v1/webhook-endpoints.
func (a *api) listWebhookEndpoints(w http.ResponseWriter, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	endpoints, err := a.endpoints(r.Context(), exchangeOf(r).caller)
	if err != nil {
		return err
	}
	items := make([][]byte, len(endpoints))
	for i := range endpoints {
		if items[i], err = encode(endpoints[i]); err != nil {
			return err
		}
	}
	writeItems(w, items, "")
	return nil
}

// endpoints lists what is configured, and after it what is disabled and no longer
// configured, as far as the caller's owner is concerned.
func (a *api) endpoints(ctx context.Context, c caller) ([]WebhookEndpoint, error) {
	disabled, err := a.client.DisabledEndpoints(ctx)
	if err != nil {
		return nil, err
	}
	var list []WebhookEndpoint
	for i := range a.opts.Endpoints {
		e := &a.opts.Endpoints[i]
		n := slices.IndexFunc(disabled, func(d onejob.DisabledEndpoint) bool { return d.ID == e.ID })
		shown := WebhookEndpoint{ID: e.ID, URL: e.URL, Owner: e.Owner, Events: e.Events}
		if n >= 0 {
			shown.Disabled = disabledOf(&disabled[n])
			disabled = slices.Delete(disabled, n, n+1)
		}
		if e.tells(c.scope) {
			list = append(list, shown)
		}
	}
	for i := range disabled {
		list = append(list, WebhookEndpoint{ID: disabled[i].ID, Disabled: disabledOf(&disabled[i])})
	}
	return list, nil
}

func disabledOf(d *onejob.DisabledEndpoint) *EndpointDisabled {
	return &EndpointDisabled{Reason: d.Reason, Since: d.Since.UTC()}
}

func listWebhookEndpointsDoc() operation {
	return operation{
		id: "listWebhookEndpoints", summary: "List the endpoints of webhooks, and which of them are disabled",
		description: "An endpoint that answers 410 is disabled; its webhooks wait.",
		answers:     []answer{{status: 200, says: "All of them", body: WebhookEndpointList{}}},
	}
}
