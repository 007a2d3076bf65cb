package onejob

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// This file is what a store asks before it writes records of certificates. Like
// judge.go it is pure and replaces no constraint.

// Prefixes of ids that belong to no job, and so to no part.
const (
	runPrefix         = "run_"
	certificatePrefix = "cert_"
	waiverPrefix      = "waiv_"
)

// NewRunID returns an id for a verification that begins at about now.
func NewRunID(now time.Time) string { return newID(runPrefix, 0, now) }

// NewCertificateID returns an id for a certificate issued at about now.
func NewCertificateID(now time.Time) string { return newID(certificatePrefix, 0, now) }

// NewWaiverID returns an id for a waiver granted at about now.
func NewWaiverID(now time.Time) string { return newID(waiverPrefix, 0, now) }

// MostCertificates is the most rows that a list of certificates, runs, contracts or
// waivers returns.
const MostCertificates = 1000

// AtMostCertificates bounds the limit of a list: 1 to [MostCertificates]. Anything
// else means all that one list returns.
func AtMostCertificates(limit int) int {
	if limit < 1 || limit > MostCertificates {
		return MostCertificates
	}
	return limit
}

// ErrorOfNoRecord is the answer for a contract, target, run, certificate or waiver
// that does not exist. what is such a word.
func ErrorOfNoRecord(what, id string) error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no %s %q", what, id)}
}

