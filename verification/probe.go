package verification

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// probe is a question to which only a target that does as it is asked can know the
// answer. None may fail.
type probe struct {
	name string
	// naFunc says why the contract has no use for it. Empty: it has.
	naFunc func(*verification) string
	calls  int
	// askFunc makes the nth call, from 1.
	askFunc func(v *verification, n int) (question, error)
}

// question is one call of a probe.
type question struct {
	prompt onejob.Prompt
	// editFunc changes the rendered body. Nil: it is sent as it is.
	editFunc func([]byte) ([]byte, error)
	// judgeFunc says what is wrong with the reply, an answer or a fault.
	judgeFunc func(*reply) fault
}

// probes lists them in the order in which they are made.
func probes() []probe {
	return []probe{
		{probeSchema, withoutSchema, 2, askSchema},
		{probeSystem, withoutSystem, 1, askSystem},
		{probeLength, withoutCap, 1, askLength},
		{probeStop, withoutStop, 1, askStop},
		{probeRoom, withoutCap, 1, askRoom},
		{probeUnicode, never, 1, askUnicode},
		{probeRefusal, withoutRefusal, 1, askRefusal},
		{probeError, never, 1, askError},
	}
}

// The probes.
const (
	probeSchema  = "schema_nonce"   // does the schema reach the model?
	probeSystem  = "system_nonce"   // does the system prompt?
	probeLength  = "length"         // is a cut answer said to be cut?
	probeStop    = "stop"           // does a stop sequence stop?
	probeRoom    = "reasoning_room" // is there an answer left within the cap?
	probeUnicode = "unicode_echo"   // do letters come back as they went?
	probeRefusal = "refusal"        // is a refusal said to be one?
	probeError   = "error_shape"    // is nonsense refused?
)

// unused are probes of what no contract can ask for.
const unused = "tool_history(n/a) stream(n/a)"

// ProbeReport is what one probe showed.
type ProbeReport struct {
	Name    string           `json:"name"`
	Verdict contract.Verdict `json:"verdict"`
	Calls   int              `json:"calls"`
	Class   string           `json:"class,omitempty"`
	Detail  string           `json:"detail,omitempty"`
	Hint    string           `json:"hint,omitempty"`
}

// probe is S3. The first probe that fails ends the run.
func (v *verification) probe(ctx context.Context) *ending {
	s := StageReport{Stage: StageProbes, Name: "probes", Verdict: VerdictSkipped, Text: "the contract has no prompt"}
	if v.Contract.Prompt == nil {
		v.report.add(s)
		return nil
	}
	if end := v.earlierProbe(s); end != nil {
		return end
	}
	if v.pooledFailure() != nil {
		s.Text = "not asked: what earlier runs have shown of the cases decides"
		v.report.add(s)
		return nil
	}
	s.Verdict = contract.VerdictPass
	var end *ending
	for _, p := range probes() {
		var report ProbeReport
		if report, end = v.one(ctx, p); report.Name != "" {
			s.Probes = append(s.Probes, report)
		}
		if end != nil {
			break
		}
	}
	s.Text = probeText(s.Probes)
	if end != nil {
		s.Verdict = contract.VerdictInconclusive
		if end.state == onejob.RunRefused {
			s.Verdict = contract.VerdictFail
			s.failedProbe()
		}
	}
	v.report.add(s)
	return end
}

// earlierProbe ends a run when a probe has failed before: a pass now would be a lucky
// repeat. What is the same contract and target has to become another first, or a
// certificate's life has to go by.
func (v *verification) earlierProbe(s StageReport) *ending {
	i := slices.IndexFunc(v.earlier, func(s onejob.VerificationSample) bool {
		return s.Stage == string(StageProbes) && s.Outcome == onejob.SampleFailed
	})
	if i < 0 {
		return nil
	}
	before := &v.earlier[i]
	detail := fmt.Sprintf("%s failed in an earlier run (%s) of the same contract and target: %s", before.CaseID, before.RunID, before.Detail)
	s.Verdict, s.Text = contract.VerdictFail, detail
	v.report.add(s)
	return refused(before.CaseID, detail)
}

