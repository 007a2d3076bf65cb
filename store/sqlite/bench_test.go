package sqlite_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

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
