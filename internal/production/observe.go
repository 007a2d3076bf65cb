package production

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// tally is what was seen and not told yet.
type tally struct {
	outputs    int
	violations []int // which of them
	detail     string
	terms      contract.SuspendAfter
}

const (
	// flushEvery is the longest that outputs are counted here alone. A violation is told
	// at once.
	flushEvery = time.Second
	// maxSubjects and maxViolations bound what is kept while the store is away.
	maxSubjects   = 4096
	maxViolations = 1000
	// storeWithin bounds what is asked of the store.
	storeWithin = 10 * time.Second
)

// count notes one output of production.
func (l *Line) count(job *onejob.Job, a *onejob.Attempt, held *terms, o onejob.Output, violations []contract.Violation) {
	if len(violations) > 0 {
		l.opts.Observer.ContractViolated(job.Kind, a.Target, string(violations[0].Class))
		l.opts.Logger.Warn("an output broke its contract", "job_id", job.ID, "attempt_id", a.ID, "target", a.Target, "violation", violations[0].String())
	}
	if l.opts.Store == nil || a.TargetDigest == "" {
		return
	}
	about := subject{held.checker.Digest(), a.TargetDigest}
	l.mu.Lock()
	t := l.tally[about]
	if t == nil && len(l.tally) < maxSubjects {
		t = &tally{terms: held.contract.Runtime.SuspendAfter}
		l.tally[about] = t
	}
	if t != nil {
		t.add(violations)
	}
	urgent := len(violations) > 0 || l.noteDrift(about, held.contract.Certificate.Drift, o)
	l.mu.Unlock()
	if urgent {
		l.hurry()
	}
}

func (t *tally) add(violations []contract.Violation) {
	t.outputs++
	if len(violations) > 0 && len(t.violations) < maxViolations {
		t.violations = append(t.violations, t.outputs)
		t.detail = violations[0].String()
	}
}

// hurry has what was seen told at once.
func (l *Line) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run tells the certificates what is seen, until ctx ends; what is left then is told
// on the way out. It may be called once, and does nothing without a store.
func (l *Line) Run(ctx context.Context) {
	if l.opts.Store == nil {
		return
	}
	flush, look := time.NewTicker(flushEvery), time.NewTicker(lookEvery)
	defer flush.Stop()
	defer look.Stop()
	l.look(ctx)
	for {
		select {
		case <-ctx.Done():
			l.tell(context.WithoutCancel(ctx))
			return
		case <-flush.C:
		case <-l.wake:
		case <-look.C:
			l.look(ctx)
		}
		l.tell(ctx)
		l.lookInto(ctx)
	}
}

// tell tells the store what was counted. What it did not confirm is told again.
func (l *Line) tell(ctx context.Context) {
	l.mu.Lock()
	told := l.tally
	l.tally = map[subject]*tally{}
	l.mu.Unlock()
	if len(told) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	suspended, err := l.opts.Store.CertificateObserve(ctx, l.paramsOf(told))
	if err != nil {
		l.opts.Logger.Warn("outputs are not counted yet", "error", err)
		l.untell(told)
		return
	}
	l.ended(suspended)
}

func (l *Line) paramsOf(told map[subject]*tally) []onejob.CertificateObserveParams {
	params := make([]onejob.CertificateObserveParams, 0, len(told))
	for about, t := range told {
		params = append(params, onejob.CertificateObserveParams{
			ContractDigest: about.contract, TargetDigest: about.target, Environment: l.opts.Environment,
			Outputs: t.outputs, Violations: t.violations, Detail: t.detail,
			SuspendAfter: t.terms.Violations, Window: t.terms.Window,
		})
	}
	return params
}

// untell puts back what was not told, before what was seen since.
func (l *Line) untell(told map[subject]*tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for about, before := range told {
		if since := l.tally[about]; since != nil {
			for _, n := range since.violations {
				if len(before.violations) < maxViolations {
					before.violations = append(before.violations, before.outputs+n)
					before.detail = since.detail
				}
			}
			before.outputs += since.outputs
		}
		l.tally[about] = before
	}
}

// ended tells people of certificates that production has ended.
func (l *Line) ended(certificates []onejob.Certificate) {
	for i := range certificates {
		c := &certificates[i]
		l.opts.Observer.CertificateEnded(c.Kind, c.TargetName, c.Reason)
		l.opts.Logger.Error("a certificate is suspended; nothing falls back to the target by itself until it is verified again",
			"certificate", c.ID, "kind", c.Kind, "target", c.TargetName, "reason", c.Reason, "detail", c.Detail)
	}
}
