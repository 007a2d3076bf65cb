package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"
)

// The runs of this file act out the whole of the problem: a provider that stalls,
// does the work and forgets to answer, and dies; nodes that die; a database that is
// restarted. What counts is how often the provider did the work of one intent.

// size is how large a run is: small in ordinary runs, full by environment.
func size(small, large int) int {
	if full() {
		return large
	}
	return small
}

// The first half of each kind of run, on one node: a provider that can be asked.
func TestAProviderThatStallsAndDiesIsAskedAndEveryAttemptEndsKnown(t *testing.T) {
	orders, stalled := ordersOfRun(size(60, 500))
	s, provider := newRunSite(t, newSQLite(t), asked, stalled)
	provider.start()
	n := s.newNode()
	n.start()
	l := &load{t: t, nodes: []*node{n}, acked: map[string]string{}}
	began := time.Now()
	for i, order := range orders {
		l.done.Go(func() { l.submitOne(t.Context(), order) })
		pause(t.Context(), 10*time.Millisecond)
		if i == len(orders)/3 || i == 2*len(orders)/3 { // with calls under way
			provider.kill()
			pause(t.Context(), 300*time.Millisecond)
			provider.start()
		}
	}
	l.done.Wait()
	checkSameIDs(t, n, l.acked)
	jobs := allSucceeded(t, n, l.acked)
	provider.executedOnce(t, orders)
	t.Logf("%d jobs, %d stalled, provider killed twice: all succeeded by themselves in %s, with %d attempts",
		len(orders), len(stalled), time.Since(began).Round(time.Second), attemptsOf(jobs))
}

// The other half: nobody can ask, so a person must, about exactly those that stalled.
func TestOfAProviderThatCannotBeAskedExactlyTheStalledWaitForAPerson(t *testing.T) {
	orders, stalled := ordersOfRun(size(60, 500))
	s, provider := newRunSite(t, newSQLite(t), mute, stalled)
	provider.start()
	n := s.newNode()
	n.start()
	acked, waiting := map[string]string{}, map[string]string{}
	for third := range slices.Chunk(orders, (len(orders)+2)/3) {
		l := &load{t: t, nodes: []*node{n}, acked: acked}
		for _, order := range third {
			l.done.Go(func() { l.submitOne(t.Context(), order) })
		}
		l.done.Wait()
		answered := maps.Clone(acked)
		for _, order := range stalled {
			if id, ok := acked[order]; ok {
				waiting[order] = id
				delete(answered, order)
			}
		}
		allSucceeded(t, n, answered)
		provider.kill() // only calls that stall are under way, and are cut
		provider.start()
	}
	jobs := settled(t, n, waiting)
	for order, id := range waiting {
		if j := jobs[id]; j.states() != doubtful.states || j.Blocked.Reason != "attempt_unknown" {
			t.Errorf("%s is %q (%+v); want it blocked by its unknown attempt", order, j.states(), j.Blocked)
		}
	}
	listed := n.listUnknown(t)
	for order, id := range waiting {
		if listed[id] == "" {
			t.Errorf("%s (%s) is not listed with its evidence", order, id)
		}
	}
	if len(listed) != len(stalled) || len(waiting) != len(stalled) {
		t.Errorf("%d attempts are listed as unknown, %d jobs wait; want the %d that stalled", len(listed), len(waiting), len(stalled))
	}
	provider.executedOnce(t, orders)
	t.Logf("%d jobs, provider killed three times: %d wait for a person, each with its evidence, the others succeeded", len(orders), len(listed))
}

