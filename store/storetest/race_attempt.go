package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

func testRaceClaim(f *fixture) {
	const callers = 32
	for round := range rounds() {
		job := f.create(fmt.Sprintf("k%d", round))
		won := make([]string, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			if i%2 == 0 {
				result, err := s.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: claimer(), Max: 3})
				for _, c := range result.Claimed {
					won[i] += c.Attempt.ID
				}
				return err
			}
			results, err := s.AttemptStart(ctx, []onejob.AttemptStartParams{{JobID: job.ID, StartParams: claimer()}})
			if err == nil && results[0].Err == nil {
				won[i] = results[0].Claimed.Attempt.ID
			}
			return err
		})
		var ids []string
		for _, id := range won {
			if id != "" {
				ids = append(ids, id)
			}
		}
		after := f.wantJob(job.ID, onejob.JobRunning)
		if len(ids) != 1 || after.AttemptsMade != 1 || len(after.Attempts) != 1 || after.Attempts[0].ID != ids[0] {
			f.Fatalf("round %d: claimed %q, %d attempts made; want one", round, ids, after.AttemptsMade)
		}
		f.finish(f.mark(after.Attempts[0]), onejob.OutcomeSucceeded)
	}
}

func testRaceClick(f *fixture) {
	for round := range rounds() / 3 {
		job := f.awaitingB(fmt.Sprintf("k%d", round))
		ids := make([]string, 16)
		f.race(len(ids), func(ctx context.Context, i int, s onejob.Store) error {
			results, err := s.AttemptStart(ctx, []onejob.AttemptStartParams{buttonOf(job.ID, "click", "b")})
			if err == nil && results[0].Err == nil {
				ids[i] = results[0].Claimed.Attempt.ID
			}
			return err
		})
		for _, id := range ids {
			if id == "" || id != ids[0] {
				f.Fatalf("round %d: one click was answered with attempts %q; want one for all", round, ids)
			}
		}
		if n := f.get(job.ID).AttemptsMade; n != 2 {
			f.Errorf("%d attempts were made; want 2", n)
		}
	}
}

func testRaceClaimMany(f *fixture) {
	const jobs, callers = 40, 8
	for round := range rounds() / 10 {
		params := make([]onejob.JobCreateParams, jobs)
		for i := range params {
			params[i] = f.intent(fmt.Sprintf("k%d-%d", round, i))
		}
		f.submitAll(params...)
		claimed := make([][]onejob.Claimed, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			for len(claimed[i]) < jobs {
				result, err := s.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: claimer(), Max: 7})
				if err != nil || len(result.Claimed) > 7 {
					return fmt.Errorf("claimed %d of at most 7: %w", len(result.Claimed), err)
				}
				if len(result.Claimed) == 0 {
					return nil
				}
				claimed[i] = append(claimed[i], result.Claimed...)
			}
			return nil
		})
		seen := map[string]int{}
		for _, c := range claimed {
			for i := range c {
				seen[c[i].Job.ID]++
			}
		}
		for _, c := range f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: jobs}).Claimed {
			seen[c.Job.ID]++ // a claimer may step aside for another's lock
		}
		for _, p := range params {
			if seen[p.ID] != 1 {
				f.Fatalf("round %d: a job was claimed %d times; want once", round, seen[p.ID])
			}
		}
	}
}

func testRaceFinish(f *fixture) {
	const lanes = 16
	names := make([]string, lanes)
	for i := range names {
		names[i] = fmt.Sprintf("t%d", i)
	}
	for round := range rounds() {
		job := f.create(fmt.Sprintf("k%d", round), racing(lanes, names...))
		attempts := f.allLanes(job, names)
		results := make([]onejob.AttemptFinishResult, lanes)
		f.race(lanes, func(ctx context.Context, i int, s onejob.Store) error {
			answers, err := s.AttemptFinish(ctx, []onejob.AttemptFinishParams{finishOf(attempts[i], onejob.OutcomeSucceeded)})
			if err == nil {
				results[i] = answers[0]
			}
			return err
		})
		after := f.wantJob(job.ID, onejob.JobSucceeded)
		for i, r := range results {
			f.noError(r.Err)
			won := attempts[i].ID == after.CompletedBy
			if won != (r.State == onejob.AttemptSucceeded) || won != (r.Discarded == nil) || r.Incident != "" {
				f.Errorf("round %d: lane %d was answered %+v while %s won", round, i, r, after.CompletedBy)
			}
			f.wantAttempt(attempts[i].ID, r.State)
		}
		if after.Version != job.Version+1 || string(after.Result.Body) != "result of "+after.CompletedBy {
			f.Errorf("round %d: version %d, result %q; want one change and the winner's result", round, after.Version, after.Result.Body)
		}
	}
}

