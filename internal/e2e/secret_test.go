package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A credential must appear nowhere: not in the store, a log, a metric, an answer or a
// webhook, not even when the provider echoes it (maximhq/bifrost#3954).
func TestASecretAppearsNowhere(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, "sqlite:"+filepath.Join(dir, "onejob.db"), "{effect: none, targets: [acme], timeout: 1s, linger: 1s}", sim.Options{})
	s.provider.Script(sim.MustParse("ok", "status=401", "status=500", "half", "header_canary", "garbage")...)
	var told bytes.Buffer
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) { w.WriteHeader(200 + 300*(n%2)) })
	s.tell("10ms", r.URL+"/hooks?token="+canary, "http://127.0.0.1:9/"+canary, "https://127.0.0.1:9/"+canary)
	n := s.newNode()
	n.start()
	var answers bytes.Buffer
	for i := range 6 {
		r, err := n.submit(t.Context(), fmt.Sprintf("order-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		eventually(10*time.Second, func() bool {
			now, err := n.get(t.Context(), r.job.ID)
			return err == nil && now.job.State != "queued" && now.job.State != "running"
		})
		for _, path := range []string{"/v1/jobs/" + r.job.ID, "/v1/jobs/" + r.job.ID + "/attempts", "/v1/jobs/" + r.job.ID + "/result", "/metrics"} {
			answers.Write(body(t, n, path))
		}
	}
	if err := n.terminate(); err != nil {
		t.Error(err)
	}
	if len(r.at("/hooks")) == 0 {
		t.Error("no webhook was sent")
	}
	for _, h := range r.at("/hooks") {
		told.WriteString(h.raw)
	}
	sinks := map[string][]byte{"the log": []byte(n.log.tail(1 << 20)), "the answers": answers.Bytes(), "a webhook": told.Bytes()}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			sinks[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range sinks {
		if bytes.Contains(content, []byte(canary)) {
			t.Errorf("%s holds the provider's secret", name)
		}
		if bytes.Contains(content, []byte(s.key)) {
			t.Errorf("%s holds the caller's key", name)
		}
		if bytes.Contains(content, []byte(hookCanary)) || bytes.Contains(content, []byte(hookKey)) {
			t.Errorf("%s holds what webhooks are signed with", name)
		}
	}
}

func body(t *testing.T, n *node, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.addr+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.site.key)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
