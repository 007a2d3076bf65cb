package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

func TestADuplicateShowsUnlessIdempotencyIsHonoured(t *testing.T) {
	t.Parallel()
	for _, honour := range []bool{false, true} {
		t.Run(fmt.Sprint(honour), func(t *testing.T) {
			t.Parallel()
			srv := sim.ForTest(t, sim.Options{HonourIdempotency: honour})
			_, first := charge(t, srv, "k", `{}`)
			resp, second := charge(t, srv, "k", `{}`)
			want := 2
			if honour {
				want = 1
			}
			if got := srv.Executions("k"); got != want || (first == second) != honour || (resp.Header.Get("Idempotent-Replayed") != "") != honour {
				t.Errorf("%d executions, answers %s and %s; want %d executions", got, first, second, want)
			}
			if got := srv.Ledger()[1]; got.Replayed != honour || got.ID == "" {
				t.Errorf("entry %+v; want replayed %t", got, honour)
			}
		})
	}
}

func TestARepeatedKeyIsInConflictWhileTheFirstStillRuns(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{HonourIdempotency: true})
	for i := range 20 { // the repeat may overtake the first request: then another key is tried
		key := fmt.Sprint("k", i)
		srv.ScriptFor(key, sim.MustParse("slow=1h")...)
		c := dial(t, srv)
		if err := request(t, "http://sim", key, `{}`).Write(c.conn); err != nil {
			t.Fatal(err)
		}
		wait(t, srv.Provider, srv.Unscripted)
		resp, body := charge(t, srv, key, `{}`)
		if resp.StatusCode == 409 && resp.Header.Get("Retry-After") == "1" && srv.Executions(key) == 0 {
			return
		}
		t.Logf("key %s: got %d %s", key, resp.StatusCode, body)
	}
	t.Error("the repeats of twenty keys got no 409")
}

func TestAKeyIsFreeAfterARefusal(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{HonourIdempotency: true})
	srv.Script(sim.MustParse("status=503")...)
	if a, b := statusOf(t, srv, "k", ""), statusOf(t, srv, "k", ""); a != 503 || b != 200 || srv.Executions("k") != 1 {
		t.Errorf("got %d then %d, %d executions; want 503, 200 and one", a, b, srv.Executions("k"))
	}
}

func TestConcurrentRequestsOfOneHonouredKeyAreExecutedOnce(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{HonourIdempotency: true})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { statusOf(t, srv, "k", "") })
	}
	wg.Wait()
	if got := srv.Executions("k"); got != 1 || srv.Requests() != 16 {
		t.Errorf("%d executions of %d requests; want 1 of 16", got, srv.Requests())
	}
}

func TestTheLedgerForgetsItsOldestEntriesAndKeepsItsCounts(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{MaxEntries: 3, MaxIntents: 2})
	for i := range 5 {
		statusOf(t, srv, fmt.Sprint("k", i), "")
	}
	entries := srv.Ledger()
	if len(entries) != 3 || entries[0].Number != 3 || entries[2].Intent != "k4" || srv.TotalExecutions() != 5 || srv.Requests() != 5 {
		t.Errorf("got %+v; want the last three of five", srv.Report())
	}
	if srv.Executions("k0") != 0 || srv.Executions("k4") != 1 {
		t.Errorf("got %v; want the last two intents", srv.Report().Intents)
	}
}

func TestTheLedgerFileOutlivesTheProvider(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	opts := sim.Options{LedgerFile: file, HonourIdempotency: true}
	first := sim.ForTest(t, opts)
	first.Script(sim.MustParse("twice", "silent")...)
	_, made := charge(t, first, "k", `{}`)
	c := dial(t, first)
	c.send() // a replay that is never answered
	wait(t, first.Provider, func() bool { return first.Requests() == 2 && first.Unscripted() })

	// The process dies: the file is what it is, its last line perhaps cut.
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(copied, append(lines, `{"entry":{"num`...), 0o600); err != nil {
		t.Fatal(err)
	}
	opts.LedgerFile = copied
	second := sim.ForTest(t, opts)
	if second.Requests() != 2 || second.Executions("k") != 2 || second.TotalExecutions() != 2 || second.Ledger()[0].Status != 200 {
		t.Errorf("read back %+v; want two requests and two executions", second.Report())
	}
	if _, again := charge(t, second, "k", `{}`); again != made || second.Requests() != 3 {
		t.Errorf("the key answers %s; want %s as before", again, made)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if third := sim.ForTest(t, opts); third.Requests() != 3 || third.Executions("k") != 2 {
		t.Errorf("read back %+v; want three requests", third.Report())
	}
}

func TestAResetEmptiesTheLedgerFile(t *testing.T) {
	t.Parallel()
	opts := sim.Options{LedgerFile: filepath.Join(t.TempDir(), "ledger.jsonl")}
	srv := sim.ForTest(t, opts)
	statusOf(t, srv, "k", "")
	srv.Reset()
	statusOf(t, srv, "l", "")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if again := sim.ForTest(t, opts); again.Requests() != 1 || again.Executions("k") != 0 || again.Executions("l") != 1 {
		t.Errorf("read back %+v; want what came after the reset", again.Report())
	}
}

func TestABrokenLedgerFileIsReported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(file, []byte("not JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Start("", sim.Options{LedgerFile: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v; want an error that names the file", err)
	}
	if _, err := sim.Start("", sim.Options{Default: sim.Step{Fault: "lat"}}); err == nil {
		t.Error("an unknown default fault was taken")
	}
}

func TestWhatIsInFlightAtAResetIsNotCounted(t *testing.T) {
	t.Parallel()
	done := make(chan sim.Entry, 1)
	srv := sim.ForTest(t, sim.Options{EntryFunc: func(e sim.Entry) { done <- e }})
	srv.Script(sim.MustParse("slow=200ms")...)
	c := dial(t, srv)
	c.send()
	wait(t, srv.Provider, func() bool { return srv.Unscripted() && srv.Requests() == 1 })
	srv.Reset()
	select {
	case e := <-done:
		if e.Executions != 1 || srv.TotalExecutions() != 0 || srv.Requests() != 0 {
			t.Errorf("entry %+v, %+v; want it told but not counted", e, srv.Report())
		}
	case <-time.After(patience):
		t.Fatal("the request never ended")
	}
}

func TestALookUpFindsAChargeByTheCallersOwnReferenceAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	opts := sim.Options{
		LedgerFile: filepath.Join(t.TempDir(), "ledger.jsonl"),
		IntentFunc: sim.IntentMember("order"), ReferenceFunc: sim.IntentMember("ref"),
	}
	first, err := sim.Start("", opts)
	if err != nil {
		t.Fatal(err)
	}
	_, made := charge(t, first, "", `{"order":"o","ref":"att_1"}`)
	if resp, _ := get(t, first.URL()+"/v1/charges/att_2"); resp.StatusCode != 404 {
		t.Errorf("a reference that never came was answered %d; want 404", resp.StatusCode)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := sim.ForTest(t, opts)
	if resp, got := get(t, second.URL()+"/v1/charges/att_1"); resp.StatusCode != 200 || got != made {
		t.Errorf("by its reference: %d %s; want the charge %s", resp.StatusCode, got, made)
	}
	if n := second.Executions("o"); n != 1 {
		t.Errorf("%d executions of the intent; want 1", n)
	}
	second.Reset()
	if resp, _ := get(t, second.URL()+"/v1/charges/att_1"); resp.StatusCode != 404 {
		t.Errorf("after a reset the reference was answered %d; want 404", resp.StatusCode)
	}
}
