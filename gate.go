package onejob

import (
	"cmp"
	"slices"
	"time"
)

// GateTerms is what the gate goes by in one process.
type GateTerms struct {
	// Environment that certificates are for. Empty: [DefaultEnvironment].
	Environment string
	// Targets are the digests of the targets there are, by name. One that is missing,
	// or whose digest is empty, has no certificate.
	Targets map[string]string
}

// DefaultEnvironment of certificates.
const DefaultEnvironment = "default"

// EnvironmentOr returns environment, or [DefaultEnvironment] for an empty one.
func EnvironmentOr(environment string) string { return cmp.Or(environment, DefaultEnvironment) }

// ContractTerms is what a job pins of its kind's contract when it is created.
type ContractTerms struct {
	Digest string `json:"digest"`
	// Manual: nothing takes over by itself, certified or not.
	Manual bool `json:"manual,omitempty"`
	// Pair: a fallback must also have been found equivalent to the primary.
	Pair bool `json:"pair,omitempty"`
	// OnUncertified is what becomes of a job that would need a target without a
	// certificate: [UncertifiedHold] (also empty), [UncertifiedFail] or [UncertifiedManual].
	OnUncertified string `json:"on_uncertified,omitempty"`
}

// What becomes of a job that needs a target without a certificate.
const (
	UncertifiedHold   = "hold"   // it is blocked, and goes on by itself once a target is certified
	UncertifiedFail   = "fail"   // it fails
	UncertifiedManual = "manual" // it is blocked until somebody presses the button for a certified target
)

// Why the gate says no. The list is closed.
const (
	GateExpired                 = "expired"
	GateSuspendedDrift          = "suspended_drift"
	GateSuspendedViolations     = "suspended_violations"
	GateRefused                 = "refused_by_verification"
	GateInconclusive            = "inconclusive"
	GatePairNotEquivalent       = "pair_not_equivalent"
	GateContractChanged         = "contract_changed" // there is one for another version of the contract
	GateTargetChanged           = "target_changed"   // there is one for another version of the target
	GateParamUnsupported        = "param_unsupported"
	GateContextTooLarge         = "context_too_large"
	GateSideEffectsUnreconciled = "side_effects_unreconciled"
	GateAutomaticOff            = "automatic_off"
)

// GateAsk is what a decision about a job needs to know of the gate.
type GateAsk struct {
	Policy  *Policy
	Primary string   // the target that stands in for nobody
	Targets []string // that might take over
	Race    bool     // a racing lane, for which nobody's declaration stands in
}

// GateOf says which verdicts [Decide] may look at for a job and an ask. It reports
// false when there are none to read: the job has no contract, or nothing that the
// gate says would change the decision.
func GateOf(job *Job, attempts []Attempt, ask Ask) (GateAsk, bool) {
	p, g := &job.Policy, GateAsk{Policy: &job.Policy, Primary: job.firstTarget(), Race: ask.Lane > 0}
	inDoubt := slices.ContainsFunc(attempts, func(a Attempt) bool { return a.State.InDoubt() })
	switch {
	case p.Contract == nil || p.Failover == FailoverNever || job.State.Terminal():
		return g, false
	case !g.Race && (p.Failover == FailoverDeclared || inDoubt || len(attempts) == 0 && ask.Target == ""):
		return g, false
	}
	for _, t := range p.Targets {
		if (g.Race || t != g.Primary) && (ask.Target == "" || t == ask.Target) {
			g.Targets = append(g.Targets, t)
		}
	}
	return g, len(g.Targets) > 0
}

// GateOfAll asks about every target of policy but primary.
func GateOfAll(policy *Policy, primary string) GateAsk {
	g := GateAsk{Policy: policy, Primary: primary}
	for _, t := range policy.Targets {
		if t != primary {
			g.Targets = append(g.Targets, t)
		}
	}
	return g
}

// GateRows are the rows that a store found for a [GateAsk], in the environment of its
// terms. Rows too many do no harm.
type GateRows struct {
	// Certificates for any version of the contract's kind and of the targets, newest
	// first: those of other versions tell what changed. Superseded ones may be left out.
	Certificates []Certificate
	Pairs        []PairResult // of the contract
	Waivers      []Waiver     // of the contract
}

// Verdicts judges what a store found for ask. The rows are those of the transaction
// that acts on the verdicts, and now its time.
func (t *GateTerms) Verdicts(ask GateAsk, rows GateRows, now time.Time) Verdicts {
	verdicts := make(Verdicts, len(ask.Targets))
	for _, target := range ask.Targets {
		verdicts[target] = JudgeGate(ask.Policy, t.facts(ask, target, rows), ask.Race, now)
	}
	return verdicts
}

