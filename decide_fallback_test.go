package onejob_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestAnotherTargetTakesOver(t *testing.T) {
	t.Parallel()
	done := func(target string, o onejob.Outcome) onejob.Attempt { return failedOn(target, o, onejob.NextElsewhere) }
	refused := done("a", onejob.OutcomeRefused)
	ok := onejob.Verdict{Allowed: true, CertificateID: "cert_b"}
	waived := onejob.Verdict{Allowed: true, WaiverID: "waiver_c"}
	checkRules(t, []rule{
		{name: "WhenDeclared", job: openJob(t, declared), attempts: tries(refused), want: start("b")},
		{
			name: "WhenCertified", job: openJob(t), attempts: tries(refused), verdicts: onejob.Verdicts{"b": ok},
			want: onejob.Decision{Verb: onejob.Start, Target: "b", Verdict: ok},
		},
		{
			name: "WhenWaived", job: openJob(t), attempts: tries(refused),
			verdicts: onejob.Verdicts{"b": {Reason: "expired"}, "c": waived},
			want:     onejob.Decision{Verb: onejob.Start, Target: "c", Verdict: waived},
		},
		{
			name: "NeverWithoutACertificate", job: openJob(t), attempts: tries(refused),
			want: block(onejob.BlockFailoverNotCertified, "",
				onejob.Candidate{Target: "b", Reason: onejob.GateNoCertificate},
				onejob.Candidate{Target: "c", Reason: onejob.GateNoCertificate}),
		},
		{
			name: "NeverAgainstTheGate", job: openJob(t), attempts: tries(refused),
			verdicts: onejob.Verdicts{"b": {Reason: "expired"}, "c": {Reason: "inconclusive"}},
			want: block(onejob.BlockFailoverNotCertified, "",
				onejob.Candidate{Target: "b", Reason: "expired"}, onejob.Candidate{Target: "c", Reason: "inconclusive"}),
		},
		{
			name: "NeverAgainstTheGateThoughDeclared", job: openJob(t, declared), attempts: tries(refused),
			verdicts: onejob.Verdicts{"b": {Reason: "param_unsupported"}}, want: start("c"),
		},
		{
			name: "NeverWhenThePolicySaysSo", job: openJob(t, never), attempts: tries(refused), verdicts: onejob.Verdicts{"b": ok},
			want: failure(onejob.FailureAttemptsExhausted),
		},
		{
			name: "InTheOrderOfTheKind", job: openJob(t, declared),
			attempts: tries(refused, done("b", onejob.OutcomeRefused)), want: start("c"),
		},
		{
			name: "AlsoBeforeTheOneAskedForAtCreation", job: with(openJob(t, declared), func(j *onejob.Job) { j.Target = "b" }),
			attempts: tries(done("b", onejob.OutcomeRefused)), want: start("a"),
		},
		{
			name: "AtOnceThoughTheLastOneAskedUsToWait", job: openJob(t, declared), at: noon,
			attempts: tries(failedOn("a", onejob.OutcomeRefused, onejob.NextElsewhere, func(a *onejob.Attempt) { a.RetryAt = noon.Add(time.Hour) })),
			want:     start("b"),
		},
		{
			name: "AfterAnExecutedFailureThatCostsMoneyOnly", job: openJob(t, declared),
			attempts: tries(done("a", onejob.OutcomeExecutedFailed)), want: start("b"),
		},
		{
			name: "AfterABrokenContractThatCostsMoneyOnly", job: openJob(t, declared),
			attempts: tries(done("a", onejob.OutcomeContractViolation)), want: start("b"),
		},
		{name: "OfAnEffectAfterProof", job: openJob(t, declared, external), attempts: tries(done("a", onejob.OutcomeNotExecuted)), want: start("b")},
	})
}

// Only non-execution that is proven lets an effect go elsewhere, whatever the gate
// says. Gateways take a timeout straight to the fallback (mnfst/llm-gateway#2573,
// Portkey-AI/gateway#186).
func TestAnEffectNeverGoesElsewhereWithoutProof(t *testing.T) {
	t.Parallel()
	ok := onejob.Verdicts{"b": {Allowed: true}, "c": {Allowed: true}}
	var rules []rule
	for _, effect := range []onejob.Effect{onejob.EffectIdempotent, onejob.EffectExternal} {
		for _, o := range onejob.Outcomes() {
			if o.Proven() {
				continue
			}
			job := openJob(t, declared, func(p *onejob.Policy) { p.Effect = effect })
			for _, ask := range []onejob.Ask{{}, {Now: true, Target: "c"}} {
				rules = append(rules, rule{
					name: "After/" + string(o) + "/" + string(effect), job: job, ask: ask, verdicts: ok,
					attempts: tries(failedOn("a", o, onejob.NextElsewhere)),
					want:     block(onejob.BlockFailoverUnproven, "att_1"),
				})
			}
		}
	}
	checkRules(t, rules)
}

// Two targets must not fall back to each other for ever (BerriAI/litellm#7091).
func TestATargetIsFallenBackToOnce(t *testing.T) {
	t.Parallel()
	done := func(target string) onejob.Attempt {
		return failedOn(target, onejob.OutcomeRefused, onejob.NextElsewhere)
	}
	generous := func(p *onejob.Policy) { p.MaxAttempts, p.PerTarget = 100, 100 }
	checkRules(t, []rule{
		{
			name: "AfterTheLastTargetComesTheEnd", job: openJob(t, declared, generous),
			attempts: tries(done("a"), done("b"), done("c")), want: failure(onejob.FailureAttemptsExhausted),
		},
		{
			name: "NotEvenTheFirstIsGoneBackTo", job: with(openJob(t, declared, generous), func(j *onejob.Job) { j.Target = "c" }),
			attempts: tries(done("c"), done("a")), want: start("b"),
		},
	})
}
