package onejob_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

// ordeal is one job on its way through chance: every attempt that Decide starts
// ends somehow, and people ask for whatever comes to their mind.
type ordeal struct {
	*rapid.T
	job      *onejob.Job
	attempts []onejob.Attempt
	verdicts onejob.Verdicts
	now      time.Time
	unblocks int
}

var targetNames = []string{"a", "b", "c", "elsewhere"}

func newOrdeal(t *rapid.T) *ordeal {
	p := onejob.Policy{
		Effect:      rapid.SampledFrom(onejob.Effects()).Draw(t, "effect"),
		Targets:     targetNames[:rapid.IntRange(1, 3).Draw(t, "targets")],
		MaxAttempts: rapid.IntRange(0, 6).Draw(t, "max attempts"),
		PerTarget:   rapid.IntRange(0, 3).Draw(t, "per target"),
		Failover:    rapid.SampledFrom([]onejob.FailoverMode{onejob.FailoverCertified, onejob.FailoverDeclared, onejob.FailoverNever}).Draw(t, "failover"),
		FailoverWhy: "the same model",
	}
	if p.Effect == onejob.EffectNone {
		p.Lanes = rapid.IntRange(0, 3).Draw(t, "lanes")
	}
	p, err := p.WithDefaults()
	if err != nil {
		t.Fatalf("%v", err)
	}
	o := &ordeal{T: t, now: noon, verdicts: onejob.Verdicts{}}
	o.job = &onejob.Job{ID: "job_1", State: onejob.JobQueued, Policy: p, CreatedAt: noon, RunAfter: noon, Version: 1}
	if rapid.Bool().Draw(t, "target asked for") {
		o.job.Target = rapid.SampledFrom(p.Targets).Draw(t, "target")
	}
	if rapid.Bool().Draw(t, "has deadline") {
		o.job.Deadline = noon.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "deadline")) * time.Second)
	}
	for _, target := range targetNames {
		if rapid.Bool().Draw(t, "verdict on "+target) {
			o.verdicts[target] = onejob.Verdict{Allowed: rapid.Bool().Draw(t, "allowed "+target), Reason: "expired"}
		}
	}
	return o
}

// live lets the job live until it ends or stands still.
func (o *ordeal) live() {
	for !o.job.State.Terminal() {
		o.someoneAsks()
		if !o.step() {
			return
		}
	}
}

// step does what the job itself wants next, and reports whether it may go on.
func (o *ordeal) step() bool {
	d := o.decide(onejob.Ask{})
	o.stand()
	switch d.Verb {
	case onejob.Start:
		o.start(d)
	case onejob.Wait:
		if d.Until.IsZero() {
			o.settleSome()
		} else if d.Until.After(o.now) {
			o.now = d.Until
		} else {
			o.Fatalf("at %s the job waits until %s", o.now, d.Until)
		}
	case onejob.Block:
		return o.unblock(d)
	case onejob.Finish, onejob.Rest:
	}
	return true
}

func (o *ordeal) decide(ask onejob.Ask) onejob.Decision {
	d := onejob.Decide(o.job, o.attempts, o.verdicts, o.now, ask)
	if again := onejob.Decide(o.job, slices.Clone(o.attempts), o.verdicts, o.now, ask); !cmp.Equal(d, again) {
		o.Fatalf("asked twice, Decide says %+v and then %+v", d, again)
	}
	if d.Verb == onejob.Start {
		o.checkStart(d, ask)
	}
	return d
}

// checkStart holds a start to every rule there is, each in its own words.
func (o *ordeal) checkStart(d onejob.Decision, ask onejob.Ask) {
	p := &o.job.Policy
	fail := func(why string) {
		o.Fatalf("started at %s in lane %d, %s; asked %+v\n%s", d.Target, d.Lane, why, ask, o)
	}
	at := o.where(func(a *onejob.Attempt) bool { return a.Target == d.Target && !lostByUs(a) })
	doubts := o.where(func(a *onejob.Attempt) bool { return a.State.InDoubt() })
	switch {
	case o.job.State.Terminal():
		fail("of a terminal job")
	case !o.job.CancelRequestedAt.IsZero():
		fail("of a job that is to be given up")
	case !o.job.Deadline.IsZero() && !o.now.Before(o.job.Deadline):
		fail("after the deadline")
	case !slices.Contains(p.Targets, d.Target):
		fail("which is not the kind's")
	case d.Lane != ask.Lane:
		fail("another lane than asked for")
	case ask.Target != "" && ask.Target != d.Target:
		fail("another target than asked for")
	case d.Lane == 0 && len(doubts) > 0:
		fail("beside an attempt in doubt")
	case len(at) >= p.PerTarget:
		fail("beyond the target's budget")
	case !o.job.HeldAt.IsZero() && !o.job.UnblockedAt.After(o.job.HeldAt):
		fail("though the store was restored and nobody let the job go on")
	case o.killedThreeWorkers():
		fail("though the job kills whoever tries it")
	case len(o.where(func(a *onejob.Attempt) bool { return !lostByUs(a) })) >= p.MaxAttempts:
		fail("beyond the job's budget")
	case p.Effect != onejob.EffectNone && len(o.where(func(a *onejob.Attempt) bool { return !a.Outcome.Proven() })) > 0:
		fail("though an earlier attempt may have had an effect")
	case d.Lane > 0:
		o.checkLane(d, fail)
	case ask.Target == "" && len(o.attempts) > 0:
		o.checkOrder(d, fail)
	}
}