// facts picks the rows about one target.
func (t *GateTerms) facts(ask GateAsk, target string, rows GateRows) GateFacts {
	f := GateFacts{TargetDigest: t.Targets[target]}
	if f.TargetDigest == "" || ask.Policy.Contract == nil {
		return f
	}
	contract, primary := ask.Policy.Contract.Digest, t.Targets[ask.Primary]
	for i := range rows.Certificates {
		if c := &rows.Certificates[i]; c.TargetDigest == f.TargetDigest || c.TargetName == target {
			f.Certificates = append(f.Certificates, *c)
		}
	}
	for i := range rows.Pairs {
		if p := &rows.Pairs[i]; p.ContractDigest == contract && p.PrimaryDigest == primary && p.FallbackDigest == f.TargetDigest {
			f.Pair = p
		}
	}
	for i := range rows.Waivers {
		w := &rows.Waivers[i]
		if w.ContractDigest == contract && w.TargetDigest == f.TargetDigest && (f.Waiver == nil || w.ExpiresAt.After(f.Waiver.ExpiresAt)) && w.RevokedAt.IsZero() {
			f.Waiver = w
		}
	}
	return f
}

// GateFacts is what a store found about one target: the rows that the gate judges.
type GateFacts struct {
	// Certificates of the job's contract kind and the target in the environment,
	// newest first: those of other digests too, which tell what changed.
	Certificates []Certificate
	Pair         *PairResult // of primary and target. Nil: there is none
	Waiver       *Waiver     // for exactly contract and target. Nil: there is none
	TargetDigest string      // what the target is now. Empty: nobody knows it
}

// JudgeGate says whether a target may take over a job under policy at now, the
// database's time. It is pure; reading the rows with a lock that a revocation has to
// wait for is the store's part. race asks for a racing lane, for which nobody's
// declaration stands in. A policy without a contract has nothing to be certified for.
func JudgeGate(policy *Policy, facts GateFacts, race bool, now time.Time) Verdict {
	if policy.Failover == FailoverDeclared && !race {
		return Verdict{Allowed: true}
	}
	v := judgeFacts(policy.Contract, facts, now)
	v.TargetDigest = facts.TargetDigest
	return v
}

func judgeFacts(terms *ContractTerms, facts GateFacts, now time.Time) Verdict {
	switch {
	case terms == nil || facts.TargetDigest == "":
		return Verdict{Reason: GateNoCertificate}
	case facts.Waiver != nil && facts.Waiver.Live(now):
		return Verdict{Allowed: true, WaiverID: facts.Waiver.ID}
	}
	v := judgeCertificates(terms.Digest, facts, now)
	if v.Allowed && terms.Pair && !pairHolds(facts.Pair, now) {
		return Verdict{Reason: GatePairNotEquivalent, CertificateID: v.CertificateID}
	}
	return v
}

// Live reports whether the waiver stands in for a certificate at now.
func (w *Waiver) Live(now time.Time) bool { return w.RevokedAt.IsZero() && w.ExpiresAt.After(now) }

// Live reports whether the certificate opens anything at now.
func (c *Certificate) Live(now time.Time) bool {
	return c.Verdict == RunCertified && c.Status == CertificateActive && c.ExpiresAt.After(now)
}

func pairHolds(p *PairResult, now time.Time) bool {
	return p != nil && p.Equivalent && p.ExpiresAt.After(now)
}

// judgeCertificates goes by the verdict that stands on exactly this contract and
// target, and else by the newest. Without one it tells which of the two has changed.
func judgeCertificates(digest string, facts GateFacts, now time.Time) Verdict {
	changed := GateNoCertificate
	var newest *Certificate
	for i := range facts.Certificates {
		c := &facts.Certificates[i]
		switch {
		case c.Status == CertificateSuperseded:
		case c.ContractDigest == digest && c.TargetDigest == facts.TargetDigest:
			if c.Status == CertificateActive { // there is at most one
				return judgeCertificate(c, now)
			}
			newest = cmp.Or(newest, c)
		case c.Verdict != RunCertified || changed != GateNoCertificate:
		case c.TargetDigest == facts.TargetDigest:
			changed = GateContractChanged
		case c.ContractDigest == digest:
			changed = GateTargetChanged
		}
	}
	if newest != nil {
		return judgeCertificate(newest, now)
	}
	return Verdict{Reason: changed}
}

func judgeCertificate(c *Certificate, now time.Time) Verdict {
	v := Verdict{CertificateID: c.ID}
	switch {
	case c.Status == CertificateRevoked:
		v.Reason = GateNoCertificate
	case c.Verdict == RunRefused:
		v.Reason, v.Detail = GateRefused, c.Reason
	case c.Verdict != RunCertified:
		v.Reason, v.Detail = GateInconclusive, c.Reason
	case c.Status == CertificateSuspended && c.Reason == GateSuspendedViolations:
		v.Reason, v.Detail = GateSuspendedViolations, c.Detail
	case c.Status != CertificateActive:
		v.Reason, v.Detail = GateSuspendedDrift, c.Detail
	case !c.ExpiresAt.After(now):
		v.Reason, v.ExpiredAt = GateExpired, c.ExpiresAt.UTC()
	default:
		v.Allowed = true
	}
	return v
}
