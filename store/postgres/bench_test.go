package postgres_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

// BenchmarkLife is jobs created, started, marked and finished, in batches.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint("batch", size), func(b *testing.B) {
			s := open(b, schema(b))
			for b.Loop() {
				life(b, s, size)
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func life(b *testing.B, s *postgres.Store, size int) {
	params := make([]onejob.JobCreateParams, size)
	for i := range params {
		params[i] = intent(b, rand.Text())
		params[i].Input = make([]byte, 1024)
		params[i].Start = &starter
	}
	created, err := s.JobCreate(b.Context(), params)
	if err != nil {
		b.Fatal(err)
	}
	finishes := make([]onejob.AttemptFinishParams, size)
	for i, r := range created {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		a := r.Started.Attempt
		finishes[i] = onejob.AttemptFinishParams{
			Ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ClaimToken: a.ClaimToken,
			Outcome: onejob.OutcomeSucceeded, Phase: onejob.PhaseAnswered, Result: &onejob.Result{Body: make([]byte, 512)},
		}
	}
	finished, err := s.AttemptFinish(b.Context(), finishes)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range finished {
		if r.State != onejob.AttemptSucceeded {
			b.Fatalf("an attempt ended %s: %v", r.State, r.Err)
		}
	}
}

// BenchmarkAttemptClaimPastAMillionScheduled claims where nothing is due.
func BenchmarkAttemptClaimPastAMillionScheduled(b *testing.B) {
	url := schema(b)
	s := open(b, url)
	if err := execute(b, url, sqlScheduled); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := s.AttemptClaim(b.Context(), onejob.AttemptClaimParams{StartParams: starter, Max: 10}); err != nil || len(r.Claimed) != 0 {
			b.Fatalf("claimed %d, %v; want none", len(r.Claimed), err)
		}
	}
}

const sqlScheduled = `
INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
                  kind, input, target, effect, lanes, policy, priority, supersedes, trace, created_at)
SELECT 1, 'job_' || n, 'alice', int4send(n), 'k', '\x01', 1, 't', 'k', 'in', '', 'none', 1, '{}', 0, '', '', now() FROM generate_series(1, 1000000) n;
INSERT INTO job_states (part, job_id, owner, due, state, priority, run_after, next_target)
SELECT 1, 'job_' || n, 'alice', false, 'queued', n % 3, now() + n * interval '1 minute' + interval '1 day', 'a' FROM generate_series(1, 1000000) n;
ANALYZE jobs, job_states`
