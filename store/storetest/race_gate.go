package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

// Who starts an attempt after a revocation was answered goes by what was taken back.
// The callers who claim before that are told apart by their answers: what was started
// is not marked any more, and so never sent.
func testRaceRevoke(f *fixture) {
	for round := range rounds() {
		c := f.certify("b")
		job := f.refusedAtA(fmt.Sprintf("k%d", round))
		var before, after onejob.AttemptClaimResult
		f.race(3, func(ctx context.Context, i int, s onejob.Store) (err error) {
			switch i {
			case 0:
				before, err = s.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: claimer(), Max: 10, Mark: true})
			case 1:
				if _, err = f.recordsOf(s).CertificateEnd(ctx, revocationOf(c.ID)); err == nil {
					after, err = s.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: claimer(), Max: 10, Mark: true})
				}
			default:
				_, err = s.JobDecide(ctx, 10)
			}
			return err
		})
		if len(after.Claimed) != 0 {
			f.Fatalf("round %d: an attempt started after the revocation, by %q", round, after.Claimed[0].Attempt.CertificateID)
		}
		switch len(before.Claimed) {
		case 0:
			f.wantForbidden(job.ID)
			f.cancel(job.ID) // or the next certificate frees it
		default: // it was marked before the revocation took
			a := f.get(job.ID).Attempts[1]
			f.finish(a, onejob.OutcomeSucceeded)
		}
	}
}

// A start that has read what lets it begin, while that is being taken back and this is
// not committed yet, must wait for the commit and go by it. A claim that marks in the
// same commit is never looked at again.
func testStartBehindRevocation(f *fixture) {
	c := f.certify("b")
	f.startsNothingBehind(fmt.Sprintf("UPDATE certificates SET status = 'revoked' WHERE id = '%s'", c.ID))
}

func testStartBehindWaiverRevocation(f *fixture) {
	w := f.waive("b", time.Hour)
	f.startsNothingBehind(fmt.Sprintf("UPDATE waivers SET revoked_at = granted_at WHERE id = '%s'", w.ID))
}

// startsNothingBehind checks that a job which may go on at b is not started there by a
// claim that meets the statement in an open transaction.
func (f *fixture) startsNothingBehind(sql string) {
	f.Helper()
	if f.Behind == nil {
		f.Skip("the database writes in one transaction at a time")
	}
	job := f.refusedAtA("k1")
	var claimed onejob.AttemptClaimResult
	var err error
	held := f.Behind(sql, func() {
		claimed, err = f.s.AttemptClaim(f.Context(), onejob.AttemptClaimParams{StartParams: claimer(), Max: 10, Mark: true})
	})
	f.noError(held)
	f.noError(err)
	if len(claimed.Claimed) != 0 {
		a := claimed.Claimed[0].Attempt
		f.Fatalf("an attempt is %s by certificate %q and waiver %q, which were being revoked", a.State, a.CertificateID, a.WaiverID)
	}
	f.wantForbidden(job.ID)
}

// wantForbidden wants the job blocked because what let it go on was taken back. A claim
// that met the revocation may have been tired of waiting for it, and have set the job
// aside: it is claimed again in a while, and starts nothing then either.
func (f *fixture) wantForbidden(jobID string) {
	f.Helper()
	f.decide()
	if f.get(jobID).State == onejob.JobQueued {
		f.advance(2 * time.Second)
		late, err := f.s.AttemptClaim(f.Context(), onejob.AttemptClaimParams{StartParams: claimer(), Max: 10, Mark: true})
		f.noError(err)
		if len(late.Claimed) != 0 {
			f.Fatalf("an attempt started after what let it start was taken back")
		}
	}
	f.wantJob(jobID, onejob.JobBlocked, onejob.BlockFailoverNotCertified)
}

// A mark and a revocation come to one of two ends: the attempt is running and was
// marked first, or it has failed. Once the revocation was answered it cannot be marked.
func testRaceRevokeMark(f *fixture) {
	for round := range rounds() {
		c := f.certify("b")
		f.refusedAtA(fmt.Sprintf("k%d", round))
		a := f.wantTakeover(c.ID, "")
		results, late := make([]error, 3), error(nil)
		f.race(3, func(ctx context.Context, i int, s onejob.Store) error {
			if i == 1 {
				if _, err := f.recordsOf(s).CertificateEnd(ctx, revocationOf(c.ID)); err != nil {
					return err
				}
				r, err := s.AttemptMark(ctx, []onejob.AttemptMarkParams{markOf(a)})
				if err == nil {
					late = r[0].Err
				}
				return err
			}
			r, err := s.AttemptMark(ctx, []onejob.AttemptMarkParams{markOf(a)})
			if err == nil {
				results[i] = r[0].Err
			}
			return err
		})
		if late == nil {
			f.Fatalf("round %d: an attempt was marked after its certificate was revoked", round)
		}
		senders := 0
		for _, i := range []int{0, 2} {
			if results[i] == nil {
				senders++
			}
		}
		switch senders {
		case 0:
			f.wantAttempt(a.ID, onejob.AttemptFailed)
		case 1:
			got := f.wantAttempt(a.ID, onejob.AttemptRunning)
			f.finish(got, onejob.OutcomeSucceeded)
		default:
			f.Fatalf("round %d: %d callers were told to send", round, senders)
		}
	}
}

// Verdicts of runs that end at once take each other's place: one of them stands.
func testRaceVerdicts(f *fixture) {
	const callers = 6
	f.useGate(nil)
	for round := range rounds() / 3 {
		runs := make([]onejob.VerificationRun, callers)
		for i := range runs {
			runs[i] = f.begin(runOf("b"))
		}
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			state := []onejob.RunState{onejob.RunCertified, onejob.RunRefused}[i%2]
			_, err := f.recordsOf(s).RunFinish(ctx, endOf(runs[i], state))
			return err
		})
		all, err := f.recordsOf(f.s).CertificateList(f.Context(), onejob.CertificateListParams{TargetName: "b"})
		f.noError(err)
		standing := 0
		for i := range all {
			if all[i].Status == onejob.CertificateActive {
				standing++
			}
		}
		if standing != 1 || len(all) != (round+1)*callers {
			f.Fatalf("round %d: %d of %d certificates stand; want 1 of %d", round, standing, len(all), (round+1)*callers)
		}
	}
}
