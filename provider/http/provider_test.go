package httpcall_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/providertest"
)

func TestProvider(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open: func(t testing.TB, url string) onejob.Provider {
			return newProvider(t, httpcall.Options{
				URL: url + "/v1/charges", SecretHeaders: map[string]onejob.Secret{"Authorization": "Bearer " + providertest.Canary},
				Body:              `{"ref": "{{ job.id }}", "amount": {{ input.amount }}}`,
				IdempotencyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
			})
		},
		Input: `{"amount":5}`, Success: `{"id":"ch_1","status":"succeeded"}`,
		KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

func newProvider(t testing.TB, opts httpcall.Options) *httpcall.Provider {
	t.Helper()
	p, err := httpcall.New(opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}
