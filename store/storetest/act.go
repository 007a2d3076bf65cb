package storetest

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// This file is what workers and people do to a job, as one line each.

// pins are those of targets that say how long they can work.
var pins = onejob.TargetPins{Digest: "sha256:target", MaxExecution: maxExecution}

// claimer can call the targets named, and by default a, b and c.
func claimer(targets ...string) onejob.StartParams {
	if len(targets) == 0 {
		targets = []string{"a", "b", "c"}
	}
	p := onejob.StartParams{Worker: worker, Lease: lease, Targets: map[string]onejob.TargetPins{}}
	for _, t := range targets {
		p.Targets[t] = pins
	}
	return p
}

func (f *fixture) claimWith(p onejob.AttemptClaimParams) onejob.AttemptClaimResult {
	f.Helper()
	result, err := f.s.AttemptClaim(f.Context(), p)
	f.noError(err)
	return result
}

// claim takes up to ten due jobs.
func (f *fixture) claim() onejob.AttemptClaimResult {
	f.Helper()
	return f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 10})
}

// claimOne takes the one job that is due.
func (f *fixture) claimOne() onejob.Claimed {
	f.Helper()
	result := f.claim()
	if len(result.Claimed) != 1 {
		f.Fatalf("%d attempts were claimed; want 1", len(result.Claimed))
	}
	return result.Claimed[0]
}

// claimNothing checks that no job is due.
func (f *fixture) claimNothing() {
	f.Helper()
	if n := len(f.claim().Claimed); n != 0 {
		f.Fatalf("%d attempts were claimed; want none", n)
	}
}

func refOf(a onejob.Attempt) onejob.AttemptRef {
	return onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
}

func markOf(a onejob.Attempt) onejob.AttemptMarkParams {
	return onejob.AttemptMarkParams{
		Ref: refOf(a), ClaimToken: a.ClaimToken, Lease: lease, SendWithin: sendWithin, Pins: pins,
	}
}

func (f *fixture) tryMark(p onejob.AttemptMarkParams) (onejob.Attempt, error) {
	f.Helper()
	results, err := f.s.AttemptMark(f.Context(), []onejob.AttemptMarkParams{p})
	f.noError(err)
	return results[0].Attempt, results[0].Err
}

func (f *fixture) mark(a onejob.Attempt) onejob.Attempt {
	f.Helper()
	marked, err := f.tryMark(markOf(a))
	f.noError(err)
	return marked
}

func (f *fixture) tryRenew(a onejob.Attempt) onejob.AttemptRenewResult {
	f.Helper()
	results, err := f.s.AttemptRenew(f.Context(), []onejob.AttemptRenewParams{
		{Ref: refOf(a), ClaimToken: a.ClaimToken, Lease: lease},
	})
	f.noError(err)
	return results[0]
}

// starting records an intent and claims its first attempt.
func (f *fixture) starting(key string, change ...func(*onejob.JobCreateParams)) onejob.Attempt {
	f.Helper()
	f.create(key, change...)
	return f.claimOne().Attempt
}

// running records an intent, claims its first attempt and marks it.
func (f *fixture) running(key string, change ...func(*onejob.JobCreateParams)) onejob.Attempt {
	f.Helper()
	return f.mark(f.starting(key, change...))
}

// unknown records an intent whose first attempt fell silent.
func (f *fixture) unknown(key string, change ...func(*onejob.JobCreateParams)) onejob.Attempt {
	f.Helper()
	a := f.running(key, change...)
	f.finish(a, onejob.OutcomeUnknown)
	return a
}

