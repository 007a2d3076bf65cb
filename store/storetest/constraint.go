package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// The database is the arbiter: what must not happen is refused there, even when
// the store is not asked. The statements are the same text for every SQL store.
func constraining() []promise {
	return []promise{
		{name: "Database/IsTheArbiter", test: testArbiter},
		{name: "Database/APoisonedJobDoesNotStopItsNeighbours", test: testPoisonedJob},
		{name: "Database/APoisonedBlockedJobDoesNotStopItsNeighbours", test: testPoisonedBlocked},
		{name: "Database/APoisonedRowDoesNotStopItsNeighbours", test: testPoisonedRow},
		{name: "Database/APoisonedPolicyDoesNotStopItsNeighbours", test: testPoisonedPolicy},
		{name: "Database/APoisonedContractDoesNotStopItsNeighbours", test: testPoisonedContract},
	}
}

// attack is a statement that must not change anything.
type attack struct {
	name   string
	change string // up to its WHERE
	where  string
}

var attacks = []attack{
	{"AJobKeepsItsOwner", "UPDATE jobs SET owner = 'mallory'", "purged_at IS NULL"},
	{"AJobKeepsItsKey", "UPDATE jobs SET key_hash = fingerprint", "purged_at IS NULL"},
	{"AJobKeepsItsFingerprint", "UPDATE jobs SET fingerprint = key_hash", "purged_at IS NULL"},
	{"AJobKeepsItsKind", "UPDATE jobs SET kind = 'refund'", "purged_at IS NULL"},
	{"AJobKeepsItsTarget", "UPDATE jobs SET target = 'b'", "purged_at IS NULL"},
	{"AJobKeepsItsPolicy", "UPDATE jobs SET policy = '{}'", "purged_at IS NULL"},
	{"AJobKeepsItsEffect", "UPDATE jobs SET effect = 'none'", "effect = 'external'"},
	{"AJobKeepsItsLanes", "UPDATE jobs SET lanes = 2", "purged_at IS NULL"},
	{"AJobKeepsItsInput", "UPDATE jobs SET input = key_hash", "purged_at IS NULL"},
	{"AnInputIsEmptiedOnlyByAPurge", "UPDATE jobs SET input = NULL", "purged_at IS NULL"},
	{"APurgeChangesNothingElse", "UPDATE jobs SET input = NULL, purged_at = created_at, owner = 'mallory'", "purged_at IS NULL"},
	{"AJobIsKept", "DELETE FROM jobs", "purged_at IS NULL"},
	{"ATerminalStateIsFinal", "UPDATE job_states SET state = 'queued', completed_by = NULL, finished_at = NULL", "state = 'succeeded'"},
	{"AFailureIsFinal", "UPDATE job_states SET state = 'queued', error_code = NULL, finished_at = NULL", "state = 'failed'"},
	{"AResultSlotIsTakenOnce", "UPDATE job_states SET completed_by = 'att_other'", "state = 'succeeded'"},
	{"ASuccessHasAWinner", "UPDATE job_states SET state = 'succeeded', finished_at = run_after", "state = 'queued'"},
	{"AWinnerMakesASuccess", "UPDATE job_states SET completed_by = 'att_other'", "state = 'queued'"},
	{"AJobStateIsOneOfTheKnown", "UPDATE job_states SET state = 'retrying'", "state = 'queued'"},
	{"ABlockedJobSaysWhy", "UPDATE job_states SET state = 'blocked'", "state = 'queued'"},
	{"ACancellationWasAskedFor", "UPDATE job_states SET state = 'cancelled', finished_at = run_after", "state = 'queued'"},
	{"AnAttemptStateIsOneOfTheKnown", "UPDATE attempts SET state = 'retrying'", "state = 'running'"},
	{"OneAttemptInDoubt", "UPDATE attempts SET state = 'unknown', finished_at = NULL", "state = 'failed'"},
	{"ALaneIsWithinTheJobsLanes", "UPDATE attempts SET lane = 1", "state = 'running'"},
	{"AnAttemptCannotGrantItselfLanes", "UPDATE attempts SET lanes = 2", "state = 'running'"},
	{"AClaimTokenIsSetOnce", "UPDATE attempts SET claim_token = 'stolen'", "state = 'running'"},
	{"ATargetIsSetOnce", "UPDATE attempts SET target = 'b'", "state = 'running'"},
	{"AProviderKeyIsSetOnce", "UPDATE attempts SET provider_key = 'other'", "state = 'running'"},
	{"RunningWasMarked", "UPDATE attempts SET marked_at = NULL, send_by = NULL", "state = 'running'"},
	{"DoubtIsNotFinished", "UPDATE attempts SET finished_at = started_at", "state = 'running'"},
	{"AFailureHasAnOutcome", "UPDATE attempts SET outcome = NULL", "state = 'failed'"},
	{"ADiscardSaysWhomItLostTo", "UPDATE attempts SET state = 'discarded'", "state = 'failed'"},
}

// testArbiter changes rows behind the store's back, one attack after another:
// none leaves a trace for the next. That a statement means anything to this
// database is shown first, by having it match no row.
func testArbiter(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	again := f.running("retried")
	f.finish(again, onejob.OutcomeRefused, withNext(onejob.NextAgain))
	f.claimAgain()
	succeeded, failed := f.running("succeeded"), f.running("failed")
	f.finish(succeeded, onejob.OutcomeSucceeded)
	f.finish(failed, onejob.OutcomeRefused)
	f.create("queued")
	before := f.everything()
	for _, a := range attacks {
		f.Run(a.name, func(t *testing.T) {
			if err := f.Exec(a.change + " WHERE 1 = 0"); err != nil {
				t.Fatalf("the database does not understand %s: %v", a.change, err)
			}
			if err := f.Exec(a.change + " WHERE " + a.where); err == nil {
				t.Errorf("the database took %s", a.change)
			}
			if after := f.everything(); !reflect.DeepEqual(before, after) {
				t.Errorf("%s changed the rows from\n%+v\nto\n%+v", a.change, before, after)
			}
		})
	}
}

func (f *fixture) everything() []onejob.Job {
	f.Helper()
	var all []onejob.Job
	for _, j := range f.list(onejob.JobListParams{}).Jobs {
		all = append(all, *f.get(j.ID))
	}
	return all
}

// testPoisonedRow makes one attempt unreadable, as a bad disk or a bad migration
// would. The database may refuse that; else, whatever becomes of the attempt's own
// job, the sweep and the claims go on (timgit/pg-boss#492).
func testPoisonedRow(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	poisoned, healthy := f.running("poisoned"), f.running("healthy")
	if err := f.Exec("UPDATE attempts SET evidence = 'not JSON' WHERE id = '" + poisoned.ID + "'"); err != nil {
		return
	}
	f.advance(lease + time.Second)
	changed, err := f.s.AttemptExpire(f.Context(), []onejob.AttemptRef{refOf(poisoned), refOf(healthy)})
	f.noError(err)
	if len(changed) == 0 || changed[len(changed)-1] != refOf(healthy) {
		f.Errorf("the sweep changed %v; want the healthy attempt", changed)
	}
	f.wantAttempt(healthy.ID, onejob.AttemptUnknown)
	f.create("due")
	f.claimOne()
}
