package onejob

import "time"

// GateTerms is what the gate goes by in one process.
type GateTerms struct {
	// Environment that certificates are for. Empty: default.
	Environment string
	// Targets are the digests of the targets there are, by name.
	Targets map[string]string
}

// DefaultEnvironment of certificates.
const DefaultEnvironment = "default"

// ContractTerms is what a job pins of its kind's contract when it is created.
type ContractTerms struct {
	Digest string `json:"digest"`
	// Manual: nothing takes over by itself, certified or not.
	Manual bool `json:"manual,omitempty"`
	// Pair: a fallback must also have been found equivalent to the primary.
	Pair bool `json:"pair,omitempty"`
	// OnUncertified is what becomes of a job that would need a target without a
	// certificate: hold (empty), fail or manual.
	OnUncertified string `json:"on_uncertified,omitempty"`
}

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

// GateFacts is what a store found about one target: the rows that the gate judges.
type GateFacts struct {
	// Certificates of the job's contract kind and the target's name in the
	// environment, newest first: those of other digests too, which tell what changed.
	Certificates []Certificate
	Pair         *PairResult // of primary and target. Nil: there is none
	Waiver       *Waiver     // live, for exactly contract and target. Nil: there is none
	TargetDigest string      // what the target is now
}

// JudgeGate says whether a target may take over a job under policy at now, the
// database's time. It is pure; reading the rows with a lock that a revocation has to
// wait for is the store's part. race asks for a racing lane, for which nobody's
// declaration stands in. A policy without a contract has nothing to be certified for.
func JudgeGate(policy *Policy, facts GateFacts, race bool, now time.Time) Verdict {
	if policy.Failover == FailoverDeclared && !race {
		return Verdict{Allowed: true}
	}
	terms := policy.Contract
	switch {
	case terms == nil:
		return Verdict{Reason: GateNoCertificate}
	case facts.Waiver != nil && facts.Waiver.RevokedAt.IsZero() && facts.Waiver.ExpiresAt.After(now):
		return Verdict{Allowed: true, WaiverID: facts.Waiver.ID}
	}
	v := judgeCertificates(terms.Digest, facts, now)
	if v.Allowed && terms.Pair && !pairHolds(facts.Pair, now) {
		return Verdict{Reason: GatePairNotEquivalent, CertificateID: v.CertificateID}
	}
	return v
}

func pairHolds(p *PairResult, now time.Time) bool {
	return p != nil && p.Equivalent && p.ExpiresAt.After(now)
}

// judgeCertificates goes by the newest verdict on exactly this contract and target.
// Without one it tells which of the two has changed.
func judgeCertificates(digest string, facts GateFacts, now time.Time) Verdict {
	changed := GateNoCertificate
	for i := range facts.Certificates {
		c := &facts.Certificates[i]
		switch {
		case c.Status == CertificateSuperseded:
			continue
		case c.ContractDigest == digest && c.TargetDigest == facts.TargetDigest:
			return judgeCertificate(c, now)
		case c.Verdict != RunCertified || changed != GateNoCertificate:
		case c.TargetDigest == facts.TargetDigest:
			changed = GateContractChanged
		case c.ContractDigest == digest:
			changed = GateTargetChanged
		}
	}
	return Verdict{Reason: changed}
}

func judgeCertificate(c *Certificate, now time.Time) Verdict {
	v := Verdict{CertificateID: c.ID}
	switch {
	case c.Verdict == RunRefused:
		v.Reason = GateRefused
	case c.Verdict != RunCertified:
		v.Reason = GateInconclusive
	case c.Status == CertificateRevoked:
		v.Reason = GateNoCertificate
	case c.Status == CertificateSuspended && c.Reason == GateSuspendedViolations:
		v.Reason = GateSuspendedViolations
	case c.Status != CertificateActive:
		v.Reason = GateSuspendedDrift
	case !c.ExpiresAt.After(now):
		v.Reason = GateExpired
	default:
		v.Allowed = true
	}
	return v
}