// finishOf is what the holder of a says came of it.
func finishOf(a onejob.Attempt, outcome onejob.Outcome, change ...func(*onejob.AttemptFinishParams)) onejob.AttemptFinishParams {
	p := onejob.AttemptFinishParams{Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: outcome, Phase: onejob.PhaseAnswered}
	switch outcome {
	case onejob.OutcomeSucceeded:
		p.Result = &onejob.Result{Body: []byte("result of " + a.ID), ContentType: "text/plain"}
	case onejob.OutcomeUnknown, onejob.OutcomeResultLost:
		p.Phase, p.Evidence = onejob.PhaseSent, onejob.Evidence{Error: "no answer", BytesWritten: 7}
	case onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeExecutedFailed, onejob.OutcomeContractViolation:
		p.Failure, p.Next = &onejob.Failure{Code: "declined", Message: "the provider declined"}, onejob.NextElsewhere
	case onejob.OutcomeAccepted, onejob.OutcomeCancelled:
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func withNext(n onejob.Next) func(*onejob.AttemptFinishParams) {
	return func(p *onejob.AttemptFinishParams) { p.Next = n }
}

func withRetryAfter(d time.Duration) func(*onejob.AttemptFinishParams) {
	return func(p *onejob.AttemptFinishParams) { p.RetryAfter = d }
}

func withCost(micros int64) func(*onejob.AttemptFinishParams) {
	return func(p *onejob.AttemptFinishParams) {
		p.CostMicros, p.Currency, p.Usage = micros, "EUR", []byte(`{"tokens":3}`)
	}
}

func (f *fixture) tryFinish(p onejob.AttemptFinishParams) onejob.AttemptFinishResult {
	f.Helper()
	results, err := f.s.AttemptFinish(f.Context(), []onejob.AttemptFinishParams{p})
	f.noError(err)
	return results[0]
}

func (f *fixture) finish(a onejob.Attempt, outcome onejob.Outcome, change ...func(*onejob.AttemptFinishParams)) onejob.AttemptFinishResult {
	f.Helper()
	result := f.tryFinish(finishOf(a, outcome, change...))
	f.noError(result.Err)
	return result
}

// lose is a finish that must be answered with a lost claim.
func (f *fixture) lose(p onejob.AttemptFinishParams, state onejob.AttemptState) {
	f.Helper()
	result := f.tryFinish(p)
	f.wantCode(result.Err, onejob.CodeClaimLost)
	if result.State != state {
		f.Errorf("the lost claim says that the attempt is %q; want %q", result.State, state)
	}
}

func rulingOf(a onejob.Attempt, outcome onejob.Outcome, change ...func(*onejob.AttemptResolveParams)) onejob.AttemptResolveParams {
	p := onejob.AttemptResolveParams{ID: a.ID, Actor: "olga", Outcome: outcome, Evidence: "the provider's books"}
	if outcome == onejob.OutcomeSucceeded {
		p.Result = &onejob.Result{Body: []byte(`{"by":"hand"}`), ContentType: "application/json"}
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func acknowledgeRisk(p *onejob.AttemptResolveParams) { p.AcknowledgeRisk = true }

func (f *fixture) tryResolve(p onejob.AttemptResolveParams) onejob.AttemptResolveResult {
	f.Helper()
	results, err := f.s.AttemptResolve(f.Context(), []onejob.AttemptResolveParams{p})
	f.noError(err)
	return results[0]
}

func (f *fixture) resolve(a onejob.Attempt, outcome onejob.Outcome, change ...func(*onejob.AttemptResolveParams)) onejob.AttemptResolveResult {
	f.Helper()
	result := f.tryResolve(rulingOf(a, outcome, change...))
	f.noError(result.Err)
	return result
}

// ruledOut records an intent whose first attempt fell silent and was then ruled
// not to have happened, after its quarantine.
func (f *fixture) ruledOut(key string, change ...func(*onejob.JobCreateParams)) onejob.Attempt {
	f.Helper()
	a := f.unknown(key, change...)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	return a
}

// claimAgain waits out a backoff and takes the one job that is then due, marked.
func (f *fixture) claimAgain() onejob.Attempt {
	f.Helper()
	f.advance(onejob.DefaultBackoffMax + time.Second)
	return f.mark(f.claimOne().Attempt)
}

// buttonOf is a click on the fallback button, under a key of its own.
func buttonOf(jobID, key, target string) onejob.AttemptStartParams {
	hash := sha256.Sum256([]byte(key))
	return onejob.AttemptStartParams{
		JobID: jobID, Actor: "olga", Target: target, StartParams: claimer(),
		RequestKeyHash: hash[:], RequestFingerprint: []byte("attempt at " + target),
	}
}

// laneOf asks for a racing attempt.
func laneOf(jobID string, lane int, target string) onejob.AttemptStartParams {
	return onejob.AttemptStartParams{JobID: jobID, Lane: lane, Target: target, StartParams: claimer()}
}

func (f *fixture) tryStart(p onejob.AttemptStartParams) onejob.AttemptStartResult {
	f.Helper()
	results, err := f.s.AttemptStart(f.Context(), []onejob.AttemptStartParams{p})
	f.noError(err)
	return results[0]
}

func (f *fixture) start(p onejob.AttemptStartParams) onejob.Attempt {
	f.Helper()
	result := f.tryStart(p)
	f.noError(result.Err)
	return result.Claimed.Attempt
}

func (f *fixture) tryCancel(p onejob.JobCancelParams) (*onejob.Job, error) {
	f.Helper()
	results, err := f.s.JobCancel(f.Context(), []onejob.JobCancelParams{p})
	f.noError(err)
	return results[0].Job, results[0].Err
}

func (f *fixture) cancel(id string) *onejob.Job {
	f.Helper()
	job, err := f.tryCancel(onejob.JobCancelParams{ID: id, Actor: "olga"})
	f.noError(err)
	return job
}

func (f *fixture) tryUnblock(p onejob.JobUnblockParams) (*onejob.Job, error) {
	f.Helper()
	results, err := f.s.JobUnblock(f.Context(), []onejob.JobUnblockParams{p})
	f.noError(err)
	return results[0].Job, results[0].Err
}

func (f *fixture) expired() []onejob.AttemptRef {
	f.Helper()
	refs, err := f.s.AttemptExpired(f.Context(), 100)
	f.noError(err)
	return refs
}

func (f *fixture) expire(refs []onejob.AttemptRef) []onejob.AttemptRef {
	f.Helper()
	changed, err := f.s.AttemptExpire(f.Context(), refs)
	f.noError(err)
	return changed
}

// sweep waits until every lease is over and ends the attempts that nobody holds.
func (f *fixture) sweep() []onejob.AttemptRef {
	f.Helper()
	f.advance(lease + time.Second)
	return f.expire(f.expired())
}

func (f *fixture) purge(p onejob.JobPurgeParams) int {
	f.Helper()
	if p.Limit == 0 {
		p.Limit = 100
	}
	n, err := f.s.JobPurge(f.Context(), p)
	f.noError(err)
	return n
}

// Ages of the suite's retention.
const (
	payloadAge = 30 * 24 * time.Hour
	keyAge     = 400 * 24 * time.Hour
)

// purgeAll empties every finished job, and shrinkAll what is left of them.
func (f *fixture) purgeAll() {
	f.Helper()
	f.advance(payloadAge + time.Second)
	f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge})
}

func (f *fixture) shrinkAll() {
	f.Helper()
	f.purgeAll()
	f.advance(keyAge)
	f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge})
}

// targets lets a job go from one to the next on the operator's word.
func targets(names ...string) func(*onejob.JobCreateParams) {
	return withPolicy(func(p *onejob.Policy) {
		p.Targets, p.Failover, p.FailoverWhy = names, onejob.FailoverDeclared, "same account"
	})
}

// racing lets n attempts of a job without effect be in doubt at once.
func racing(n int, names ...string) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) {
		targets(names...)(p)
		p.Policy.Effect, p.Policy.Lanes = onejob.EffectNone, n
		p.Policy.Contract = &onejob.ContractTerms{Digest: raceContract}
		p.Policy.MaxAttempts = max(p.Policy.MaxAttempts, n)
	}
}

func refsEqual(a, b []onejob.AttemptRef) bool { return slices.Equal(a, b) }
