package engine

import (
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	// askingAtOnce is how many questions one engine has open at most.
	askingAtOnce = 16
	// askWithin bounds one look-up.
	askWithin = 15 * time.Second
	// recordWithin bounds the writing down of one answer.
	recordWithin = 10 * time.Second

	defaultAskEvery = 2 * time.Second
	maxAskEvery     = 5 * time.Minute
	// historySize is how many earlier probes of an attempt are looked at.
	historySize = 200

	askPeopleEvery = 5 * time.Second
	askPeopleBatch = 200
)

// canFollow reports whether an accepted attempt will be heard of again.
func (e *Engine) canFollow(t *onejob.Target, providerID string) bool {
	how := t.Reconcile
	return e.probes != nil && providerID != "" && (how.Callback || asks(t) && (how.Lookup || how.Search))
}

// asks reports whether the target has a provider that can be looked up at.
func asks(t *onejob.Target) bool {
	_, able := t.Provider.(onejob.Prober)
	return able && (t.Reconcile.Lookup || t.Reconcile.Search)
}

// askable lists the targets whose attempts this engine can ask about.
func (e *Engine) askable() []string {
	var names []string
	for name, t := range e.targets {
		if asks(&t) || t.Reconcile.Replays() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// reconcileLoop finds out what became of attempts in doubt, wherever their
// engine is: whichever takes the question asks it, and the store lets one answer
// settle the attempt.
func (e *Engine) reconcileLoop(ctx context.Context) {
	targets := e.askable()
	if e.probes == nil || len(targets) == 0 {
		return
	}
	wait := time.NewTimer(jitter(e.opts.PollInterval))
	defer wait.Stop()
	for quiet := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-e.opts.Signals.Questions():
			quiet = 0
		case <-wait.C:
			quiet++
		}
		if e.reconcile(ctx, targets) > 0 {
			quiet = 0
		}
		wait.Reset(jitter(e.pauseAfter(quiet)))
	}
}

// reconcile takes as many due questions as may be open, and asks them. It returns
// how many are open then.
func (e *Engine) reconcile(ctx context.Context, targets []string) (open int) {
	free := cap(e.asking) - len(e.asking)
	if free == 0 {
		return cap(e.asking)
	}
	bounded, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	due, err := e.probes.ProbeClaim(bounded, onejob.ProbeClaimParams{Targets: targets, Lease: e.opts.Lease, Max: free})
	e.complainUnless(ctx, "could not look for attempts to ask about", err)
	for i := range due {
		e.asking <- struct{}{} // only this loop takes them, so there is room
		e.working.add()
		go func() {
			defer e.working.done()
			defer func() { <-e.asking }()
			e.find(due[i])
		}()
	}
	return len(e.asking)
}

// find asks about one attempt and writes down what came of it.
func (e *Engine) find(c onejob.Claimed) {
	q := &question{Claimed: c, target: e.targets[c.Attempt.Target], ref: refOf(&c.Attempt)}
	if !e.recall(q) {
		return
	}
	e.askToGiveUp(q)
	p := e.ask(q)
	if !e.judgeFound(q, &p) {
		return // asked again when the claim of the question ends
	}
	p.Ref, p.After = q.ref, q.pause(p.Outcome)
	if p.Outcome == "" && q.knownBefore() {
		p.Outcome = onejob.OutcomeUnknown
	}
	e.recordProbe(q, p)
}

// question is one attempt being asked about.
type question struct {
	onejob.Claimed
	target  onejob.Target
	ref     onejob.AttemptRef
	history []onejob.Probe // earlier ones, the newest last
}

// recall reads what was asked before. It reports whether that could be read.
func (e *Engine) recall(q *question) bool {
	ctx, cancel := context.WithTimeout(e.hard, recordWithin)
	defer cancel()
	var err error
	q.history, err = e.probes.ProbeList(ctx, onejob.ProbeListParams{AttemptID: q.ref.ID, Limit: historySize})
	e.complainUnless(e.hard, "could not read earlier questions", err)
	return err == nil
}

