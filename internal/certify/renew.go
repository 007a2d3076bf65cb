package certify

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/verification"
)

// TriggerRenewal is the trigger of a verification that nobody asked for.
const TriggerRenewal = "renewal"

const (
	defaultRenewEvery = 10 * time.Minute
	// renewPause is how long ago the last run of a pair has to have begun, in any
	// process, before a renewal begins: what several nodes look at, one of them pays for.
	renewPause = time.Hour
	// longestPause is what the pause grows to while renewals show nothing.
	longestPause = 24 * time.Hour
	// longestRun is for how long a run that has not ended is taken to be under way.
	longestRun = 6 * time.Hour
)

// KeepRenewed looks every [Options.RenewEvery] for certificates whose half life is
// over and verifies their targets again, one after the other, until ctx ends. A
// verification that is under way then is inconclusive.
func (o *Office) KeepRenewed(ctx context.Context) {
	timer := time.NewTimer(jitter(o.opts.RenewEvery))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		o.renewDue(ctx)
		timer.Reset(jitter(o.opts.RenewEvery))
	}
}

// jitter spreads d by a quarter to both sides, so that nodes do not look in step.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// renewDue goes through the kinds and targets that there are now: what was shown of an
// earlier version of either is of no more use.
func (o *Office) renewDue(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(o.opts.Kinds)) {
		k := o.opts.Kinds[name]
		if k.Contract.Verify.Mode == "recorded" {
			continue
		}
		for _, target := range k.Policy.Targets {
			if _, able := o.opts.Targets[target]; !able {
				continue
			}
			if err := o.renew(ctx, k, target); err != nil && ctx.Err() == nil {
				o.opts.Logger.Warn("a certificate cannot be renewed", "kind", name, "target", target, "error", err)
			}
		}
	}
}

// renew verifies a target again if it is time to.
func (o *Office) renew(ctx context.Context, k Kind, target string) error {
	due, err := o.due(ctx, k, target)
	if err != nil || due == nil {
		return err
	}
	runs, err := o.runsOf(ctx, due)
	if err != nil {
		return err
	}
	if recent(runs, due, o.opts.NowFunc()) {
		return nil
	}
	p := VerifyParams{Kind: k.Contract.Kind, Target: target, Actor: TriggerRenewal, Keep: true}
	params, err := o.paramsOf(p)
	if err != nil {
		return err
	}
	leave, err := o.enter(target)
	if err != nil {
		return nil // somebody is at it
	}
	defer leave()
	_, err = o.verify(ctx, p, params, &renewing{Recorder: o.opts.Store, office: o, due: due})
	if errors.Is(err, errNotNow) {
		return nil
	}
	return err
}

// due returns the certificate that stands on the contract and the target as they are
// now, if half of its life is over. Whether it stands is for the store's clock to say.
func (o *Office) due(ctx context.Context, k Kind, target string) (*onejob.Certificate, error) {
	live, err := o.opts.Store.CertificateList(ctx, onejob.CertificateListParams{
		ContractDigest: k.Policy.Contract.Digest, TargetDigest: o.opts.Digests[target], Environment: o.opts.Environment, Live: true, Limit: 1,
	})
	if err != nil || len(live) == 0 || live[0].RenewAt.IsZero() || o.opts.NowFunc().Before(live[0].RenewAt) {
		return nil, err
	}
	return &live[0], nil
}

// runsLooked bounds how many runs of a pair are looked at: more than there are within
// the longest pause.
const runsLooked = 200

// runsOf lists the runs of c's contract and target, newest first, without renewals
// that were withdrawn.
func (o *Office) runsOf(ctx context.Context, c *onejob.Certificate) ([]onejob.VerificationRun, error) {
	runs, err := o.opts.Store.RunList(ctx, onejob.RunListParams{
		ContractDigest: c.ContractDigest, TargetDigest: c.TargetDigest, Environment: c.Environment, Limit: runsLooked,
	})
	if err != nil {
		return nil, err
	}
	issued, err := o.opts.Store.CertificateList(ctx, onejob.CertificateListParams{
		ContractDigest: c.ContractDigest, TargetDigest: c.TargetDigest, Environment: c.Environment, Limit: runsLooked,
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(r onejob.VerificationRun) bool {
		return slices.ContainsFunc(issued, func(c onejob.Certificate) bool { return c.RunID == r.ID && c.Reason == reasonNotNow })
	}), nil
}

// recent reports whether one of runs keeps a renewal of c from beginning at now.
func recent(runs []onejob.VerificationRun, c *onejob.Certificate, now time.Time) bool {
	pause := pauseOf(runs, c)
	return slices.ContainsFunc(runs, func(r onejob.VerificationRun) bool {
		if r.State == onejob.RunUnderWay {
			return now.Sub(r.StartedAt) < max(pause, min(longestRun, lifeOf(c)/4))
		}
		return now.Sub(r.StartedAt) < pause
	})
}

func lifeOf(c *onejob.Certificate) time.Duration { return c.ExpiresAt.Sub(c.IssuedAt) }

// pauseOf doubles with every run since c was issued, each of which showed nothing, or c
// would not stand. It stays short enough for what is left of c's life.
func pauseOf(runs []onejob.VerificationRun, c *onejob.Certificate) time.Duration {
	pause := min(renewPause, lifeOf(c)/4)
	longest := max(pause, min(longestPause, lifeOf(c)/8))
	for i := range runs {
		if !runs[i].StartedAt.After(c.IssuedAt) {
			break
		}
		if i > 0 {
			pause = min(2*pause, longest)
		}
	}
	return pause
}

// reasonNotNow marks a renewal that was withdrawn before anybody was called.
const reasonNotNow = "not_now"

// errNotNow : another process began just before, or our clock is ahead of the store's.
var errNotNow = errors.New("it is not time yet, or another run has just begun")

// renewing begins a run only where no other has just begun: of two processes that saw
// a certificate due, the one whose run is older by the store's clock goes on. The
// other ends its run before it calls anybody.
type renewing struct {
	verification.Recorder
	office *Office
	due    *onejob.Certificate
}

// RunStart implements [verification.Recorder].
func (r *renewing) RunStart(ctx context.Context, run onejob.VerificationRun) (onejob.VerificationRun, error) {
	run, err := r.Recorder.RunStart(ctx, run)
	if err != nil {
		return run, err
	}
	runs, err := r.office.runsOf(ctx, r.due)
	older := slices.DeleteFunc(runs, func(other onejob.VerificationRun) bool {
		return cmp.Or(other.StartedAt.Compare(run.StartedAt), cmp.Compare(other.ID, run.ID)) >= 0
	})
	if err == nil && !run.StartedAt.Before(r.due.RenewAt) && !recent(older, r.due, run.StartedAt) {
		return run, nil
	}
	if err == nil {
		err = errNotNow
	}
	run.State = onejob.RunInconclusive
	_, ended := r.RunFinish(ctx, onejob.RunFinishParams{Run: run, Certificate: onejob.Certificate{Reason: reasonNotNow, Detail: errNotNow.Error()}})
	return run, errors.Join(err, ended)
}
