package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// Races run for real, over three handles on one database, many rounds each: what
// must never happen is counted, and has to be none of them.
func racingForReal() []promise {
	return []promise{
		{name: "Concurrent/OneKeyIsOneJob", test: testRaceSubmit, handles: 3},
		{name: "Concurrent/OneSuccessor", test: testRaceSupersede, handles: 3},
		{name: "Concurrent/OneAttemptInDoubt", test: testRaceClaim, handles: 3},
		{name: "Concurrent/OneClickIsOneAttempt", test: testRaceClick, handles: 3},
		{name: "Concurrent/ClaimsShareTheJobs", test: testRaceClaimMany, handles: 3},
		{name: "Concurrent/OneWinner", test: testRaceFinish, handles: 3},
		{name: "Concurrent/OneRuling", test: testRaceResolve, handles: 3},
		{name: "Concurrent/ASweepNeverTouchesWhatFinished", test: testRaceSweep, handles: 3},
		{name: "Concurrent/OneSenderAndNoneAfterACancel", test: testRaceCancel, handles: 3},
		{name: "Concurrent/APurgeNeverFreesAKey", test: testRacePurge, handles: 3},
		{name: "Concurrent/NothingStartsAfterARevocation", test: testRaceRevoke, handles: 3},
		{name: "Concurrent/AStartWaitsForARevocationUnderWay", test: testStartBehindRevocation},
		{name: "Concurrent/AStartWaitsForAWaiversRevocationUnderWay", test: testStartBehindWaiverRevocation},
		{name: "Concurrent/NothingIsMarkedAfterARevocation", test: testRaceRevokeMark, handles: 3},
		{name: "Concurrent/OneVerdictStands", test: testRaceVerdicts, handles: 3},
		{name: "Concurrent/BatchesInAnyOrderNeverDeadlock", test: testRaceBatches, handles: 3},
	}
}

// rounds is how often a race is run.
func rounds() int {
	if testing.Short() {
		return 6
	}
	return 40
}

// race calls n callers at the same moment and waits for all. It fails the test
// with the error of any of them.
func (f *fixture) race(n int, call func(ctx context.Context, i int, s onejob.Store) error) {
	f.Helper()
	var wg sync.WaitGroup
	start, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(f.Context(), i, f.handle(i))
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		f.noError(err)
	}
}

// Checking before inserting made up to four orders of one impatient click
// (square1-io/laravel-idempotency#1, dancerfly/django-brambling#658,
// dbos-inc/dbos-transact-py#544).
func testRaceSubmit(f *fixture) {
	const callers = 48
	for round := range rounds() {
		key := fmt.Sprintf("k%d", round)
		results := make([]onejob.JobCreateResult, callers)
		params := make([]onejob.JobCreateParams, callers)
		for i := range params {
			params[i] = f.intent(key)
			if i%4 == 0 {
				params[i] = f.intent(key, withInput("other"))
			}
		}
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			answers, err := s.JobCreate(ctx, params[i:i+1])
			if err == nil {
				results[i] = answers[0]
			}
			return err
		})
		f.oneJob(key, results)
	}
}

// oneJob checks the answers of callers of whom every fourth meant something else.
func (f *fixture) oneJob(key string, results []onejob.JobCreateResult) {
	f.Helper()
	ids, created, conflicts := map[string]bool{}, 0, map[bool]int{}
	for i, r := range results {
		if r.Err != nil {
			ids[f.wantError(r.Err, onejob.CodeKeyConflict).JobID] = true
			conflicts[i%4 == 0]++
			continue
		}
		ids[r.Job.ID] = true
		if !r.Existed {
			created++
		}
	}
	other := (len(results) + 3) / 4
	lostToOther := conflicts[true] == 0 && conflicts[false] == len(results)-other
	lostToMost := conflicts[true] == other && conflicts[false] == 0
	if len(ids) != 1 || created != 1 || !lostToOther && !lostToMost {
		f.Errorf("%d callers with key %s met %d jobs, created %d and conflicted %v; want one job and everybody of the other intent refused",
			len(results), key, len(ids), created, conflicts)
	}
}

func testRaceSupersede(f *fixture) {
	for round := range rounds() / 3 {
		old := f.cancel(f.create(fmt.Sprintf("k%d", round)).ID)
		params := make([]onejob.JobCreateParams, 8)
		for i := range params {
			params[i] = f.intent(fmt.Sprintf("k%d-%d", round, i), instead(old.ID))
		}
		errs := make([]error, len(params))
		f.race(len(params), func(ctx context.Context, i int, s onejob.Store) error {
			answers, err := s.JobCreate(ctx, params[i:i+1])
			if err == nil {
				errs[i] = answers[0].Err
			}
			return err
		})
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				f.get(params[i].ID)
				continue
			}
			f.wantCode(err, onejob.CodeInvalidJob)
		}
		if won != 1 || f.get(old.ID).Version != old.Version+1 {
			f.Errorf("%d jobs superseded one; want 1", won)
		}
	}
}

// A sweep that deleted the row of a key while it was being repeated left its caller
// with an answer that was not true (margince/margince#423).
func testRacePurge(f *fixture) {
	for round := range rounds() / 3 {
		key := fmt.Sprintf("k%d", round)
		job := f.cancel(f.create(key).ID)
		f.advance(payloadAge + time.Second)
		const callers = 9
		params := make([]onejob.JobCreateParams, callers)
		for i := range params {
			params[i] = f.intent(key)
		}
		results := make([]onejob.JobCreateResult, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			if i == 0 {
				_, err := s.JobPurge(ctx, onejob.JobPurgeParams{PayloadAge: payloadAge, Limit: 100})
				return err
			}
			answers, err := s.JobCreate(ctx, params[i:i+1])
			if err == nil {
				results[i] = answers[0]
			}
			return err
		})
		for _, r := range results[1:] {
			if r.Err != nil {
				f.wantCode(r.Err, onejob.CodeKeyExpired)
			} else if r.Job.ID != job.ID || !r.Existed {
				f.Errorf("round %d: during a purge the key was given job %s; want %s or 410", round, r.Job.ID, job.ID)
			}
		}
	}
}

// Callers with the same keys in opposite orders, as groups of many callers meet.
func testRaceBatches(f *fixture) {
	for round := range rounds() / 3 {
		const callers, keys = 6, 12
		batches := make([][]onejob.JobCreateParams, callers)
		for i := range batches {
			for k := range keys {
				key := k
				if i%2 == 1 {
					key = keys - 1 - k
				}
				batches[i] = append(batches[i], f.intent(fmt.Sprintf("k%d-%d", round, key)))
			}
		}
		ids := make([]map[string]string, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			results, err := s.JobCreate(ctx, batches[i])
			ids[i] = map[string]string{}
			for k, r := range results {
				if r.Err != nil {
					return r.Err
				}
				ids[i][string(batches[i][k].KeyHash)] = r.Job.ID
			}
			return err
		})
		for i := range ids {
			for hash, id := range ids[i] {
				if ids[0][hash] != id {
					f.Errorf("round %d: one key was given jobs %s and %s", round, ids[0][hash], id)
				}
			}
		}
	}
}
