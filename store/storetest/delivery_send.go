package storetest

import (
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// What becomes of the outbox.
func sending() []promise {
	return []promise{
		{name: "DeliveryClaim/ForTheTimeOfALease", test: testDeliveryLease},
		{name: "DeliveryClaim/LongestDueFirstAndAtMostMax", test: testDeliveryOrder},
		{name: "DeliveryClaim/OnlyToEndpointsThatTheSenderKnows", test: testDeliveryEndpoints},
		{name: "DeliveryClaim/TwoSendersShareWhatIsDue", test: testDeliveryShared, handles: 2},
		{name: "DeliveryClaim/ADisabledEndpointWaitsAndGoesOnOnceEnabled", test: testDeliveryDisabled},
		{name: "DeliveryClaim/GivesUpWhatIsTooOldWhoeversItIs", test: testDeliveryGiveUp},
		{name: "DeliveryClaim/GivesUpNothingThatIsBeingTried", test: testDeliveryGiveUpLeased},
		{name: "DeliveryClaim/GivesUpABoundedNumberAtOnce", test: testDeliveryGiveUpBounded},
		{name: "DeliveryRecord/ATryThatFailedIsDueAgainLater", test: testDeliveryRetry},
		{name: "DeliveryRecord/DeliveredAndFailedEndIt", test: testDeliveryEnds},
		{name: "DeliveryRecord/OfAStaleClaimIsLost", test: testDeliveryStale},
		{name: "DeliveryRecord/TwoSendersRecordOneTry", test: testDeliveryRecordRace, handles: 2},
		{name: "DeliveryRecord/TheFirstBodyStays", test: testDeliveryBody},
		{name: "DeliveryRecord/EachRowOfABatchIsJudgedByItself", test: testDeliveryBatch},
		{name: "DeliveryResend/WorksInEveryState", test: testDeliveryResend},
		{name: "DeliveryResend/IsSentThoughATryIsUnderWay", test: testDeliveryResendUnderWay},
		{name: "DeliveryResend/BeginsTheTimeToGiveUpAnew", test: testDeliveryResendAge},
		{name: "DeliveryResend/AnothersIsAsIfItDidNotExist", test: testDeliveryResendOwner},
		{name: "DeliveryList/PagesNewestFirstWithoutBodies", test: testDeliveryPages},
		{name: "DeliveryList/Filters", test: testDeliveryFilters},
		{name: "EndpointDisable/KeepsTheFirstReason", test: testEndpointReason},
		{name: "JobPurge/NotWhileSomebodyIsToBeTold", test: testPurgeTelling},
		{name: "JobPurge/EmptiesWhatWasSentAndShrinkingForgetsIt", test: testPurgeDeliveries},
	}
}

const sendLease = time.Minute

// sendingTo is a claim of a sender that knows the endpoints named, and by default both.
func sendingTo(endpoints ...string) onejob.DeliveryClaimParams {
	if len(endpoints) == 0 {
		endpoints = []string{plain, curious}
	}
	return onejob.DeliveryClaimParams{Endpoints: endpoints, Lease: sendLease, Max: 100}
}

func (f *fixture) claimDeliveries(p onejob.DeliveryClaimParams) []onejob.Delivery {
	f.Helper()
	claimed, err := f.outbox().DeliveryClaim(f.Context(), p)
	f.noError(err)
	return claimed
}

func (f *fixture) claimDelivery() onejob.Delivery {
	f.Helper()
	claimed := f.claimDeliveries(sendingTo())
	if len(claimed) != 1 {
		f.Fatalf("%d deliveries were claimed; want 1", len(claimed))
	}
	return claimed[0]
}

// tried is what became of one try.
func tried(d onejob.Delivery, state onejob.DeliveryState, change ...func(*onejob.DeliveryRecordParams)) onejob.DeliveryRecordParams {
	p := onejob.DeliveryRecordParams{ID: d.ID, Tries: d.Tries, Resent: d.Resent, State: state, Status: 200, Body: []byte(`{"type":"test"}`)}
	if state != onejob.DeliveryDelivered {
		p.Status, p.Error = 503, "the endpoint answered 503"
	}
	if state == onejob.DeliveryPending {
		p.After = 5 * time.Minute
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func (f *fixture) record(p onejob.DeliveryRecordParams) error {
	f.Helper()
	errs, err := f.outbox().DeliveryRecord(f.Context(), []onejob.DeliveryRecordParams{p})
	f.noError(err)
	return errs[0]
}

func (f *fixture) resend(id string) onejob.Delivery {
	f.Helper()
	d, err := f.outbox().DeliveryResend(f.Context(), onejob.DeliveryResendParams{ID: id, Actor: "olga"})
	f.noError(err)
	return d
}

func (f *fixture) delivery(id string) onejob.Delivery {
	f.Helper()
	page := f.deliveries(onejob.DeliveryListParams{ID: id})
	if len(page.Deliveries) != 1 {
		f.Fatalf("there are %d deliveries %q; want 1", len(page.Deliveries), id)
	}
	return page.Deliveries[0]
}

func (f *fixture) wantDelivery(id string, state onejob.DeliveryState) onejob.Delivery {
	f.Helper()
	d := f.delivery(id)
	if d.State != state || d.FinishedAt.IsZero() != (state == onejob.DeliveryPending) || d.DueAt.IsZero() == (state == onejob.DeliveryPending) {
		f.Fatalf("the delivery is %+v; want it %s, with the time of that alone", d, state)
	}
	return d
}

// ended records an intent that is told to one endpoint and ends it.
func (f *fixture) ended(key string, change ...func(*onejob.JobCreateParams)) onejob.Delivery {
	f.Helper()
	job := f.create(key, append([]func(*onejob.JobCreateParams){told}, change...)...)
	f.cancel(job.ID)
	page := f.deliveries(onejob.DeliveryListParams{JobID: job.ID})
	if len(page.Deliveries) != 1 {
		f.Fatalf("the end of job %s made %d deliveries; want 1", job.ID, len(page.Deliveries))
	}
	return page.Deliveries[0]
}

func deliveryIDs(all []onejob.Delivery) []string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return ids
}

func (f *fixture) wantDeliveries(name string, got []onejob.Delivery, want ...string) {
	f.Helper()
	if ids := deliveryIDs(got); !slices.Equal(ids, want) {
		f.Fatalf("%s: got %q; want %q", name, ids, want)
	}
}
