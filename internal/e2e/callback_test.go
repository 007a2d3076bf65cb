package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/pgtest"
)

// told is what a provider that reported was answered.
type told struct {
	status    int
	Duplicate bool   `json:"duplicate"`
	Code      string `json:"code"`
}

// report sends what a provider would.
func report(t *testing.T, url, contentType, body string, header ...string) told {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("report: %v", err)
		return told{}
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body)
	got := told{status: resp.StatusCode}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Errorf("the report is answered %d %q", resp.StatusCode, raw)
	}
	return got
}

const (
	jsonType  = "application/json"
	succeeded = `{"status":"succeeded","url":"reported"}`
	failed    = `{"status":"failed"}`
)

// A stale report that came late overwrote what was newer (Pulsefy/Soter#263). The
// first that settles counts, and nothing after it.
func TestAReportSettlesItsAttemptOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		st, addr := newStudio(t), freeAddr(t)
		n := newStudioSite(t, storeURL, addr, st).newNodeAt(addr)
		n.start()
		r := n.ask(t.Context(), "picture", "one")
		o := st.last("one")
		if !strings.HasPrefix(o.Hook, "http://"+addr+"/v1/callbacks/studio/") {
			t.Fatalf("the provider is told to report to %s", o.Hook)
		}
		for body, want := range map[string]told{`{"status":"processing"}`: {status: 200}, `{"sta`: {status: 200}, `[]`: {status: 200}} {
			if got := report(t, o.Hook, jsonType, body); got != want {
				t.Errorf("%s is answered %+v; want %+v", body, got, want)
			}
		}
		if got := report(t, o.Hook, "text/html", "<h1>done</h1>"); got.status != 415 {
			t.Errorf("a page is answered %+v; want 415", got)
		}
		if got := report(t, o.Hook, jsonType, `"`+strings.Repeat("x", 70_000)+`"`); got.status != 413 {
			t.Errorf("too large a report is answered %+v; want 413", got)
		}
		if a := n.attemptOf(r.job.ID); a.State != "running" && a.State != "unknown" {
			t.Fatalf("what settles nothing left the attempt %s", a.State)
		}
		if got := report(t, o.Hook, jsonType, succeeded); got != (told{status: 200}) {
			t.Errorf("the report is answered %+v; want it taken", got)
		}
		for _, body := range []string{succeeded, failed, `{"status":"processing"}`} {
			if got := report(t, o.Hook, jsonType, body); got != (told{status: 200, Duplicate: true}) {
				t.Errorf("afterwards %s is answered %+v; want a duplicate", body, got)
			}
		}
		n.wantState(r.job.ID, "succeeded")
		if a := n.attemptOf(r.job.ID); string(a.Result) != `"reported"` || st.count("one") != 1 {
			t.Errorf("the result is %s after %d orders; want what was reported first, after 1", a.Result, st.count("one"))
		}
	})
}

func TestWhatDoesNotProveThatItIsTheProvidersChangesNothing(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	n := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st).newNodeAt(addr)
	n.start()
	mine, other, kept := n.ask(t.Context(), "picture", "mine"), n.ask(t.Context(), "picture", "other"), n.ask(t.Context(), "signed", "kept")
	hook, signed := st.last("mine").Hook, st.last("kept").Hook
	if !eventually(waitFor, func() bool {
		return n.attemptOf(mine.job.ID).ProviderID != "" && n.attemptOf(other.job.ID).ProviderID != "" && n.attemptOf(kept.job.ID).ProviderID != ""
	}) {
		t.Fatal("the attempts are not accepted")
	}
	myID := n.attemptOf(mine.job.ID).ID
	base := "http://" + addr + "/v1/callbacks/"
	token := func(hook string) string { return hook[strings.LastIndex(hook, "/")+1:] }
	_, othersProof, _ := strings.Cut(token(st.last("other").Hook), ".")
	for name, url := range map[string]string{
		"ForgedToken":         hook[:len(hook)-2] + "zz",
		"NoProof":             base + "studio/" + myID,
		"AnotherTarget":       base + "signing/" + token(hook),
		"AnotherTargetsToken": base + "studio/" + token(signed),
		"AnotherAttempts":     base + "studio/" + myID + "." + othersProof,
		"NoSuchTarget":        base + "nobody/" + token(hook),
		"NoSuchAttempt":       base + "studio/att_none." + othersProof,
	} {
		if got := report(t, url, jsonType, succeeded); got.status != 404 {
			t.Errorf("%s is answered %+v; want 404", name, got)
		}
	}
	sign := func(body string) string {
		mac := hmac.New(sha256.New, []byte(hookSecret))
		mac.Write([]byte(body))
		return hex.EncodeToString(mac.Sum(nil))
	}
	for name, signature := range map[string]string{"NotSigned": "", "SignedForAnotherBody": sign(failed), "Garbage": "zz"} {
		if got := report(t, signed, jsonType, succeeded, "X-Signature", signature); got.status != 401 {
			t.Errorf("%s is answered %+v; want 401", name, got)
		}
	}
	statuses := map[int]int{}
	for range 40 {
		statuses[report(t, base+"studio/forged", jsonType, succeeded).status]++
	}
	if statuses[429] == 0 || statuses[404]+statuses[429] != 40 {
		t.Errorf("40 more forged reports are answered %v; want 404, and 429 beyond the rate", statuses)
	}
	for _, r := range []reply{mine, other, kept} {
		if a := n.attemptOf(r.job.ID); a.State != "running" {
			t.Errorf("an attempt is %s; want all of them untouched", a.State)
		}
	}
	if got := report(t, hook, jsonType, succeeded); got != (told{status: 200}) {
		t.Errorf("the provider's own report from the same address is answered %+v; want it taken", got)
	}
	if got := report(t, signed, jsonType, failed, "X-Signature", sign(failed)); got != (told{status: 200}) {
		t.Errorf("the signed report is answered %+v; want it taken", got)
	}
	n.wantState(mine.job.ID, "succeeded")
	if a := n.attemptOf(kept.job.ID); a.State != "failed" {
		t.Errorf("the attempt that was reported failed is %s", a.State)
	}
	if n := strings.Count(n.log.tail(1<<20), "do not prove where they come from"); n != 1 {
		t.Errorf("%d lines were logged about forged reports; want 1 a minute", n)
	}
}

