package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
)

func poison(t *testing.T, url, jobID string) {
	t.Helper()
	if err := execute(t, url, "ALTER TABLE jobs DISABLE TRIGGER jobs_immutable"); err != nil {
		t.Fatal(err)
	}
	if err := execute(t, url, "UPDATE jobs SET policy = 'not JSON' WHERE id = $1", jobID); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s *postgres.Store, most int) onejob.AttemptClaimResult {
	t.Helper()
	r, err := s.AttemptClaim(t.Context(), onejob.AttemptClaimParams{StartParams: starter, Max: most})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAttemptClaimSetsAnUnreadableJobAside(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	bad := create(t, s, intent(t, "bad"))[0].Job
	poison(t, url, bad.ID)
	good := create(t, s, intent(t, "good"))[0].Job

	first := claim(t, s, 1)
	if len(first.Claimed) != 0 || first.NextDue.Before(time.Now().Add(time.Second)) {
		t.Errorf("the first claim answered %+v; want nothing, and the bad job due in a while", first)
	}
	if r := claim(t, s, 1); len(r.Claimed) != 1 || r.Claimed[0].Job.ID != good.ID {
		t.Errorf("the second claim answered %+v; want the good job", r)
	}
}

func TestAttemptClaimSetsAJobAsideWhoseAttemptTheDatabaseRefuses(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	bad := create(t, s, intent(t, "bad"))[0].Job
	if err := execute(t, url, "ALTER TABLE attempts ADD CHECK (job_id <> '"+bad.ID+"')"); err != nil {
		t.Fatal(err)
	}
	good := create(t, s, intent(t, "good"))[0].Job
	if r := claim(t, s, 2); len(r.Claimed) != 1 || r.Claimed[0].Job.ID != good.ID {
		t.Errorf("the claim answered %+v; want the good job", r)
	}
	create(t, s, intent(t, "another"))
	if r := claim(t, s, 1); len(r.Claimed) != 1 {
		t.Errorf("the next claim answered %+v; want another job, and the bad one aside", r)
	}
}

func TestNextDueIsNeverPast(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	held := create(t, s, intent(t, "held"))[0].Job
	if _, err := tx.Exec(t.Context(), "SELECT FROM job_states WHERE job_id = $1 FOR UPDATE", held.ID); err != nil {
		t.Fatal(err)
	}
	if r := claim(t, s, 1); len(r.Claimed) != 0 || !r.NextDue.IsZero() {
		t.Errorf("while another claimer holds the only job: %+v; want nothing, and nothing to become due", r)
	}
}

func TestJobListLeavesUnreadableJobsOut(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	oldest := create(t, s, intent(t, "oldest"))[0].Job
	for i := range 3 {
		poison(t, url, create(t, s, intent(t, fmt.Sprint("bad", i)))[0].Job.ID)
	}
	newest := create(t, s, intent(t, "newest"))[0].Job

	for _, limit := range []int{1, 2, 200} {
		var listed []string
		p := onejob.JobListParams{Owner: "alice", Limit: limit}
		for more := true; more; {
			page, err := s.JobList(t.Context(), p)
			if err != nil || (page.More && len(page.Jobs) == 0) {
				t.Fatalf("a page of %d answered %+v, %v; want jobs", limit, page, err)
			}
			for _, j := range page.Jobs {
				listed = append(listed, j.ID)
				p.Before = &onejob.JobCursor{CreatedAt: j.CreatedAt, ID: j.ID}
			}
			more = page.More
		}
		if fmt.Sprint(listed) != fmt.Sprint([]string{newest.ID, oldest.ID}) {
			t.Errorf("pages of %d listed %v; want the two that can be read, newest first", limit, listed)
		}
	}
}

func TestJobPurgeEmptiesUnreadableJobsToo(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	clock := pgtest.Clock(t, url)
	for _, key := range []string{"bad", "good"} {
		p := intent(t, key)
		p.Start = &starter
		a := create(t, s, p)[0].Started.Attempt
		if _, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{finish(a, onejob.OutcomeSucceeded)}); err != nil {
			t.Fatal(err)
		}
		if key == "bad" {
			poison(t, url, p.ID)
			if err := execute(t, url, "UPDATE attempts SET evidence = 'not JSON' WHERE id = $1", a.ID); err != nil {
				t.Fatal(err)
			}
			if err := execute(t, url, "ALTER TABLE jobs ENABLE TRIGGER jobs_immutable"); err != nil {
				t.Fatal(err)
			}
		}
	}
	clock.Advance(2 * time.Hour)
	n, err := s.JobPurge(t.Context(), onejob.JobPurgeParams{PayloadAge: time.Hour, Limit: 10})
	if n != 2 || err != nil {
		t.Errorf("purged %d, %v; want 2", n, err)
	}
	if left := lines(t, url, "SELECT id FROM jobs WHERE input IS NOT NULL"); len(left) != 0 {
		t.Errorf("payloads of %v are left", left)
	}
}

// A block for an unknown attempt waits for news of it, not for the sweep: what the
// sweep does not read cannot slow it.
func TestJobDecideLeavesJobsThatWaitForNews(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	p := intent(t, "k")
	p.Start = &starter
	a := create(t, s, p)[0].Started.Attempt
	if _, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{finish(a, onejob.OutcomeUnknown)}); err != nil {
		t.Fatal(err)
	}
	if err := execute(t, url, "UPDATE attempts SET state = 'failed', outcome = 'not_executed', finished_at = now() WHERE id = $1", a.ID); err != nil {
		t.Fatal(err) // around the store, so that the job would move if it were looked at
	}
	changed, err := s.JobDecide(t.Context(), 10)
	if len(changed) != 0 || err != nil {
		t.Errorf("the sweep changed %v, %v; want nothing", changed, err)
	}
}

func TestJobDecideGoesOnPastAnUnreadableJob(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	clock := pgtest.Clock(t, url)
	soon := func(key string) onejob.JobCreateParams {
		p := intent(t, key)
		p.Policy.Deadline = time.Minute
		return p
	}
	poison(t, url, create(t, s, soon("bad"))[0].Job.ID)
	good := create(t, s, soon("good"))[0].Job
	clock.Advance(time.Hour)
	changed, err := s.JobDecide(t.Context(), 10)
	if err != nil || len(changed) != 1 || changed[0].ID != good.ID {
		t.Errorf("the sweep changed %v, %v; want the good job", changed, err)
	}
	if r := get(t, s, good.ID); r.Err != nil || r.Job.State != onejob.JobFailed {
		t.Errorf("the late job is %+v; want failed", r)
	}
}

func TestJobGetReadsNothingOfAnothersJob(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	id := create(t, s, intent(t, "k"))[0].Job.ID
	poison(t, url, id) // who reads it meets that
	results, err := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: id, Owner: "mallory", WithInput: true}, {ID: id, Owner: "alice"}, {ID: id, Owner: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []onejob.Code{onejob.CodeNotFound, onejob.CodeInternal, onejob.CodeNotFound}
	for i, r := range results {
		if onejob.CodeOf(r.Err) != want[i] {
			t.Errorf("asker %d was answered %v; want %s", i, r.Err, want[i])
		}
	}
}
