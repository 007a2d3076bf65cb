package certify

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/verification"
)

// VerifyParams say what is verified.
type VerifyParams struct {
	Kind, Target string
	// Against is whom the target is to stand in for. Empty: the kind's first target,
	// where the contract asks for agreement.
	Against string
	Actor   string
	// UpTo is the last stage. Empty: all.
	UpTo verification.Stage
	// MaxSpendMicros. Zero: what the contract says.
	MaxSpendMicros int64
	// Keep records the evidence and issues the certificate.
	Keep         bool
	ProgressFunc func(verification.Progress) // nil: nobody is told
}

// Verify verifies a target. A verdict is no error.
func (o *Office) Verify(ctx context.Context, p VerifyParams) (verification.Result, error) {
	params, err := o.paramsOf(p)
	if err != nil {
		return verification.Result{}, err
	}
	leave, err := o.enter(p.Target)
	if err != nil {
		return verification.Result{}, err
	}
	defer leave()
	var recorder verification.Recorder
	if p.Keep {
		recorder = o.opts.Store
	}
	return verification.Run(ctx, params, verification.Options{Recorder: recorder, CallTimeout: o.opts.CallTimeout, ProgressFunc: p.ProgressFunc})
}

func (o *Office) paramsOf(p VerifyParams) (verification.Params, error) {
	k, err := o.kind(p.Kind)
	if err != nil {
		return verification.Params{}, err
	}
	target, err := o.callable(k, p.Target)
	if err != nil {
		return verification.Params{}, err
	}
	params := verification.Params{
		Contract: k.Contract, Target: target, Environment: o.opts.Environment, Trigger: p.Actor, Tool: o.opts.Tool,
		UpTo: p.UpTo, MaxSpendMicros: p.MaxSpendMicros,
	}
	if p.Against == "" && k.Contract.Equivalence != nil {
		p.Against = k.Policy.Targets[0]
	}
	if p.Against != "" && p.Against != p.Target {
		primary, err := o.callable(k, p.Against)
		if err != nil {
			return params, err
		}
		params.Primary = &primary
	}
	return params, nil
}

func (o *Office) callable(k Kind, name string) (verification.Target, error) {
	if err := k.target(name); err != nil {
		return verification.Target{}, err
	}
	t, able := o.opts.Targets[name]
	if !able {
		return t, invalid(fmt.Sprintf("workers pull %s, so that it cannot be called to be verified", name))
	}
	return t, nil
}

// enter lets one verification of a target be under way at a time.
func (o *Office) enter(target string) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[target] {
		return nil, &onejob.Error{Code: onejob.CodeRequestInProgress, Message: fmt.Sprintf("%s is being verified already", target)}
	}
	o.busy[target] = true
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.busy, target)
	}, nil
}

// VerifyLater starts a verification in the background and returns its run.
func (o *Office) VerifyLater(p VerifyParams) (onejob.VerificationRun, error) {
	params, err := o.paramsOf(p)
	if err != nil {
		return onejob.VerificationRun{}, err
	}
	leave, err := o.enter(p.Target)
	if err != nil {
		return onejob.VerificationRun{}, err
	}
	started := &starting{Recorder: o.opts.Store, run: make(chan onejob.VerificationRun, 1)}
	failed := make(chan error, 1)
	o.all.Go(func() {
		defer leave()
		result, err := verification.Run(o.life, params, verification.Options{Recorder: started, CallTimeout: o.opts.CallTimeout})
		o.opts.Logger.Info("a target was verified", "kind", p.Kind, "target", p.Target, "verdict", result.State, "reason", result.Reason, "certificate", result.Certificate.ID)
		failed <- err
	})
	select {
	case run := <-started.run:
		return run, nil
	case err := <-failed:
		return onejob.VerificationRun{}, refusalOf(err)
	}
}

// refusalOf says why a verification did not begin.
func refusalOf(err error) error {
	if onejob.CodeOf(err) != "" && onejob.CodeOf(err) != onejob.CodeInternal {
		return err
	}
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: err.Error(), Err: err}
}

// starting tells which run has begun.
type starting struct {
	verification.Recorder
	run chan onejob.VerificationRun
}

// RunStart implements [verification.Recorder].
func (s *starting) RunStart(ctx context.Context, r onejob.VerificationRun) (onejob.VerificationRun, error) {
	run, err := s.Recorder.RunStart(ctx, r)
	if err == nil {
		s.run <- run
	}
	return run, err
}

// Replay judges the outputs that are kept of a target by the contract as it is now;
// of is the digest of the one that they were made for, empty for the same.
func (o *Office) Replay(ctx context.Context, kind, target, of string) (verification.Result, error) {
	k, err := o.kind(kind)
	if err != nil {
		return verification.Result{}, err
	}
	if err := k.target(target); err != nil {
		return verification.Result{}, err
	}
	t := o.opts.Targets[target]
	t.Name, t.Digest = target, o.opts.Digests[target]
	return verification.Replay(ctx, verification.ReplayParams{Contract: k.Contract, Of: of, Target: t, Environment: o.opts.Environment}, o.opts.Store)
}

// Run returns one verification with its report.
func (o *Office) Run(ctx context.Context, id string) (onejob.VerificationRun, error) {
	runs, err := o.opts.Store.RunList(ctx, onejob.RunListParams{ID: id, Limit: 1})
	switch {
	case err != nil:
		return onejob.VerificationRun{}, onejob.Unavailable(err)
	case len(runs) == 0:
		return onejob.VerificationRun{}, &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("there is no verification %q", id)}
	}
	return runs[0], nil
}

// ContractOf returns a kind's contract, for who shows or renders it.
func (o *Office) ContractOf(kind string) (*contract.Contract, error) {
	k, err := o.kind(kind)
	return k.Contract, err
}

// TargetOf returns a target of a kind that can be called.
func (o *Office) TargetOf(kind, target string) (verification.Target, error) {
	k, err := o.kind(kind)
	if err != nil {
		return verification.Target{}, err
	}
	return o.callable(k, target)
}
