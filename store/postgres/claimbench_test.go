package postgres_test

import (
	"crypto/rand"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

// BenchmarkAttemptClaimBacklog claims 64 at a time from backlogs that are spread
// differently over their owners.
func BenchmarkAttemptClaimBacklog(b *testing.B) {
	for _, bb := range []struct {
		name         string
		owners, each int
	}{{"1x100000", 1, 100_000}, {"1000x100", 1000, 100}, {"10000x10", 10_000, 10}} {
		b.Run(bb.name, func(b *testing.B) {
			s := backlog(b, bb.owners, bb.each)
			after := ""
			for b.Loop() {
				r, err := s.AttemptClaim(b.Context(), onejob.AttemptClaimParams{StartParams: starter, Max: 64, AfterOwner: after})
				if err != nil || len(r.Claimed) != 64 {
					b.Fatalf("claimed %d, %v; want 64", len(r.Claimed), err)
				}
				after = r.LastOwner
			}
		})
	}
}

// backlog is a store where every one of owners has each jobs that are due.
func backlog(b *testing.B, owners, each int) *postgres.Store {
	b.Helper()
	url := schema(b)
	s := open(b, url)
	first := intent(b, rand.Text())
	if _, err := s.JobCreate(b.Context(), []onejob.JobCreateParams{first}); err != nil {
		b.Fatal(err)
	}
	if err := execute(b, url, sqlBacklog, first.ID, owners, each); err != nil {
		b.Fatal(err)
	}
	if err := execute(b, url, "VACUUM ANALYZE jobs, job_states"); err != nil {
		b.Fatal(err)
	}
	return s
}

const sqlBacklog = `
WITH made AS (
    INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
                      kind, input, target, effect, lanes, policy, priority, supersedes, trace, created_at)
    SELECT part, 'job_' || o || '_' || n, 'owner-' || o, int4send(n), 'k', fingerprint, 1, 't',
           kind, input, target, effect, lanes, policy, 0, '', '', created_at
      FROM jobs, generate_series(1, $2::integer) o, generate_series(1, $3::integer) n WHERE id = $1
    RETURNING part, id, owner
)
INSERT INTO job_states (part, job_id, owner, due, state, priority, run_after, next_target)
SELECT part, id, owner, true, 'queued', 0, now(), 'a' FROM made`
