package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// doubt is what is known of the questions about one attempt.
type doubt struct {
	askAt  time.Time // when a person is asked
	told   bool      // whether subscribers were told that it began
	probes []onejob.Probe
}

// doubt returns the questions about an attempt.
func (r *row) doubt(a *onejob.Attempt) *doubt {
	if r.doubts == nil {
		r.doubts = map[string]*doubt{}
	}
	if r.doubts[a.ID] == nil {
		r.doubts[a.ID] = &doubt{}
	}
	return r.doubts[a.ID]
}

// ask makes an attempt that is now open to questions due for them. A person is
// asked once the doubt has lasted long enough, counted from its beginning.
func (r *row) ask(a *onejob.Attempt, now time.Time) {
	if !a.OpenToProbes() {
		return
	}
	d := r.doubt(a)
	a.NextProbeAt = now
	if d.askAt.IsZero() {
		d.askAt = now.Add(r.job.Policy.AskAfter)
	}
}

// ProbeClaim takes attempts that are due to be asked about, longest due first.
func (s *Store) ProbeClaim(ctx context.Context, p onejob.ProbeClaimParams) ([]onejob.Claimed, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	due := s.open(func(a *onejob.Attempt, _ *doubt) bool {
		return !a.NextProbeAt.IsZero() && !a.NextProbeAt.After(now) && slices.Contains(p.Targets, a.Target)
	}, func(q question) time.Time { return q.attempt.NextProbeAt })
	var claimed []onejob.Claimed
	for _, q := range due[:min(max(p.Max, 0), len(due))] {
		q.attempt.NextProbeAt = now.Add(p.Lease)
		claimed = append(claimed, onejob.Claimed{Job: q.row.copyJob(true), Attempt: copyAttempt(q.attempt, false)})
	}
	return claimed, nil
}

// question is one attempt that is open to them.
type question struct {
	row     *row
	attempt *onejob.Attempt
	doubt   *doubt
}

// open lists attempts that are open to questions, in the order of a time.
func (s *Store) open(keep func(*onejob.Attempt, *doubt) bool, by func(question) time.Time) []question {
	var questions []question
	for r := range s.live {
		for i := range r.job.Attempts {
			a := &r.job.Attempts[i]
			if d := r.doubts[a.ID]; d != nil && a.OpenToProbes() && keep(a, d) {
				questions = append(questions, question{row: r, attempt: a, doubt: d})
			}
		}
	}
	slices.SortFunc(questions, func(a, b question) int {
		return cmp.Or(by(a).Compare(by(b)), cmp.Compare(a.attempt.ID, b.attempt.ID))
	})
	return questions
}

// ProbeRecord writes questions and answers down and settles attempts by them.
func (s *Store) ProbeRecord(ctx context.Context, params []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	return each(ctx, s, params, s.recordProbe)
}

func (s *Store) recordProbe(p *onejob.ProbeRecordParams, now time.Time) onejob.AttemptFinishResult {
	r, a := s.findAttempt(p.Ref.ID, "")
	if a == nil || a.JobID != p.Ref.JobID {
		return onejob.AttemptFinishResult{Err: onejob.ErrorOfNoAttempt(p.Ref.ID)}
	}
	if p.AnnouncesReplay() && s.generation.Unconfirmed() {
		return onejob.AttemptFinishResult{Err: onejob.ErrorOfRestore()}
	}
	if p.SendWithin > 0 {
		if err := onejob.CheckSendAgain(&r.job, a); err != nil {
			return onejob.AttemptFinishResult{State: a.State, JobState: r.job.State, Err: err}
		}
		a.SendBy, a.QuarantineUntil = a.SentAgain(now, p.SendWithin)
	}
	verdict, resolves := onejob.JudgeProbe(a, p, now)
	switch {
	case resolves:
		s.settleByProbe(r, a, p, verdict, now)
	case a.OpenToProbes():
		if p.Outcome == onejob.OutcomeAccepted && p.ProviderID != "" {
			a.ProviderID = p.ProviderID
			acceptedAt(a, now)
			s.changed(r, now)
		}
	}
	d := r.doubt(a)
	var next time.Time
	if a.OpenToProbes() {
		if p.After > 0 {
			next = now.Add(p.After)
		}
		a.NextProbeAt = next
	}
	d.probes = append(d.probes, onejob.ProbeOf(p, len(d.probes)+1, now, next))
	return r.finished(a)
}

// settleByProbe is a finish without a claim. What was seen on the wire stays as it
// was seen: the probe keeps its own evidence.
func (s *Store) settleByProbe(r *row, a *onejob.Attempt, p *onejob.ProbeRecordParams, v onejob.ProbeVerdict, now time.Time) {
	event := v.Event
	if event == onejob.EventAnswered && !r.slotOpen(a) {
		event = onejob.EventBeaten
	}
	next, err := follow(a, event)
	if err != nil {
		return // the verdict is of an attempt that the table lets go
	}
	a.Outcome, a.Next, a.OwnFault, a.Error = p.Outcome, v.Next, false, copyOf(p.Failure)
	a.ProviderID = cmp.Or(p.ProviderID, a.ProviderID)
	if p.Currency != "" {
		a.CostMicros, a.Currency = p.CostMicros, p.Currency
	}
	if p.Usage != nil {
		a.Usage = bytes.Clone(p.Usage)
	}
	if v.Ruling != nil {
		a.Ruling = v.Ruling
		r.record(now, onejob.EventRuled, a.ID, v.Ruling.By, string(p.Outcome)+": "+p.Detail)
	}
	s.land(r, a, next, p.Result, now)
	s.changed(r, now)
}

// ProbeList reads the newest probes of one attempt, oldest of them first.
func (s *Store) ProbeList(ctx context.Context, p onejob.ProbeListParams) ([]onejob.Probe, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	r, a := s.findAttempt(p.AttemptID, p.Owner)
	if a == nil {
		return nil, onejob.ErrorOfNoAttempt(p.AttemptID)
	}
	d := r.doubts[a.ID]
	if d == nil {
		return nil, nil
	}
	return slices.Clone(d.probes[max(0, len(d.probes)-min(max(p.Limit, 1), maxPage)):]), nil
}

// ProbeNow makes an attempt due at once.
func (s *Store) ProbeNow(ctx context.Context, p onejob.ProbeNowParams) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, a := s.findAttempt(p.AttemptID, p.Owner)
	if a == nil {
		return onejob.ErrorOfNoAttempt(p.AttemptID)
	}
	if err := onejob.CheckProbeNow(a); err != nil {
		return err
	}
	a.NextProbeAt = now
	return nil
}

// AttemptAsk finds attempts that a person is to be asked about now.
func (s *Store) AttemptAsk(ctx context.Context, limit int) ([]onejob.AttemptRef, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	due := s.open(func(a *onejob.Attempt, d *doubt) bool {
		return a.AskedAt.IsZero() && !d.askAt.IsZero() && !d.askAt.After(now)
	}, func(q question) time.Time { return q.doubt.askAt })
	var refs []onejob.AttemptRef
	for _, q := range due[:min(max(limit, 0), len(due))] {
		q.attempt.AskedAt = now
		if a := q.attempt; a.State == onejob.AttemptRunning { // accepted, and no news since
			a.State, a.Outcome = onejob.AttemptUnknown, onejob.OutcomeUnknown
		}
		q.row.record(now, onejob.EventAsked, q.attempt.ID, "", "")
		s.changed(q.row, now)
		refs = append(refs, onejob.AttemptRef{Part: q.attempt.Part, JobID: q.attempt.JobID, ID: q.attempt.ID})
	}
	return refs, nil
}