// asked is how many questions there were before this one.
func (q *question) asked() int {
	if len(q.history) == 0 {
		return 0
	}
	return q.history[len(q.history)-1].Number
}

// pollsPerStep is how many times work that is known to go on is asked about before
// the pause doubles, so that the pause stays a fraction of the time it has taken.
const pollsPerStep = 4

// pause is how long to wait before the next question: Every, then doubling, with
// jitter, so that nodes and attempts do not ask in step.
func (q *question) pause(o onejob.Outcome) time.Duration {
	pause := q.target.Reconcile.Every
	if pause <= 0 {
		pause = defaultAskEvery
	}
	steps := q.asked()
	if o == onejob.OutcomeAccepted {
		steps /= pollsPerStep
	}
	for ; steps > 0 && pause < maxAskEvery; steps-- {
		pause *= 2
	}
	return jitter(min(pause, max(maxAskEvery, q.target.Reconcile.Every)))
}

// recordProbe writes down a question with its answer. An answer that could not be
// written down is asked for again when the claim of the question ends. It returns
// what the store said, and whether it said anything.
func (e *Engine) recordProbe(q *question, p onejob.ProbeRecordParams) (_ onejob.AttemptFinishResult, recorded bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.hard), recordWithin)
	defer cancel()
	results, err := e.probes.ProbeRecord(ctx, []onejob.ProbeRecordParams{p})
	if err == nil {
		err = retryable(results[0].Err)
	}
	if err != nil {
		e.complain("answer about an attempt not recorded", err, "job_id", q.Job.ID, "attempt_id", q.ref.ID)
		return onejob.AttemptFinishResult{}, false
	}
	e.found(q, p, results[0])
	return results[0], true
}

// found tells whoever wants to know what was found out.
func (e *Engine) found(q *question, p onejob.ProbeRecordParams, r onejob.AttemptFinishResult) {
	log := e.opts.Logger.With("job_id", q.Job.ID, "attempt_id", q.ref.ID, "target", q.target.Name, "method", p.Method)
	if r.Err == nil && p.SendWithin == 0 {
		e.opts.Observer.ProbeAnswered(q.target.Name, p.Method, p.Outcome)
	}
	switch {
	case r.Err != nil:
		log.Info("the answer came too late to change anything", "state", r.State, "err", r.Err)
		return
	case r.Discarded != nil:
		log.Warn("success discarded", "winner", r.Discarded.Winner, "after", r.Discarded.After, "cost_micros", p.CostMicros, "currency", p.Currency)
		e.opts.Observer.RaceLost(q.target.Name)
	case r.State.InDoubt():
		log.Debug("attempt still in doubt", "state", r.State, "detail", p.Detail, "again", p.After)
	default:
		log.Info("attempt found out about", "state", r.State, "outcome", p.Outcome, "detail", p.Detail)
	}
	if r.Incident != "" {
		log.Error("incident: the effect may have happened twice", "incident", r.Incident)
		e.opts.Observer.Incident(r.Incident)
	}
	if p.Outcome != "" && p.Outcome != onejob.OutcomeUnknown {
		e.opts.Signals.JobChanged(q.Job.ID)
		e.tell(q.Job, nil, r)
	}
}

// askPeopleLoop asks people about attempts that stayed in doubt for too long.
func (e *Engine) askPeopleLoop(ctx context.Context) {
	if e.probes == nil {
		return
	}
	e.whenFound(ctx, e.wakeups.unasked, askPeopleEvery, func() {
		bounded, cancel := context.WithTimeout(ctx, recordWithin)
		defer cancel()
		asked, err := e.probes.AttemptAsk(bounded, askPeopleBatch)
		e.complainUnless(ctx, "could not ask people about attempts in doubt", err)
		for _, ref := range asked {
			e.opts.Logger.Warn("an attempt stayed in doubt; a person is asked to settle it", "job_id", ref.JobID, "attempt_id", ref.ID)
			e.opts.Signals.JobChanged(ref.JobID)
		}
		if len(asked) > 0 {
			e.opts.Observer.PeopleAsked(len(asked))
		}
	})
}
