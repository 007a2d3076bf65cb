package sqlite_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// BenchmarkLife is a job created with its first attempt marked, and finished: two
// commits for each batch.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "onejob.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			key := 0
			for b.Loop() {
				params := make([]onejob.JobCreateParams, size)
				for i := range params {
					key++
					params[i] = startedIntent(b, fmt.Sprint(key))
				}
				created, err := s.JobCreate(b.Context(), params)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.AttemptFinish(b.Context(), finishes(created)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func startedIntent(tb testing.TB, key string) onejob.JobCreateParams {
	tb.Helper()
	p := intent(tb, "alice", key)
	p.Start = &onejob.StartParams{
		Worker: "w", Lease: time.Minute,
		Targets: map[string]onejob.TargetPins{"a": {Digest: "d", MaxExecution: time.Minute}},
	}
	return p
}

func intent(tb testing.TB, owner, key string) onejob.JobCreateParams {
	tb.Helper()
	policy, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	part, hash := onejob.PartOf(owner, key), sha256.Sum256([]byte(key))
	return onejob.JobCreateParams{
		ID: onejob.NewJobID(part, time.Now()), Owner: owner, Part: part,
		KeyHash: hash[:], KeyPrefix: key[:min(8, len(key))], Fingerprint: hash[:], FingerprintVersion: 1,
		Token: onejob.NewToken(), Kind: "charge", Input: make([]byte, 1024), Policy: policy,
	}
}

func finishes(created []onejob.JobCreateResult) []onejob.AttemptFinishParams {
	params := make([]onejob.AttemptFinishParams, len(created))
	for i, r := range created {
		a := r.Started.Attempt
		params[i] = onejob.AttemptFinishParams{
			Ref:        onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID},
			ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeSucceeded, Phase: onejob.PhaseAnswered,
			Evidence: onejob.Evidence{Status: 200, BytesWritten: 1024, BytesRead: 256},
			Result:   &onejob.Result{Body: make([]byte, 256), ContentType: "application/json"},
		}
	}
	return params
}
