package onejob_test

import (
	"errors"
	"time"

	"github.com/onejob-dev/onejob"
)

// noon is the time that tests of pure rules happen at.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// tester is what a test and a property of package rapid have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wantCode checks an error's code, and that it is an [*onejob.Error] at all.
func wantCode(t tester, err error, code onejob.Code) {
	t.Helper()
	_ = wantError(t, err, code)
}

// wantError is wantCode for those who look at the rest of the error, too.
func wantError(t tester, err error, code onejob.Code) *onejob.Error {
	t.Helper()
	var e *onejob.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got error %v; want code %q", err, code)
	}
	return e
}

// filled returns a policy with its defaults, changed by change.
func filled(t tester, change ...func(*onejob.Policy)) onejob.Policy {
	t.Helper()
	p := onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a", "b", "c"}}
	for _, c := range change {
		c(&p)
	}
	p, err := p.WithDefaults()
	if err != nil {
		t.Fatalf("the policy is invalid: %v", err)
	}
	return p
}

// openJob is a job that was created an hour before noon and is due.
func openJob(t tester, change ...func(*onejob.Policy)) *onejob.Job {
	t.Helper()
	return &onejob.Job{
		ID: "job_1", Owner: "alice", State: onejob.JobQueued, Version: 1,
		Policy: filled(t, change...), CreatedAt: noon.Add(-time.Hour), RunAfter: noon.Add(-time.Hour),
	}
}

func external(p *onejob.Policy) { p.Effect = onejob.EffectExternal }
func declared(p *onejob.Policy) {
	p.Failover, p.FailoverWhy = onejob.FailoverDeclared, "the same model"
}
func never(p *onejob.Policy) { p.Failover = onejob.FailoverNever }
func manual(p *onejob.Policy) {
	p.Contract = &onejob.ContractTerms{Digest: "v1:contract", Manual: true}
}
func twoLanes(p *onejob.Policy) { p.Lanes, p.RaceAfter = 2, time.Second }

func all(changes ...func(*onejob.Policy)) func(*onejob.Policy) {
	return func(p *onejob.Policy) {
		for _, c := range changes {
			c(p)
		}
	}
}

// tries numbers attempts, oldest first, and gives each an id: att_1, att_2, …
func tries(attempts ...onejob.Attempt) []onejob.Attempt {
	for i := range attempts {
		a := &attempts[i]
		a.Number, a.JobID, a.ID = i+1, "job_1", "att_"+string(rune('1'+i))
		a.StartedAt = noon.Add(-30 * time.Minute).Add(time.Duration(i) * time.Minute)
	}
	return attempts
}

// held is an attempt in doubt.
func held(target string, s onejob.AttemptState) onejob.Attempt {
	return onejob.Attempt{Target: target, State: s}
}

// failedOn is an attempt that failed at noon, long enough ago for no backoff to
// be left unless the clock stands at noon.
func failedOn(target string, o onejob.Outcome, n onejob.Next, change ...func(*onejob.Attempt)) onejob.Attempt {
	a := onejob.Attempt{Target: target, State: onejob.AttemptFailed, Outcome: o, Next: n, FinishedAt: noon}
	if o == onejob.OutcomeCancelled {
		a.State = onejob.AttemptCancelled
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func ours(a *onejob.Attempt) { a.OwnFault = true }

// ruledAt says that the attempt's state is a person's word.
func ruledAt(at time.Time, risk bool) func(*onejob.Attempt) {
	return func(a *onejob.Attempt) {
		a.Ruling = &onejob.Ruling{By: "bob", Outcome: a.Outcome, Evidence: "asked them", At: at, RiskAcknowledged: risk}
	}
}