// one makes one probe. A call that came to nothing is made once more.
func (v *verification) one(ctx context.Context, p probe) (ProbeReport, *ending) {
	report := ProbeReport{Name: p.name, Verdict: contract.VerdictPass}
	if why := p.naFunc(v); why != "" {
		report.Verdict, report.Detail = VerdictSkipped, why
		return report, nil
	}
	for n := 1; n <= p.calls; n++ {
		found, end := v.askProbe(ctx, p, n, &report)
		switch {
		case found.found():
			report.Verdict, report.Class, report.Detail, report.Hint = contract.VerdictFail, found.class, found.detail, found.hint
			return report, refused(p.name, found.detail)
		case end != nil:
			report.Verdict = contract.VerdictInconclusive
			return report, end
		}
	}
	return report, nil
}

func (v *verification) askProbe(ctx context.Context, p probe, n int, report *ProbeReport) (fault, *ending) {
	q, err := p.askFunc(v, n)
	if err != nil {
		return fault{}, broken("probe", err)
	}
	rendered, err := v.Target.Provider.(onejob.Prompter).Render(q.prompt)
	if err != nil {
		return fault{class: onejob.GateParamUnsupported, detail: err.Error()}, nil
	}
	body := rendered.Body
	if q.editFunc != nil {
		if body, err = q.editFunc(body); err != nil {
			return fault{}, broken("probe", err)
		}
	}
	for try := 1; ; try++ {
		var found fault
		s := onejob.VerificationSample{CaseID: p.name, Repeat: n + (try-1)*p.calls, Stage: string(StageProbes)}
		r, end := v.ask(ctx, v.target, body, &s, func(r *reply) fault {
			found = q.judgeFunc(r)
			return found
		})
		if r != nil {
			report.Calls++
		}
		v.probed()
		switch {
		case s.FaultClass == classCached:
			return fault{class: classCached, detail: s.Detail, hint: hintOf(classCached)}, nil
		case found.found():
			return withHint(found), nil
		case end != nil:
			return fault{}, end
		case r.bearing != bearingNone:
			return fault{}, nil
		case try > 1:
			return fault{}, v.lostProbe(p.name, r)
		}
	}
}

func (v *verification) probed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	planned := 0
	for _, p := range probes() {
		planned += p.calls
	}
	v.progress(Progress{Stage: StageProbes, Done: v.made.calls, Planned: planned})
}

func withHint(f fault) fault {
	if f.hint == "" {
		f.hint = hintOf(f.class)
	}
	return f
}

// probeText lists what was asked, as in 8/8 schema_nonce … stop(n/a).
func probeText(reports []ProbeReport) string {
	passed, asked := 0, 0
	names := make([]string, len(reports))
	for i, r := range reports {
		names[i] = r.Name
		switch r.Verdict {
		case VerdictSkipped:
			names[i] += "(n/a)"
			continue
		case contract.VerdictPass:
			passed++
		default:
			names[i] += "(" + string(r.Verdict) + ")"
		}
		asked++
	}
	text := fmt.Sprintf("%d/%d  %s", passed, asked, strings.Join(names, " "))
	if passed == asked {
		text += " " + unused
	}
	return text
}

// failedProbe puts what failed in the place of the list.
func (s *StageReport) failedProbe() {
	last := s.Probes[len(s.Probes)-1]
	s.Text = fmt.Sprintf("%s: %s (class %s)", last.Name, last.Detail, last.Class)
	if last.Hint != "" {
		s.Notes = append(s.Notes, "hint   "+last.Hint)
	}
}

// nonceLength is how many letters a nonce has: too many to be guessed, few enough to be
// copied.
const nonceLength = 6

// nonce is a word that nobody can know.
func nonce() string { return "k" + strings.ToLower(rand.Text()[:nonceLength]) }
