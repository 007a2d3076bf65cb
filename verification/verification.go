package verification

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Result is what a verification came to.
type Result struct {
	State onejob.RunState // certified, refused or inconclusive
	// Reason is a slug, as in schema_nonce or max_spend; empty when certified. Detail says
	// it in words.
	Reason, Detail string
	Report         Report
	// Certificate as it was issued. Without a [Recorder] it has neither id nor end.
	Certificate onejob.Certificate
	// Pair says how far the target agrees with the primary. Nil: that was not asked, or
	// could not be shown.
	Pair *onejob.PairResult
}

// ending is why a run is over.
type ending struct {
	state          onejob.RunState
	reason, detail string
	err            error // for whoever asked; nil: a verdict is no error
}

func refused(reason, detail string) *ending {
	return &ending{state: onejob.RunRefused, reason: reason, detail: detail}
}

func inconclusive(reason, detail string) *ending {
	return &ending{state: onejob.RunInconclusive, reason: reason, detail: detail}
}

// broken is an ending by something that is neither the target's nor the contract's doing.
func broken(reason string, err error) *ending {
	detail := err.Error()
	if errors.Is(err, context.Canceled) {
		detail = "it was interrupted"
	}
	return &ending{state: onejob.RunInconclusive, reason: reason, detail: detail, err: err}
}

// verification is one run.
type verification struct {
	Params
	opts     Options
	checker  *contract.Checker
	warnings []string // of lint
	prompts  *prompts
	target   *caller
	primary  *caller // nil: none
	budget   *budget
	run      onejob.VerificationRun
	report   Report
	earlier  []onejob.VerificationSample // of the same digests, within the lifetime of a certificate
	lifetime time.Duration
	rendered []rendering    // by case
	indexOf  map[string]int // of a case, by its id

	mu      sync.Mutex // what follows
	ids     map[string]bool
	trouble trouble
	made    made
	outputs map[int][]byte // the first good output of each case, where nothing is kept
	gates   []*gate
	seen    observations
	counts  countDrift
	spans   []span // of the cases' calls in this run
	pair    *onejob.PairResult
}

// Run verifies one target. A verdict is no error: the result says which it is. With
// an error the result is inconclusive and says what was spent; nothing was started
// where its Report has no RunID and a [Recorder] was given.
//
// ctx ends the run early: what is under way is waited for as the provider does.
func Run(ctx context.Context, p Params, opts Options) (Result, error) {
	v, err := newVerification(p, opts)
	if err != nil {
		return Result{State: onejob.RunInconclusive}, err
	}
	if err := v.start(ctx); err != nil {
		return Result{State: onejob.RunInconclusive}, err
	}
	return v.finish(ctx, v.stages(ctx))
}

func newVerification(p Params, opts Options) (*verification, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	checker, warnings, err := p.compiled()
	if err != nil {
		return nil, err
	}
	p.Environment = cmp.Or(p.Environment, onejob.DefaultEnvironment)
	p.UpTo = cmp.Or(p.UpTo, StageOperation)
	p.MaxCalls = cmp.Or(p.MaxCalls, p.Contract.Verify.MaxCalls)
	p.MaxSpendMicros = cmp.Or(p.MaxSpendMicros, int64(p.Contract.Verify.MaxSpendUSD))
	if !slices.Contains(Stages(), p.UpTo) {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: fmt.Sprintf("there is no stage %q; there are S0 to S6", p.UpTo)}
	}
	if opts.Parallel <= 0 {
		opts.Parallel = defaultParallel
	}
	if opts.CallTimeout <= 0 {
		opts.CallTimeout = defaultCallTimeout
	}
	if opts.nonce == nil {
		opts.nonce = nonce
	}
	v := &verification{Params: p, opts: opts, checker: checker, warnings: warnings, budget: newBudget(p.MaxCalls, p.MaxSpendMicros), ids: map[string]bool{}}
	v.indexOf = map[string]int{}
	for i := range p.Contract.CaseList {
		v.indexOf[p.Contract.CaseList[i].ID] = i
	}
	if v.prompts, err = newPrompts(p.Contract, checker); err != nil {
		return nil, err
	}
	v.target = v.callerOf(&v.Target)
	if p.Primary != nil && p.Contract.Equivalence != nil {
		v.primary = v.callerOf(v.Primary)
	}
	v.lifetime, _ = p.Target.lifetime(p.Contract.Certificate.TTL)
	v.trouble.allowed = int(p.Contract.Gates.Operation.MaxInfraErrorRate * float64(v.planned()))
	return v, nil
}

