package cli

import (
	"net/url"

	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/webhook"
)

// endpointInfos is what operators see of the configured endpoints.
func endpointInfos(endpoints []webhook.Endpoint) []httpapi.EndpointInfo {
	infos := make([]httpapi.EndpointInfo, len(endpoints))
	for i := range endpoints {
		e := &endpoints[i]
		infos[i] = httpapi.EndpointInfo{ID: e.ID(), URL: withoutSecrets(e.URL), Owner: e.Owner, Events: e.Events}
	}
	return infos
}

// withoutSecrets is a URL without its userinfo and its query. What is no URL is
// not shown at all.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
