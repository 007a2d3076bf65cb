package onejob

import "time"

// Standing is the part of a job that follows from its attempts. A store computes
// it with [StandingOf] and writes it in the transaction that changed them.
type Standing struct {
	State      JobState
	Blocked    *Blocked
	RunAfter   time.Time
	NextTarget string
	Error      *Failure
}

// Closes reports whether the standing ends the job without a winner.
func (s Standing) Closes() bool { return s.State == JobFailed || s.State == JobCancelled }

// StandingOf returns where an open job stands, given its attempts (oldest first),
// the gate's verdicts and the database's clock. It never says succeeded: only
// winning the result slot does.
func StandingOf(job *Job, attempts []Attempt, verdicts Verdicts, now time.Time) Standing {
	d := Decide(job, attempts, verdicts, now, Ask{})
	switch d.Verb {
	case Start:
		return Standing{State: JobQueued, RunAfter: now, NextTarget: d.Target}
	case Wait:
		if d.Until.IsZero() {
			return Standing{State: JobRunning, NextTarget: d.Target}
		}
		return Standing{State: JobQueued, RunAfter: d.Until, NextTarget: d.Target}
	case Finish:
		return Standing{State: d.State, Error: d.Error}
	case Block:
		return Standing{State: JobBlocked, Blocked: &Blocked{
			Reason: d.Reason, Since: since(job, d, now), Detail: d.Detail,
			AttemptID: d.AttemptID, Candidates: d.Candidates,
		}}
	case Rest:
	}
	return Standing{State: job.State, Blocked: job.Blocked, RunAfter: job.RunAfter, NextTarget: job.NextTarget, Error: job.Error}
}

// since keeps the time a job has been blocked for the same reason by the same attempt.
func since(job *Job, d Decision, now time.Time) time.Time {
	if b := job.Blocked; b != nil && b.Reason == d.Reason && b.AttemptID == d.AttemptID {
		return b.Since
	}
	return now
}