// allLanes starts one attempt in every lane of a job and marks them all.
func (f *fixture) allLanes(job *onejob.Job, names []string) []onejob.Attempt {
	f.Helper()
	everything := claimer(names...)
	claimed := f.claimWith(onejob.AttemptClaimParams{StartParams: everything, Max: 1}).Claimed
	if len(claimed) != 1 {
		f.Fatalf("%d attempts were claimed; want 1", len(claimed))
	}
	attempts := []onejob.Attempt{claimed[0].Attempt}
	for lane := 1; lane < len(names); lane++ {
		p := laneOf(job.ID, lane, names[lane])
		p.StartParams = everything
		attempts = append(attempts, f.start(p))
	}
	marks := make([]onejob.AttemptMarkParams, len(attempts))
	for i := range attempts {
		marks[i] = markOf(attempts[i])
	}
	results, err := f.s.AttemptMark(f.Context(), marks)
	f.noError(err)
	for i := range results {
		f.noError(results[i].Err)
		attempts[i] = results[i].Attempt
	}
	return attempts
}

// Two people, a late answer and its repeat all settle one unknown attempt.
func testRaceResolve(f *fixture) {
	const callers = 12
	for round := range rounds() / 2 {
		a := f.unknown(fmt.Sprintf("k%d", round))
		version := f.get(a.JobID).Version
		rulings, answers := make([]error, callers), make([]onejob.AttemptFinishResult, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			if i%3 == 0 {
				results, err := s.AttemptFinish(ctx, []onejob.AttemptFinishParams{finishOf(a, onejob.OutcomeSucceeded)})
				if err == nil {
					answers[i] = results[0]
				}
				return err
			}
			results, err := s.AttemptResolve(ctx, []onejob.AttemptResolveParams{rulingOf(a, onejob.OutcomeSucceeded)})
			if err == nil {
				rulings[i] = results[0].Err
			}
			return err
		})
		ruled := 0
		for i, err := range rulings {
			switch {
			case i%3 == 0:
				f.noError(answers[i].Err) // the slot is its own, or its repeat's, or a ruling's
			case err == nil:
				ruled++
			default:
				f.wantCode(err, onejob.CodeAttemptTerminal)
			}
		}
		job := f.wantJob(a.JobID, onejob.JobSucceeded)
		if got := f.attempt(a.ID); ruled > 1 || (ruled == 1) != (got.Ruling != nil) || job.Version != version+1 || job.CompletedBy != a.ID {
			f.Errorf("round %d: %d rulings took, the attempt keeps %+v, version %d to %d; want at most one, and one change", round, ruled, got.Ruling, version, job.Version)
		}
	}
}

// A rescuer overwrote jobs that completed under its hands (riverqueue/river#1302).
func testRaceSweep(f *fixture) {
	for round := range rounds() / 2 {
		a := f.running(fmt.Sprintf("k%d", round))
		f.advance(lease + time.Second)
		refs := f.expired()
		if len(refs) != 1 {
			f.Fatalf("round %d: %d attempts are listed; want 1", round, len(refs))
		}
		const callers = 6
		var finished onejob.AttemptFinishResult
		changed := make([]int, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			if i == 0 {
				results, err := s.AttemptFinish(ctx, []onejob.AttemptFinishParams{finishOf(a, onejob.OutcomeSucceeded)})
				if err == nil {
					finished = results[0]
				}
				return err
			}
			refs, err := s.AttemptExpire(ctx, refs)
			changed[i] = len(refs)
			return err
		})
		total := 0
		for _, n := range changed {
			total += n
		}
		f.noError(finished.Err)
		if finished.State != onejob.AttemptSucceeded || total > 1 {
			f.Errorf("round %d: the finish was answered %s and sweeps changed %d times; want succeeded, at most once", round, finished.State, total)
		}
		f.wantAttempt(a.ID, onejob.AttemptSucceeded)
		f.wantJob(a.JobID, onejob.JobSucceeded)
	}
}

// Whoever's mark is answered without an error sends: there is at most one, and none
// once a cancel came first.
func testRaceCancel(f *fixture) {
	const callers = 8 // half of each
	for round := range rounds() {
		a := f.starting(fmt.Sprintf("k%d", round))
		marked, cancelled := make([]error, callers), make([]error, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			if i%2 == 0 {
				results, err := s.AttemptMark(ctx, []onejob.AttemptMarkParams{markOf(a)})
				if err == nil {
					marked[i] = results[0].Err
				}
				return err
			}
			results, err := s.JobCancel(ctx, []onejob.JobCancelParams{{ID: a.JobID}})
			if err == nil {
				cancelled[i] = results[0].Err
			}
			return err
		})
		senders := 0
		for i := range callers {
			f.noError(cancelled[i])
			if i%2 == 0 && marked[i] == nil {
				senders++
			} else if i%2 == 0 {
				f.wantCode(marked[i], onejob.CodeClaimLost)
			}
		}
		switch senders {
		case 0:
			f.wantAttempt(a.ID, onejob.AttemptCancelled)
		case 1: // it may be on the wire
			f.wantAttempt(a.ID, onejob.AttemptRunning)
			f.wantJob(a.JobID, onejob.JobRunning)
			f.finish(a, onejob.OutcomeRefused)
		default:
			f.Errorf("round %d: %d callers were told to send; want at most one", round, senders)
		}
		f.wantJob(a.JobID, onejob.JobCancelled)
	}
}