// Everything at once: two nodes on one PostgreSQL, one of them killed again and
// again, the database restarted, the provider too.
func TestTwoNodesADatabaseAndAProviderThatDieLeaveOneExecutionPerIntent(t *testing.T) {
	cluster := newCluster(t)
	orders, stalled := ordersOfRun(size(60, 500))
	s, provider := newRunSite(t, cluster.URL(), asked, stalled)
	provider.start()
	nodes := []*node{s.newNode(), s.newNode()}
	for _, n := range nodes {
		n.start()
	}
	l := &load{t: t, nodes: nodes, acked: map[string]string{}}
	rounds := size(3, 20) // of three seconds
	perRound := (len(orders) + rounds - 1) / rounds
	restarts := []int{rounds / 3, 2 * rounds / 3}
	round := 0
	for batch := range slices.Chunk(orders, perRound) {
		for _, order := range batch {
			l.done.Go(func() { l.submitOne(t.Context(), order) })
			pause(t.Context(), 3*time.Second/time.Duration(perRound))
		}
		nodes[1].kill()
		if slices.Contains(restarts, round) {
			if err := cluster.Stop(); err != nil {
				t.Fatal(err)
			}
			provider.kill()
			pause(t.Context(), 500*time.Millisecond)
			provider.start()
			if err := cluster.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		nodes[1].start()
		round++
	}
	l.done.Wait()
	for _, n := range nodes {
		checkSameIDs(t, n, l.acked)
	}
	jobs := allSucceeded(t, nodes[0], l.acked)
	provider.executedOnce(t, orders)
	t.Logf("%d jobs, %d stalled; %d kills of a node, %d restarts of PostgreSQL and of the provider: all acknowledged, every key one id, all succeeded, with %d attempts",
		len(orders), len(stalled), round, len(restarts), attemptsOf(jobs))
}

// allSucceeded waits until every job has succeeded.
func allSucceeded(t *testing.T, n *node, acked map[string]string) map[string]job {
	t.Helper()
	done := make(chan job, len(acked))
	eachOf(acked, func(order, id string) {
		var last reply
		if !eventually(120*time.Second, func() bool {
			r, err := n.get(t.Context(), id)
			last = r
			return err == nil && r.job.State == "succeeded"
		}) {
			t.Errorf("%s (%s) is %q (%+v); want it succeeded", order, id, last.job.states(), last.job.Blocked)
		}
		done <- last.job
	})
	close(done)
	jobs := map[string]job{}
	for j := range done {
		jobs[j.ID] = j
	}
	return jobs
}

func attemptsOf(jobs map[string]job) (n int) {
	for _, j := range jobs {
		n += len(j.Attempts)
	}
	return n
}

// executedOnce holds the provider's ledger to one execution per intent.
func (p *simProcess) executedOnce(t *testing.T, orders []string) {
	t.Helper()
	r, err := p.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range orders {
		if n := r.Intents[order]; n != 1 {
			t.Errorf("%s was executed %d times; want 1", order, n)
		}
	}
	t.Logf("executions per intent %.2f: %d executions of %d intents, in %d requests", float64(r.Executions)/float64(len(orders)), r.Executions, len(r.Intents), r.Requests)
}

// listUnknown is `onejob attempts list --state unknown`, all pages of it: the
// evidence by job.
func (n *node) listUnknown(t *testing.T) map[string]string {
	t.Helper()
	evidence, cursor := map[string]string{}, ""
	for {
		args := []string{"attempts", "list", "--state", "unknown", "-o", "json"}
		if cursor != "" {
			args = append(args, "--cursor", cursor)
		}
		cmd := n.site.command(args...)
		cmd.Env = append(cmd.Env, "ONEJOB_SERVER=http://"+n.addr, "ONEJOB_API_KEY="+n.site.key)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("attempts list: %v\n%s", err, stderr.Bytes())
		}
		var page struct {
			Items []struct {
				JobID    string `json:"job_id"`
				State    string `json:"state"`
				Evidence struct {
					Error string `json:"error"`
				} `json:"evidence"`
			} `json:"items"`
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(out, &page); err != nil {
			t.Fatalf("attempts list: %v\n%s", err, out)
		}
		for _, a := range page.Items {
			if a.State == "unknown" {
				evidence[a.JobID] = a.Evidence.Error
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return evidence
		}
	}
}