func (o *ordeal) checkLane(d onejob.Decision, fail func(string)) {
	busy := o.where(func(a *onejob.Attempt) bool { return a.Lane == d.Lane && a.State.InDoubt() })
	been := o.where(func(a *onejob.Attempt) bool { return a.Target == d.Target })
	switch {
	case d.Lane >= o.job.Policy.Lanes:
		fail("a lane that the job does not have")
	case o.job.Policy.Effect != onejob.EffectNone:
		fail("a race for an effect")
	case len(busy) > 0:
		fail("which holds an attempt in doubt")
	case len(been) > 0:
		fail("where the job has been")
	}
}

// checkOrder: by itself the job stays where it is or goes where it has never been.
func (o *ordeal) checkOrder(d onejob.Decision, fail func(string)) {
	last := o.attempts[len(o.attempts)-1].Target
	first := o.job.Target
	if first == "" {
		first = o.job.Policy.Targets[0]
	}
	switch {
	case d.Target == last:
	case len(o.where(func(a *onejob.Attempt) bool { return a.Target == d.Target })) > 0:
		fail("back where it has been")
	case o.job.Policy.Failover == onejob.FailoverNever && d.Target != first:
		fail("though it stays at its first target")
	case !d.Verdict.Allowed:
		fail("against the gate")
	}
}

// lostByUs: the target had no part in it.
func lostByUs(a *onejob.Attempt) bool {
	return a.OwnFault || (!a.LeaseOverAt.IsZero() && a.Outcome == onejob.OutcomeNotExecuted)
}

// killedThreeWorkers: the last three attempts since a person let the job go on
// were lost with three workers, and nothing of them was executed.
func (o *ordeal) killedThreeWorkers() bool {
	workers, n := map[string]bool{}, len(o.attempts)
	for _, a := range o.attempts[max(0, n-3):] {
		if !a.LeaseOverAt.IsZero() && a.Outcome.Proven() && !a.State.InDoubt() && a.StartedAt.After(o.job.UnblockedAt) {
			workers[a.Worker] = true
		}
	}
	return len(workers) == 3
}

func (o *ordeal) where(is func(*onejob.Attempt) bool) []int {
	var found []int
	for i := range o.attempts {
		if is(&o.attempts[i]) {
			found = append(found, i)
		}
	}
	return found
}

func (o *ordeal) start(d onejob.Decision) {
	o.job.AttemptsMade = len(o.attempts)
	a := onejob.NewAttempt(o.job, o.attempts, d, onejob.StartParams{}, o.now)
	a.ID = fmt.Sprintf("att_%d", a.Number) // so that chance can be repeated
	a.Worker = rapid.SampledFrom([]string{"u", "v", "w", "x"}).Draw(o.T, "worker")
	if a.State != onejob.AttemptStarting || a.Number != len(o.attempts)+1 {
		o.Fatalf("a new attempt is %s, number %d", a.State, a.Number)
	}
	if rapid.Bool().Draw(o.T, "marked") {
		a.State = onejob.AttemptRunning
	}
	o.attempts = append(o.attempts, a)
	o.now = o.now.Add(time.Millisecond)
}

// settleSome ends one of the attempts in doubt, or makes it unknown.
func (o *ordeal) settleSome() {
	doubts := o.where(func(a *onejob.Attempt) bool { return a.State.InDoubt() })
	if len(doubts) == 0 {
		o.Fatalf("the job waits for news, and nothing can bring any\n%s", o)
	}
	o.settle(&o.attempts[rapid.SampledFrom(doubts).Draw(o.T, "which")])
}

