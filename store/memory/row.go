package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// row is all that is kept of one job.
type row struct {
	job    onejob.Job // its attempts with their results
	token  string     // of the transaction that created it
	shrunk bool       // past the life of keys: only owner, key and fingerprint are left
	events []onejob.JobEvent
	doubts map[string]*doubt // by attempt id, of those that questions are or were asked about
	told   []*delivery       // what subscribers are told, or were

	incidents []*onejob.Incident
}

func (r *row) ref() onejob.JobRef { return onejob.JobRef{Part: r.job.Part, ID: r.job.ID} }

// record writes down what the rows cannot tell.
func (r *row) record(now time.Time, kind onejob.EventKind, attemptID, actor, detail string) {
	r.events = append(r.events, onejob.JobEvent{
		Part: r.job.Part, JobID: r.job.ID, AttemptID: attemptID, Kind: kind, At: now, Actor: actor, Detail: detail,
	})
	if e, told := kind.Webhook(); told {
		r.tell(now, e, attemptID)
	}
}

// recordRepeat writes down that a key was used again, now and then.
func (r *row) recordRepeat(now time.Time, kind onejob.EventKind) {
	var last time.Time
	for _, e := range r.events {
		if e.Kind == kind {
			last = e.At
		}
	}
	if onejob.RecordsRepeat(last, now) {
		r.record(now, kind, "", "", "")
	}
}

// find returns a job that who may see, or nil. An empty who sees every job.
func (s *Store) find(id, who string) *row {
	r := s.jobs[id]
	if r == nil || r.shrunk || (who != "" && who != r.job.Owner) {
		return nil
	}
	return r
}

// findAttempt returns an attempt and its job, or nils.
func (s *Store) findAttempt(id, who string) (*row, *onejob.Attempt) {
	r := s.byTry[id]
	if r == nil || s.find(r.job.ID, who) == nil {
		return nil, nil
	}
	return r, onejob.AttemptOf(&r.job, id)
}

func (r *row) inDoubt() bool {
	return slices.ContainsFunc(r.job.Attempts, func(a onejob.Attempt) bool { return a.State.InDoubt() })
}

// changed ends every change of a job: it stands where its attempts put it, and
// whoever watches its revision sees that something happened.
func (s *Store) changed(r *row, now time.Time) {
	r.tellDoubt(now)
	s.stand(r, now)
	r.tellEnd(now)
	s.post(r)
	r.job.Revision++
	if !r.job.State.Terminal() || r.inDoubt() {
		s.live[r] = true
	} else {
		delete(s.live, r)
	}
}

// stand writes where an open job stands. Terminal states never change.
func (s *Store) stand(r *row, now time.Time) {
	if r.job.State.Terminal() {
		return
	}
	was, next := r.job.Blocked, onejob.StandingOf(&r.job, r.job.Attempts, s.verdicts(r, onejob.Ask{}, now), now)
	r.job.State, r.job.Blocked, r.job.NextTarget, r.job.Error = next.State, next.Blocked, next.NextTarget, next.Error
	if next.State == onejob.JobQueued {
		r.job.RunAfter = next.RunAfter
	}
	if next.Closes() {
		r.job.FinishedAt = now
		r.job.Version++
	}
	if next.Blocked != nil && (was == nil || was.Reason != next.Blocked.Reason) {
		r.record(now, onejob.EventBlocked, next.Blocked.AttemptID, "", string(next.Blocked.Reason))
	}
}

// standing is the part of the job that stand writes, to compare before and after.
func (r *row) standing() onejob.Standing {
	return onejob.Standing{
		State: r.job.State, Blocked: r.job.Blocked, RunAfter: r.job.RunAfter,
		NextTarget: r.job.NextTarget, Error: r.job.Error,
	}
}

// copyJob returns the job as a caller gets it: with its attempts but without
// their results, and with its input only if asked for.
func (r *row) copyJob(withInput bool) *onejob.Job {
	j := r.job
	j.KeyHash, j.Fingerprint = bytes.Clone(j.KeyHash), bytes.Clone(j.Fingerprint)
	j.Metadata, j.Policy.Targets = bytes.Clone(j.Metadata), slices.Clone(j.Policy.Targets)
	j.Policy.Contract = copyOf(j.Policy.Contract)
	j.Webhooks = slices.Clone(j.Webhooks)
	j.Result, j.Error, j.Blocked = copyResult(j.Result), copyOf(j.Error), copyOf(j.Blocked)
	if j.Blocked != nil {
		j.Blocked.Candidates = slices.Clone(j.Blocked.Candidates)
	}
	if j.Input = nil; withInput {
		j.Input = bytes.Clone(r.job.Input)
	}
	j.Attempts = nil
	for i := range r.job.Attempts {
		j.Attempts = append(j.Attempts, copyAttempt(&r.job.Attempts[i], false))
	}
	return &j
}

func copyAttempt(from *onejob.Attempt, withResult bool) onejob.Attempt {
	a := *from
	a.RequestKeyHash, a.RequestFingerprint = bytes.Clone(a.RequestKeyHash), bytes.Clone(a.RequestFingerprint)
	if !a.OpenToProbes() {
		a.NextProbeAt = time.Time{}
	}
	a.Error, a.Ruling, a.Discarded, a.Usage = copyOf(a.Error), copyOf(a.Ruling), copyOf(a.Discarded), bytes.Clone(a.Usage)
	if a.Result = nil; withResult {
		a.Result = copyResult(from.Result)
	}
	return a
}

func copyResult(from *onejob.Result) *onejob.Result {
	r := copyOf(from)
	if r != nil {
		r.Body = bytes.Clone(r.Body)
	}
	return r
}

func copyOf[T any](from *T) *T {
	if from == nil {
		return nil
	}
	to := *from
	return &to
}