// The provider is done before its first answer is: the report waits for the call
// that it is about.
func TestAReportThatOvertakesTheAnswerIsNotLost(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	n := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st).newNodeAt(addr)
	n.start()
	reported := make(chan told, 1)
	st.beforeAnswer = func(o order) {
		go func() { reported <- report(t, o.Hook, jsonType, succeeded) }()
		pause(t.Context(), 300*time.Millisecond)
	}
	r := n.ask(t.Context(), "picture", "fast")
	if got := <-reported; got != (told{status: 200}) {
		t.Errorf("the report is answered %+v; want it taken", got)
	}
	n.wantState(r.job.ID, "succeeded")
	if a := n.attemptOf(r.job.ID); string(a.Result) != `"reported"` || st.count("fast") != 1 {
		t.Errorf("result %s after %d orders; want the reported one after 1", a.Result, st.count("fast"))
	}
}

// A provider whose answer was lost has told nobody its id; its report names the
// attempt all the same (replicate/cog#905).
func TestAReportFindsTheAttemptWhoseAnswerWasLost(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	n := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st).newNodeAt(addr)
	n.start()
	st.beforeAnswer = func(order) { panic(http.ErrAbortHandler) }
	r := n.ask(t.Context(), "picture", "lost")
	n.wantState(r.job.ID, "blocked")
	if got := report(t, st.last("lost").Hook, jsonType, succeeded); got != (told{status: 200}) {
		t.Errorf("the report is answered %+v; want it taken", got)
	}
	n.wantState(r.job.ID, "succeeded")
	if n := st.count("lost"); n != 1 {
		t.Errorf("%d orders; want 1", n)
	}
}

// Two nodes hear of the end at once, by a report and by a look-up: one result.
func TestAReportAndALookUpAtTwoNodesMakeOneResult(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	s := newStudioSite(t, pgtest.URL(t), addr, st)
	nodes := []*node{s.newNodeAt(addr), s.newNode()}
	for _, n := range nodes {
		n.start()
	}
	const jobs = 12
	by := map[string]int{}
	for i := range jobs {
		name := fmt.Sprintf("picture-%d", i)
		r := nodes[i%2].ask(t.Context(), "picture", name)
		o := st.last(name)
		if !eventually(waitFor, func() bool { return nodes[0].attemptOf(r.job.ID).ProviderID != "" }) {
			t.Fatal("the attempt is not accepted")
		}
		release := st.hold(o.ID)
		var reports sync.WaitGroup
		reports.Go(release)
		for _, n := range nodes {
			url := "http://" + n.addr + o.Hook[len("http://"+addr):]
			reports.Go(func() {
				pause(t.Context(), time.Duration(i)*150*time.Microsecond)
				report(t, url, jsonType, succeeded)
			})
		}
		reports.Wait()
		nodes[0].wantState(r.job.ID, "succeeded")
		var job struct {
			Version  int `json:"version"`
			Attempts []struct {
				State string `json:"state"`
			} `json:"attempts"`
		}
		nodes[1].show("/v1/jobs/"+r.job.ID, &job)
		a := nodes[1].attemptOf(r.job.ID)
		by[string(a.Result)]++
		if job.Version != 2 || len(job.Attempts) != 1 || a.State != "succeeded" || st.count(name) != 1 {
			t.Errorf("job %+v, attempt %+v, %d orders; want one result, taken once", job, a, st.count(name))
		}
	}
	t.Logf("%d jobs, each heard of at two nodes at once: %v", jobs, by)
}
