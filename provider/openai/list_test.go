package openai_test

import (
	"errors"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

const (
	vectors  = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]}],"model":"m-1","usage":{"prompt_tokens":10,"total_tokens":10}}`
	pictures = `{"created":1,"data":[{"b64_json":"aGk="}],"usage":{"input_tokens":10,"output_tokens":3,"total_tokens":13}}`
)

func openAPI(t testing.TB, url string, api openai.API) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		BaseURL: url + "/v1", Model: "m", API: api, APIKey: providertest.Canary, MaxResponseBytes: 64 << 10,
		Price: wire.TokenPrice{InputMicros: 1_000_000, OutputMicros: 2_000_000, Currency: "USD"},
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open:  func(t testing.TB, url string) onejob.Provider { return openAPI(t, url, openai.APIEmbeddings) },
		Input: `{"input":"hi"}`, Success: vectors, KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

func TestImages(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open:  func(t testing.TB, url string) onejob.Provider { return openAPI(t, url, openai.APIImages) },
		Input: `{"prompt":"a cat"}`, Success: pictures, KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

func TestListsAreAskedForWhereTheyAreAndPriced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		api        openai.API
		body, path string
		micros     int64
	}{
		{openai.APIEmbeddings, vectors, "/v1/embeddings", 10},
		{openai.APIImages, pictures, "/v1/images/generations", 16},
	} {
		t.Run(string(tt.api), func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, tt.body) })
			p := openAPI(t, srv.URL, tt.api)
			a, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
			if err != nil || a.CostMicros != tt.micros || srv.Asked()[0].Path != tt.path {
				t.Errorf("answer %+v of %s, %v; want %d micros", a, srv.Asked()[0].Path, err, tt.micros)
			}
			if _, err := p.Render(onejob.Prompt{User: "hi"}); err == nil {
				t.Error("it renders a prompt")
			}
			if _, err := p.ReadOutput([]byte(tt.body)); err == nil {
				t.Error("it reads a text")
			}
			if _, err := p.CountTokens(t.Context(), []byte(`{}`)); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("it counts tokens: %v", err)
			}
		})
	}
}

// An answer without what was asked for was paid for, and is not to be had again.
func TestAListIsHeldToItsShape(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]map[openai.API]onejob.Outcome{
		vectors:              {openai.APIEmbeddings: onejob.OutcomeSucceeded, openai.APIImages: onejob.OutcomeResultLost},
		pictures:             {openai.APIEmbeddings: onejob.OutcomeResultLost, openai.APIImages: onejob.OutcomeSucceeded},
		`{"object":"list"}`:  {openai.APIEmbeddings: onejob.OutcomeResultLost, openai.APIImages: onejob.OutcomeResultLost},
		`{"data":[]}`:        {openai.APIEmbeddings: onejob.OutcomeExecutedFailed, openai.APIImages: onejob.OutcomeExecutedFailed},
		`{"error":{"a":1}}`:  {openai.APIEmbeddings: onejob.OutcomeExecutedFailed, openai.APIImages: onejob.OutcomeExecutedFailed},
		`{"data":[{"a":1}]}`: {openai.APIEmbeddings: onejob.OutcomeResultLost, openai.APIImages: onejob.OutcomeResultLost},
		`{"data":[{"embedding":[1],"url":"u"},{"index":1}]}`: {openai.APIEmbeddings: onejob.OutcomeResultLost, openai.APIImages: onejob.OutcomeResultLost},
	} {
		for api, outcome := range want {
			srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, body) })
			a, err := openAPI(t, srv.URL, api).Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
			if err != nil || a.Outcome != outcome {
				t.Errorf("%s: %s: outcome %q, %v; want %q", api, body, a.Outcome, err, outcome)
			}
		}
	}
}
