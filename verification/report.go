package verification

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// VerdictSkipped : the stage had nothing to ask.
const VerdictSkipped contract.Verdict = "skipped"

// Report is what a verification showed, stage by stage.
type Report struct {
	RunID       string   `json:"run_id,omitempty"` // empty: nothing is kept
	Kind        string   `json:"kind"`
	Contract    string   `json:"contract"` // its digest
	Cases       int      `json:"cases"`
	Repeats     int      `json:"repeats"`
	Target      string   `json:"target"`
	Digest      string   `json:"target_digest"`
	Model       string   `json:"model,omitempty"`
	Naming      string   `json:"naming"` // pinned, alias, self-hosted
	Protocol    string   `json:"protocol,omitempty"`
	Primary     string   `json:"primary,omitempty"`
	Environment string   `json:"environment"`
	Sandbox     bool     `json:"sandbox,omitempty"`
	Dropped     []string `json:"dropped_params,omitempty"`

	Stages   []StageReport `json:"stages"`
	Observed string        `json:"observed"`

	Verdict onejob.RunState `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	// Calls that were made, and what they cost.
	Calls       int   `json:"calls"`
	SpendMicros int64 `json:"spend_micros"`

	CertificateID string    `json:"certificate_id,omitempty"`
	ExpiresAt     time.Time `json:"expires_at,omitzero"`
	Lifetime      string    `json:"lifetime,omitempty"`
	// Shows says what the evidence is about, and what it is not.
	Shows string `json:"shows,omitempty"`
}

// StageReport is one line of a report.
type StageReport struct {
	Stage   Stage            `json:"stage"`
	Name    string           `json:"name"`
	Verdict contract.Verdict `json:"verdict"` // pass, fail, inconclusive or skipped
	Text    string           `json:"text"`
	Notes   []string         `json:"notes,omitempty"`

	Probes      []ProbeReport      `json:"probes,omitempty"`
	Gate        *GateReport        `json:"gate,omitempty"`
	Equivalence *EquivalenceReport `json:"equivalence,omitempty"`
	Operation   *OperationReport   `json:"operation,omitempty"`
}

func (r *Report) add(s StageReport) { r.Stages = append(r.Stages, s) }

// stage finds a line. Nil: it was not reached.
func (r *Report) stage(name string) *StageReport {
	for i := range r.Stages {
		if r.Stages[i].Name == name {
			return &r.Stages[i]
		}
	}
	return nil
}

// FailedStage is the stage that ended the run by a failure. Empty: none did.
func (r *Report) FailedStage() Stage {
	for i := range r.Stages {
		if r.Stages[i].Verdict == contract.VerdictFail && r.Stages[i].Name != gateEquivalence {
			return r.Stages[i].Stage
		}
	}
	return ""
}

// failed reports a stage as one that failed.
func (v *verification) failed(s StageReport, text string) {
	s.Verdict, s.Text = contract.VerdictFail, text
	v.report.add(s)
}

// begin fills in what is known beforehand.
func (v *verification) begin() {
	_, naming := v.Target.lifetime(v.Contract.Certificate.TTL)
	v.report = Report{
		RunID: v.run.ID, Kind: v.Contract.Kind, Contract: v.checker.Digest(), Cases: len(v.Contract.CaseList), Repeats: v.Contract.Sampling.Repeats,
		Target: v.Target.Name, Digest: v.Target.Digest, Model: v.Target.Model, Naming: naming, Protocol: v.Target.Protocol,
		Environment: v.Environment, Sandbox: v.Contract.Verify.Mode == "sandbox",
	}
	if v.Primary != nil {
		v.report.Primary = v.Primary.Name
	}
}

// conclude fills in what came of it.
func (v *verification) conclude(end *ending) {
	r := &v.report
	r.Verdict, r.Reason, r.Detail = end.state, end.reason, end.detail
	r.Calls, r.SpendMicros = v.budget.used()
	r.Observed = v.seen.String()
	if s := r.stage("count"); s != nil && v.counts.compared > 0 {
		s.Text += fmt.Sprintf("; max |usage - counted| %.1f %% (tolerance %g %%)", 100*v.counts.most, 100*v.Contract.Render.CountTolerance.LocalVsRemote)
		if v.counts.beyond {
			s.Verdict = contract.VerdictFail
			s.Notes = append(s.Notes, "hint   "+hintOf(classCount))
		}
	}
	if end.state == onejob.RunCertified {
		r.Lifetime = lifetimeText(v.lifetime)
		r.Shows = v.shows()
	}
}

// shows says what the bound is about.
func (v *verification) shows() string {
	return fmt.Sprintf("on these %d inputs. It does not show rare inputs, nor next month's; nothing samples production.", len(v.Contract.CaseList))
}

func lifetimeText(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// floorPercent writes a bound, never more than it is.
func floorPercent(rate float64) float64 { return math.Floor(rate*1000) / 10 }

// dollars writes an amount in millionths.
func dollars(micros int64) string {
	text := fmt.Sprintf("$%d.%06d", micros/1e6, micros%1e6)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > len(".00") {
		text = text[:len(text)-1]
	}
	return text
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
