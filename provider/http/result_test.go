package httpcall_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/providertest"
)

// fal's queue says COMPLETED of work whose result then cannot be fetched.
func TestWorkThatIsDoneSucceededOnlyIfItsResultCanBeFetched(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		result  func(*providertest.Exchange)
		outcome onejob.Outcome // empty: the probe resolves nothing
		body    string
	}{
		"Fetched":       {func(x *providertest.Exchange) { x.Answer(200, `{"url":"x"}`) }, onejob.OutcomeSucceeded, `{"url":"x"}`},
		"Refused":       {func(x *providertest.Exchange) { x.Answer(422, `{"detail":"nsfw"}`) }, onejob.OutcomeExecutedFailed, ""},
		"NotAllowed":    {func(x *providertest.Exchange) { x.Answer(403, `{}`) }, "", ""},
		"TooMany":       {func(x *providertest.Exchange) { x.Answer(429, `{}`) }, "", ""},
		"ServerError":   {func(x *providertest.Exchange) { x.Answer(500, `{}`) }, "", ""},
		"HTML":          {func(x *providertest.Exchange) { x.Answer(200, `<html>`, "Content-Type: text/html") }, "", ""},
		"HTMLOfAProxy":  {func(x *providertest.Exchange) { x.Answer(404, `<html>`, "Content-Type: text/html") }, "", ""},
		"NoAnswerAtAll": {func(x *providertest.Exchange) { x.Close() }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, func(x *providertest.Exchange) {
				if strings.HasSuffix(x.Path, "/status") {
					x.Answer(200, `{"status":"COMPLETED","request_id":"r1"}`)
					return
				}
				tt.result(x)
			})
			p := newProvider(t, httpcall.Options{
				URL: srv.URL, Accepted: &httpcall.Accepted{ID: "body.request_id"},
				Lookup: &httpcall.Lookup{URL: srv.URL + "/{id}/status", ResultURL: srv.URL + "/{id}", Succeeded: "body.status == 'COMPLETED'"},
			})
			got, err := p.Probe(t.Context(), onejob.ProbeRequest{ProviderID: "r1"})
			if (err == nil) != (tt.outcome != "") || got.Answer.Outcome != tt.outcome || string(got.Answer.Body) != tt.body {
				t.Errorf("found %t, outcome %q, body %s, error %v; want %q, %s", got.Found, got.Answer.Outcome, got.Answer.Body, err, tt.outcome, tt.body)
			}
		})
	}
}
