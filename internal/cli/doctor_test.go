package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// storeWithAWebhook makes a store with one job whose end is still to be told.
func storeWithAWebhook(t *testing.T) (url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	url = "sqlite:" + path
	run(t.Context(), nil, "", "keys", "create", "--owner", "shop", "--store", url)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	job := onejob.JobCreateParams{
		ID: onejob.NewJobID(0, time.Now()), Owner: "shop", KeyHash: []byte("k"), Fingerprint: []byte("f"),
		Token: onejob.NewToken(), Kind: "charge", Input: []byte("{}"), Policy: policy,
		Webhooks: []onejob.Subscription{{Endpoint: "ep_1"}},
	}
	if results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{job}); err != nil || results[0].Err != nil {
		t.Fatalf("create: %+v, %v", results, err)
	}
	if _, err := s.JobCancel(t.Context(), []onejob.JobCancelParams{{ID: job.ID}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestDoctorSpeaksOfWebhooksThatHaveWaitedForAnHour(t *testing.T) {
	t.Parallel()

	url := storeWithAWebhook(t)
	for later, spoken := range map[time.Duration]bool{59 * time.Minute: false, 61 * time.Minute: true} {
		var stdout, stderr lockedBuffer
		cli.Main(t.Context(), cli.Env{
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" },
			NowFunc: func() time.Time { return time.Now().Add(later) },
		}, []string{"onejob", "doctor", "--store", url})
		if says := strings.Contains(stderr.String(), "webhooks: 1 wait to be sent, the oldest since "); says != spoken {
			t.Errorf("%s later doctor says %q; want it to speak of webhooks: %t", later, stderr.String(), spoken)
		}
	}
}
