package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/memory"
)

// BenchmarkPost is POST /v1/jobs from 64 connections with a body of two kilobytes,
// beside a server that only decodes the same body and answers. Jobs are recorded
// and not tried.
func BenchmarkPost(b *testing.B) {
	const callers = 64
	b.Run("echo", func(b *testing.B) {
		measure(b, callers, newPoster(b, http.HandlerFunc(echo), "").post)
	})
	for _, s := range stores {
		b.Run(s.name, func(b *testing.B) {
			handler, key := newAPI(b, s.open(b))
			measure(b, callers, newPoster(b, handler, key).post)
		})
	}
}

// echo decodes an envelope and answers it.
func echo(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Kind  string          `json:"kind"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": r.Header.Get("Idempotency-Key"), "kind": body.Kind, "state": "queued"})
}

func newAPI(b *testing.B, store onejob.Store) (handler http.Handler, key string) {
	b.Helper()
	shared, err := grouped.New(store, grouped.Options{})
	if err != nil {
		b.Fatal(err)
	}
	client, err := onejob.New(shared, onejob.Options{
		Secret: []byte("a secret for the benchmark"), Kinds: map[string]onejob.Kind{kind: {Policy: policy}},
	})
	if err != nil {
		b.Fatal(err)
	}
	keys := memory.Open(memory.Options{})
	printed, stored, err := apikey.Generate(apikey.Params{Owner: "o", Role: onejob.RoleSubmitter, Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	if err := keys.KeyCreate(b.Context(), onejob.KeyCreateParams{Key: stored}); err != nil {
		b.Fatal(err)
	}
	handler, err = httpapi.New(httpapi.Options{Client: client, Keys: apikey.NewAuthenticator(keys, apikey.Options{})})
	if err != nil {
		b.Fatal(err)
	}
	return handler, printed
}

// poster posts over real connections.
type poster struct {
	url, key string
	body     []byte
	client   *http.Client
}

func newPoster(b *testing.B, handler http.Handler, key string) *poster {
	b.Helper()
	srv := httptest.NewServer(handler)
	b.Cleanup(srv.Close)
	return &poster{
		url: srv.URL + "/v1/jobs", key: key,
		body:   fmt.Appendf(nil, `{"kind":%q,"input":{"prompt":%q}}`, kind, strings.Repeat("a picture of a cat ", 105)),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

func (p *poster) post(ctx context.Context, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}