func (o *ordeal) settle(a *onejob.Attempt) {
	ours := rapid.IntRange(0, 3).Draw(o.T, "ours") == 0
	outcome := rapid.SampledFrom([]onejob.Outcome{
		onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeExecutedFailed,
		onejob.OutcomeContractViolation, onejob.OutcomeUnknown, onejob.OutcomeCancelled,
	}).Draw(o.T, "outcome")
	if a.State == onejob.AttemptStarting || ours {
		outcome = onejob.OutcomeNotExecuted
	}
	event, _ := outcome.Event()
	if a.State == onejob.AttemptUnknown && outcome == onejob.OutcomeUnknown {
		event, outcome = onejob.EventFailed, onejob.OutcomeExecutedFailed
	}
	next, err := a.State.Next(event)
	if err != nil {
		o.Fatalf("%v", err)
	}
	if a.State == onejob.AttemptUnknown && rapid.Bool().Draw(o.T, "by a person") {
		a.Ruling = &onejob.Ruling{Outcome: outcome, At: o.now, RiskAcknowledged: rapid.Bool().Draw(o.T, "risk")}
	}
	a.State, a.Outcome, a.OwnFault = next, outcome, ours
	if a.LeaseOverAt.IsZero() && rapid.IntRange(0, 2).Draw(o.T, "lost with its worker") == 0 {
		a.LeaseOverAt = o.now
	}
	a.Next = rapid.SampledFrom([]onejob.Next{onejob.NextAgain, onejob.NextAgain, onejob.NextElsewhere, onejob.NextNowhere, ""}).Draw(o.T, "next")
	if next.Terminal() {
		a.FinishedAt = o.now
	}
	if rapid.IntRange(0, 3).Draw(o.T, "asks to wait") == 0 {
		a.RetryAt = o.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(o.T, "retry after")) * time.Second)
	}
}

// someoneAsks presses a button now and then.
func (o *ordeal) someoneAsks() {
	switch rapid.IntRange(0, 9).Draw(o.T, "somebody") {
	case 0, 1, 2:
		ask := onejob.Ask{Now: true}
		if rapid.Bool().Draw(o.T, "names a target") {
			ask.Target = rapid.SampledFrom(targetNames).Draw(o.T, "asked target")
		}
		if rapid.Bool().Draw(o.T, "races") {
			ask.Lane = rapid.IntRange(1, 3).Draw(o.T, "asked lane")
		}
		d := o.decide(ask)
		o.job.Attempts = o.attempts
		if err := onejob.CheckAsked(o.job, d); (err == nil) != (d.Verb == onejob.Start) {
			o.Fatalf("%s is answered with %v", d.Verb, err)
		}
		if d.Verb == onejob.Start {
			o.start(d)
		}
	case 3:
		if rapid.IntRange(0, 4).Draw(o.T, "cancels") == 0 {
			o.job.CancelRequestedAt = o.now
		}
	case 4:
		if rapid.IntRange(0, 4).Draw(o.T, "is restored") == 0 {
			o.restore()
		}
	}
}

// restore puts the job back from a copy: what was under way is not known, and the
// job is held.
func (o *ordeal) restore() {
	o.now = o.now.Add(time.Second)
	o.job.HeldAt = o.now
	for i := range o.attempts {
		a := &o.attempts[i]
		underWay := a.State == onejob.AttemptStarting || a.State == onejob.AttemptRunning
		if onejob.RestoreAttempt(a) != underWay || underWay && a.State != onejob.AttemptUnknown {
			o.Fatalf("restored, attempt %d is %s\n%s", a.Number, a.State, o)
		}
	}
}

// unblock does what a person can do about a block, if anything.
func (o *ordeal) unblock(d onejob.Decision) bool {
	switch d.Reason {
	case onejob.BlockAttemptUnknown:
		o.settleSome()
		return true
	case onejob.BlockNeedsOperator, onejob.BlockParked:
		o.unblocks++
		o.now = o.now.Add(time.Second)
		o.job.UnblockedAt, o.job.Blocked = o.now, nil
		return o.unblocks < 3
	case onejob.BlockFailoverNotCertified, onejob.BlockFailoverUnproven, onejob.BlockTargetsExhaustedUnproven:
	}
	return false
}

// stand writes the job's standing, as a store does, and checks it.
func (o *ordeal) stand() {
	s := onejob.StandingOf(o.job, o.attempts, o.verdicts, o.now)
	running := len(o.where(func(a *onejob.Attempt) bool {
		return a.State == onejob.AttemptStarting || a.State == onejob.AttemptRunning
	}))
	unknown := len(o.where(func(a *onejob.Attempt) bool { return a.State == onejob.AttemptUnknown }))
	fail := func(why string) { o.Fatalf("%s: %+v\n%s", why, s, o) }
	switch {
	case (s.State == onejob.JobRunning) != (running > 0):
		fail("a job is running exactly while an attempt is starting or running")
	case running == 0 && unknown > 0 && (s.Blocked == nil || s.Blocked.Reason != onejob.BlockAttemptUnknown):
		fail("an unknown attempt must block")
	case (s.State == onejob.JobBlocked) != (s.Blocked != nil):
		fail("a job is blocked exactly when it says why")
	case s.State == onejob.JobSucceeded:
		fail("only winning the slot makes a job succeed")
	case s.State == onejob.JobQueued && (s.NextTarget == "" || s.RunAfter.IsZero()):
		fail("a queued job must say where and when it goes on")
	case s.State == onejob.JobFailed && s.Error == nil:
		fail("a failed job must say why")
	}
	o.job.State, o.job.Blocked, o.job.RunAfter, o.job.NextTarget, o.job.Error = s.State, s.Blocked, s.RunAfter, s.NextTarget, s.Error
}

