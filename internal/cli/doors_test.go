package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/store/postgres"
)

const doorsSecret = "a secret that every door shares"

// doors are all the ways into one store.
type doors struct {
	listen string
	env    map[string]string
	client *onejob.Client
}

// send submits an order under a key as it would be written in a header, and
// returns the job's id and whether the key had been used before.
type send func(ctx context.Context, d *doors, key, order string) (id string, existed bool, err error)

var everyDoor = map[string]send{
	"HTTP": func(ctx context.Context, d *doors, key, order string) (string, bool, error) {
		res, body, err := d.post(ctx, "/v1/jobs", fmt.Sprintf(`{"kind":"charge","input":{"order":%q}}`, order), key)
		if err != nil {
			return "", false, err
		}
		var job struct{ ID string }
		err = json.Unmarshal(body, &job)
		return job.ID, res.Header.Get("Idempotent-Replayed") == "true", err
	},
	"Batch": func(ctx context.Context, d *doors, key, order string) (string, bool, error) {
		_, body, err := d.post(ctx, "/v1/jobs:batch", fmt.Sprintf(`{"items":[{"idempotency_key":%q,"kind":"charge","input":{ "order" : %q }}]}`, key, order), "")
		if err != nil {
			return "", false, err
		}
		var batch struct {
			Items []struct{ Job struct{ ID string } }
		}
		if err = json.Unmarshal(body, &batch); err != nil || len(batch.Items) != 1 || batch.Items[0].Job.ID == "" {
			return "", false, fmt.Errorf("%s, %w", body, err)
		}
		return batch.Items[0].Job.ID, false, nil
	},
	"CLI": func(ctx context.Context, d *doors, key, order string) (string, bool, error) {
		got := run(ctx, d.env, fmt.Sprintf(`{"order":%q}`, order), "submit", "charge", "--key", key, "--input", "-")
		if got.code != cli.ExitOK {
			return "", false, fmt.Errorf("%+v", got)
		}
		id, word, _ := strings.Cut(strings.TrimSpace(got.stdout), " ")
		return id, word == "replayed", nil
	},
	"Go": func(ctx context.Context, d *doors, key, order string) (string, bool, error) {
		job, existed, err := d.client.Submit(ctx, onejob.SubmitParams{
			Owner: "shop", Key: key, Kind: "charge", Input: fmt.Appendf(nil, "{\n\"order\": %q}", order),
		})
		if err != nil {
			return "", false, err
		}
		return job.ID, existed, nil
	},
}

func (d *doors) post(ctx context.Context, path, body, key string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.listen+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+d.env["ONEJOB_API_KEY"])
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var read bytes.Buffer
	if _, err := read.ReadFrom(res.Body); err != nil {
		return nil, nil, err
	}
	if res.StatusCode >= 300 {
		return nil, nil, errors.New(read.String())
	}
	return res, read.Bytes(), nil
}

func openDoors(t *testing.T, provider string) *doors {
	t.Helper()
	url, listen := pgtest.URL(t), freePort(t)
	path := filepath.Join(t.TempDir(), "onejob.yaml")
	text := "targets: {acme: {provider: http, request: {url: '" + provider + "/'}, idempotency_header: Idempotency-Key}}\n" +
		"kinds: {charge: {effect: external, targets: [acme]}}\nworkers: {drain: 10s}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"DATABASE_URL": url, "ONEJOB_LISTEN": listen, "ONEJOB_SERVER": listen, "ONEJOB_SECRET": doorsSecret}
	serving, stop := context.WithCancel(t.Context())
	served := make(chan outcome, 1)
	go func() { served <- run(serving, env, "", "serve", "--config", path, "--migrate") }()
	t.Cleanup(func() {
		stop()
		<-served
	})
	waitUntilReady(t, "http://"+listen, served)
	key := run(t.Context(), env, "", "keys", "create", "--owner", "shop")
	if key.code != cli.ExitOK {
		t.Fatalf("keys create: %+v", key)
	}
	client := map[string]string{"ONEJOB_SERVER": listen, "ONEJOB_API_KEY": strings.TrimSpace(key.stdout)}

	store, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	library, err := onejob.New(store, onejob.Options{
		Secret: []byte(doorsSecret),
		Kinds:  map[string]onejob.Kind{"charge": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"acme"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &doors{listen: listen, env: client, client: library}
}

// conductor-oss/conductor#1527: a key was taken at one door and ignored behind it.
// The same key is one job through whatever door, whichever was first.
func TestOneKeyIsOneJobThroughEveryDoor(t *testing.T) {
	t.Parallel()

	provider := sim.ForTest(t, sim.Options{IntentFunc: sim.IntentMember("order")})
	d := openDoors(t, provider.URL())
	for _, written := range []string{"key %s", `"quoted-%s"`, `"\"in-quotes-%s\""`} {
		for first := range everyDoor {
			key, order := fmt.Sprintf(written, first), fmt.Sprintf(written, first)
			id, existed, err := everyDoor[first](t.Context(), d, key, order)
			if err != nil || existed {
				t.Fatalf("%s first with %q: existed %t, %v", first, key, existed, err)
			}
			for door, send := range everyDoor {
				again, existed, err := send(t.Context(), d, key, order)
				if err != nil || again != id || (!existed && door != "Batch") {
					t.Errorf("%s after %s with %q: job %s, existed %t, %v; want job %s, replayed", door, first, key, again, existed, err, id)
				}
				if _, _, err := send(t.Context(), d, key, order+" and more"); err == nil {
					t.Errorf("%s after %s with %q takes another intent", door, first, key)
				}
			}
			if err := provider.Wait(t.Context(), func() bool { return provider.Executions(order) > 0 }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if twice := provider.Duplicates(); len(twice) > 0 || provider.TotalExecutions() != 3*int64(len(everyDoor)) {
		t.Errorf("%d executions, more than once: %v; want %d", provider.TotalExecutions(), twice, 3*len(everyDoor))
	}
}