func errorOfRecord(format string, args ...any) error {
	return &Error{Code: CodeInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// CheckVersion says whether a version of a contract or target may be kept.
func CheckVersion(digest, name string, body []byte) error {
	switch {
	case digest == "":
		return errorOfRecord("a version needs its digest")
	case name == "":
		return errorOfRecord("a version needs the kind or the name that it is of")
	case len(body) == 0:
		return errorOfRecord("a version needs its body")
	}
	return nil
}

// Begin returns the run as it is recorded when it begins.
func (r VerificationRun) Begin(now time.Time) (VerificationRun, error) {
	if r.ContractDigest == "" || r.TargetDigest == "" {
		return r, errorOfRecord("a verification is of a contract and a target")
	}
	r.ID, r.Environment, r.State = cmp.Or(r.ID, NewRunID(now)), EnvironmentOr(r.Environment), RunUnderWay
	r.StartedAt, r.FinishedAt, r.Report = now, time.Time{}, nil
	return r, nil
}

// CheckSample says whether a sample may be added to its run. The run's zero value
// stands for one that does not exist.
func CheckSample(r *VerificationRun, s *VerificationSample) error {
	switch {
	case r.ID == "":
		return ErrorOfNoRecord("verification", s.RunID)
	case r.State != RunUnderWay:
		return errorOfRecord("verification %s has ended", r.ID)
	case !slices.Contains([]SampleOutcome{SamplePassed, SampleFailed, SampleInfra}, s.Outcome):
		return errorOfRecord("the outcome of a sample is passed, failed or infra")
	}
	return nil
}

// ErrorOfSampleTwice is the answer to a call of a verification that was recorded before.
func ErrorOfSampleTwice(s *VerificationSample) error {
	return errorOfRecord("repeat %d of case %q in stage %s of verification %s was recorded before", s.Repeat, s.CaseID, s.Stage, s.RunID)
}

// Issue returns what finishing a run writes: the run as it ends, its certificate,
// and its pair if it showed one. The certificate is superseded from the start when
// the run was inconclusive and another verdict stands, which stays.
func (p *RunFinishParams) Issue(run VerificationRun, stands bool, now time.Time) (VerificationRun, Certificate, *PairResult, error) {
	switch {
	case run.ID == "":
		return run, Certificate{}, nil, ErrorOfNoRecord("verification", p.Run.ID)
	case run.State != RunUnderWay:
		return run, Certificate{}, nil, errorOfRecord("verification %s has ended", run.ID)
	case !slices.Contains([]RunState{RunCertified, RunRefused, RunInconclusive}, p.Run.State):
		return run, Certificate{}, nil, errorOfRecord("a verification ends certified, refused or inconclusive")
	case p.Run.State == RunCertified && p.TTL <= 0:
		return run, Certificate{}, nil, errorOfRecord("a certificate needs an end")
	}
	run.State, run.FinishedAt, run.Report = p.Run.State, now, p.Run.Report
	run.Calls, run.SpendMicros = p.Run.Calls, p.Run.SpendMicros
	c := p.Certificate
	c.ID, c.RunID, c.IssuedAt, c.Verdict, c.Status = NewCertificateID(now), run.ID, now, run.State, CertificateActive
	c.Kind, c.ContractDigest, c.Environment = run.Kind, run.ContractDigest, run.Environment
	c.TargetDigest, c.TargetName = run.TargetDigest, run.TargetName
	c.ExpiresAt, c.RenewAt = time.Time{}, time.Time{}
	switch {
	case c.Verdict == RunCertified:
		c.ExpiresAt, c.RenewAt = now.Add(p.TTL), now.Add(p.TTL/2)
	case c.Verdict == RunInconclusive && stands:
		c.Status = CertificateSuperseded
	}
	return run, c, p.pair(&c, now), nil
}

// pair is nil also for a run that showed nothing: a pair found before stays.
func (p *RunFinishParams) pair(c *Certificate, now time.Time) *PairResult {
	if p.Pair == nil || c.Verdict == RunInconclusive {
		return nil
	}
	pair := *p.Pair
	pair.ContractDigest, pair.FallbackDigest, pair.Environment = c.ContractDigest, c.TargetDigest, c.Environment
	pair.RunID, pair.IssuedAt, pair.ExpiresAt = c.RunID, now, now.Add(max(p.TTL, 0))
	return &pair
}

// Stands reports whether the certificate is a verdict that an inconclusive run
// leaves as it is.
func (c *Certificate) Stands() bool {
	return c.Status == CertificateSuspended || c.Status == CertificateActive && c.Verdict != RunInconclusive
}

// Check says whether certificates may be ended so.
func (p *CertificateEndParams) Check() error {
	switch {
	case p.ID == "" && (p.ContractDigest == "" || p.TargetDigest == ""):
		return errorOfRecord("which certificate ends is said by its id, or by contract, target and environment")
	case p.Status != CertificateSuspended && p.Status != CertificateRevoked:
		return errorOfRecord("a certificate is suspended or revoked")
	}
	return nil
}

// Ends reports whether the certificate is still one to be ended so.
func (p *CertificateEndParams) Ends(c *Certificate) bool {
	return c.Status == CertificateActive || c.Status == CertificateSuspended && p.Status == CertificateRevoked
}

// AuditOf is a certificate that somebody suspended or revoked. It reports false
// when nobody did: the machine's own doings are on the certificate.
func (p *CertificateEndParams) AuditOf(c *Certificate) (AuditEntry, bool) {
	action := AuditCertificateRevoke
	if p.Status == CertificateSuspended {
		action = AuditCertificateSuspend
	}
	detail := aboutTarget(c.Kind, c.TargetName, c.Environment)
	if p.Detail != "" {
		detail += ": " + p.Detail
	}
	return AuditEntry{Owner: InstanceOwner, Actor: p.Actor, Action: action, Subject: c.ID, Detail: detail}, p.Actor != ""
}

func aboutTarget(kind, target, environment string) string {
	return fmt.Sprintf("target %s for kind %s in %s", target, kind, environment)
}

// Grant returns the waiver as it is recorded.
func (w Waiver) Grant(now time.Time) (Waiver, error) {
	switch {
	case w.ContractDigest == "" || w.TargetDigest == "":
		return w, errorOfRecord("a waiver is for one contract and one target")
	case w.Actor == "" || w.Reason == "":
		return w, errorOfRecord("a waiver needs who grants it and why")
	case !w.ExpiresAt.After(now):
		return w, errorOfRecord("a waiver needs an end that is not over")
	}
	w.ID, w.Environment = NewWaiverID(now), EnvironmentOr(w.Environment)
	w.GrantedAt, w.RevokedAt = now, time.Time{}
	return w, nil
}

// AuditOf is a waiver that was granted.
func (w *Waiver) AuditOf() AuditEntry {
	return AuditEntry{
		Owner: InstanceOwner, Actor: w.Actor, Action: AuditWaiverGrant, Subject: w.ID,
		Detail: aboutTarget(w.Kind, w.TargetName, w.Environment) + " until " + w.ExpiresAt.UTC().Format(time.RFC3339) + ": " + w.Reason,
	}
}

// AuditOfRevoke is the waiver that actor took back.
func (w *Waiver) AuditOfRevoke(actor string) AuditEntry {
	return AuditEntry{
		Owner: InstanceOwner, Actor: actor, Action: AuditWaiverRevoke, Subject: w.ID,
		Detail: aboutTarget(w.Kind, w.TargetName, w.Environment),
	}
}

// CertificateWatch is what production showed under one certificate so far. It is
// bounded by how many violations it takes to suspend.
type CertificateWatch struct {
	Outputs    int64   `json:"outputs"`              // judged
	Violations []int64 `json:"violations,omitempty"` // the latest: 1 for the first output
}

// mostViolations bounds what is kept for terms that would take more to suspend.
const mostViolations = 1000

// Observe counts outputs of production. It reports whether their violations, with
// those before, reach the terms: so many in so many outputs that follow each other.
// Without such terms (zero SuspendAfter) nothing ever does. Without a window every
// output there was is in it.
func (w CertificateWatch) Observe(p *CertificateObserveParams) (after CertificateWatch, suspend bool) {
	after = CertificateWatch{Outputs: w.Outputs + int64(max(p.Outputs, 0)), Violations: slices.Clone(w.Violations)}
	for _, v := range p.Violations {
		after.Violations = append(after.Violations, w.Outputs+int64(v))
	}
	slices.Sort(after.Violations)
	n := min(p.SuspendAfter, mostViolations)
	if n <= 0 {
		after.Violations = nil
		return after, false
	}
	for i := n - 1; i < len(after.Violations); i++ {
		spread := after.Violations[i] - after.Violations[i-n+1]
		suspend = suspend || p.Window <= 0 || spread < int64(p.Window)
	}
	after.Violations = after.Violations[max(0, len(after.Violations)-n):]
	return after, suspend
}

// Extend moves the end of the certificate to until, and its renewal to half of what
// is left. It reports false for one that opens nothing, or that ends no sooner.
func (c *Certificate) Extend(until, now time.Time) bool {
	if !c.Live(now) || !until.After(c.ExpiresAt) {
		return false
	}
	c.ExpiresAt, c.RenewAt = until.UTC(), now.Add(until.Sub(now)/2)
	return true
}