func (o *ordeal) String() string {
	text := fmt.Sprintf("job %s, effect %s, failover %s, budget %d (%d a target)\n",
		o.job.State, o.job.Policy.Effect, o.job.Policy.Failover, o.job.Policy.MaxAttempts, o.job.Policy.PerTarget)
	for i := range o.attempts {
		a := &o.attempts[i]
		text += fmt.Sprintf("  %d lane %d at %s: %s, %s, next %q, ours %t\n", a.Number, a.Lane, a.Target, a.State, a.Outcome, a.Next, a.OwnFault)
	}
	return text
}

func TestWhateverHappensAJobKeepsItsRulesAndComesToAnEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOrdeal(t)
		o.live()
		ours := o.where(lostByUs)
		if most := o.job.Policy.MaxAttempts + len(ours); len(o.attempts) > most {
			t.Fatalf("%d attempts; want at most %d\n%s", len(o.attempts), most, o)
		}
		// Racing and asking can add to the faults of our own that the job survives.
		if most := (onejob.MaxOwnFaults + 1 + len(o.job.Policy.Targets)) * (o.unblocks + 1); len(ours) > most {
			t.Fatalf("%d attempts were lost on our own side; want at most %d", len(ours), most)
		}
	})
}

// A row can hold what no life leads to; the guard must hold all the same.
func TestNothingStartsBesideAnAttemptInDoubtWhateverTheRowsSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOrdeal(t)
		o.job.State = rapid.SampledFrom(onejob.JobStates()).Draw(t, "state")
		for n := range rapid.IntRange(0, 6).Draw(t, "attempts") {
			o.attempts = append(o.attempts, onejob.Attempt{
				ID: fmt.Sprintf("att_%d", n+1), Number: n + 1,
				Lane:     rapid.IntRange(0, 2).Draw(t, "lane"),
				Target:   rapid.SampledFrom(targetNames).Draw(t, "at"),
				State:    rapid.SampledFrom(onejob.AttemptStates()).Draw(t, "attempt state"),
				Outcome:  rapid.SampledFrom(onejob.Outcomes()).Draw(t, "attempt outcome"),
				Next:     rapid.SampledFrom([]onejob.Next{onejob.NextAgain, onejob.NextElsewhere, onejob.NextNowhere}).Draw(t, "attempt next"),
				OwnFault: rapid.Bool().Draw(t, "own fault"),
				Worker:   rapid.SampledFrom([]string{"u", "v", "w", "x"}).Draw(t, "worker"), StartedAt: noon,
			})
			if rapid.Bool().Draw(t, "lease over") {
				o.attempts[n].LeaseOverAt = noon
			}
		}
		held := rapid.Bool().Draw(t, "held")
		if held {
			o.job.HeldAt = noon
		}
		if rapid.Bool().Draw(t, "blocked") {
			o.job.Blocked = &onejob.Blocked{Reason: rapid.SampledFrom(onejob.BlockReasons()).Draw(t, "blocked for")}
		}
		ask := onejob.Ask{
			Now:    rapid.Bool().Draw(t, "now"),
			Target: rapid.SampledFrom(append(targetNames, "")).Draw(t, "ask target"),
			Lane:   rapid.IntRange(0, 3).Draw(t, "ask lane"),
		}
		before := slices.Clone(o.attempts)
		d := onejob.Decide(o.job, o.attempts, o.verdicts, o.now, ask)
		if diff := cmp.Diff(before, o.attempts); diff != "" {
			t.Fatalf("Decide changed its attempts:\n%s", diff)
		}
		inDoubt := o.where(func(a *onejob.Attempt) bool { return a.State.InDoubt() && (ask.Lane == 0 || a.Lane == ask.Lane) })
		switch {
		case o.job.State.Terminal() && d.Verb != onejob.Rest:
			t.Fatalf("a terminal job would %s", d.Verb)
		case len(inDoubt) > 0 && (d.Verb == onejob.Start || d.Verb == onejob.Finish):
			t.Fatalf("with attempts in doubt the job would %s\n%s", d.Verb, o)
		case d.Verb != onejob.Start:
		case held || o.killedThreeWorkers() || o.job.Blocked != nil && o.job.Blocked.Reason.NeedsUnblock():
			t.Fatalf("held (%t), parked or blocked, the job would start at %s in lane %d; asked %+v\n%s", held, d.Target, d.Lane, ask, o)
		}
	})
}