func (v *verification) callerOf(t *Target) *caller {
	return &caller{
		target: t, kind: v.Contract.Kind, effect: onejob.Effect(v.Contract.SideEffects), timeout: v.opts.CallTimeout,
		budget: v.budget, cap: v.prompts.cap, rendered: v.Contract.Prompt != nil,
	}
}

// planned is how many calls the cases take.
func (v *verification) planned() int { return len(v.Contract.CaseList) * v.Contract.Sampling.Repeats }

// start records that the run begins, and reads what earlier ones have shown.
func (v *verification) start(ctx context.Context) error {
	v.run = onejob.VerificationRun{
		ContractDigest: v.checker.Digest(), TargetDigest: v.Target.Digest, TargetName: v.Target.Name, Kind: v.Contract.Kind,
		Environment: v.Environment, Trigger: v.Trigger, Tool: v.Tool, State: onejob.RunUnderWay,
	}
	if v.opts.Recorder != nil {
		run, err := v.opts.Recorder.RunStart(ctx, v.run)
		if err != nil {
			return err
		}
		v.run = run
		samples, err := v.opts.Recorder.SampleList(ctx, onejob.SampleListParams{
			ContractDigest: v.run.ContractDigest, TargetDigest: v.run.TargetDigest, Environment: v.Environment,
		})
		if err != nil {
			return err
		}
		v.earlier = v.withinLifetime(samples)
	}
	v.begin()
	v.gates = v.newGates()
	return nil
}

// withinLifetime drops samples that are older than a certificate may be, and calls that
// showed nothing.
func (v *verification) withinLifetime(samples []onejob.VerificationSample) []onejob.VerificationSample {
	oldest := v.run.StartedAt.Add(-v.lifetime)
	return slices.DeleteFunc(samples, func(s onejob.VerificationSample) bool {
		return s.Outcome == onejob.SampleInfra || s.At.Before(oldest) || s.RunID == v.run.ID
	})
}

// stages goes through them. Nil: the target meets the contract.
func (v *verification) stages(ctx context.Context) *ending {
	for _, s := range []struct {
		stage Stage
		do    func(context.Context) *ending
	}{
		{StageLint, v.lint},
		{StageRender, v.render},
		{StageCount, v.count},
		{StageProbes, v.probe},
		{StageStructure, v.structure},
		{StageMeaning, v.meaning},
		{StageOperation, v.operation},
	} {
		if end := s.do(ctx); end != nil {
			return end
		}
		if s.stage == v.UpTo && s.stage != StageOperation {
			return inconclusive("partial", fmt.Sprintf("it was asked to stop after %s; nothing failed so far", s.stage))
		}
	}
	return nil
}

// finishTimeout bounds the recording of a run whose context is over.
const finishTimeout = 30 * time.Second

// finish records the verdict and issues the certificate.
func (v *verification) finish(ctx context.Context, end *ending) (Result, error) {
	if end == nil {
		end = &ending{state: onejob.RunCertified}
	}
	v.conclude(end)
	result := Result{State: end.state, Reason: end.reason, Detail: end.detail, Pair: v.pair, Certificate: v.certificate(end)}
	if v.opts.Recorder == nil {
		result.Report = v.report
		return result, end.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	body, err := json.Marshal(&v.report)
	if err != nil {
		return result, errors.Join(end.err, err)
	}
	v.run.State, v.run.Report = end.state, body
	v.run.Calls, v.run.SpendMicros = v.budget.used()
	issued, err := v.opts.Recorder.RunFinish(ctx, onejob.RunFinishParams{Run: v.run, Certificate: result.Certificate, TTL: v.lifetime, Pair: v.pair})
	if err == nil {
		result.Certificate = issued
		v.report.CertificateID, v.report.ExpiresAt = issued.ID, issued.ExpiresAt
	}
	result.Report = v.report
	return result, errors.Join(end.err, err)
}

// certificate is what is to be issued.
func (v *verification) certificate(end *ending) onejob.Certificate {
	counts, bounds := v.evidence()
	return onejob.Certificate{
		Kind: v.Contract.Kind, ContractDigest: v.run.ContractDigest, TargetDigest: v.run.TargetDigest, TargetName: v.Target.Name,
		Environment: v.Environment, Verdict: end.state, Sandbox: v.Contract.Verify.Mode == "sandbox", Reason: end.reason, Detail: end.detail,
		Counts: counts, Bounds: bounds, Observed: v.seen.baseline(), Dropped: v.report.Dropped, RunID: v.run.ID,
	}
}
