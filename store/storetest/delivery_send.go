package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
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

func testDeliveryLease(f *fixture) {
	made := f.ended("k1")
	d := f.claimDelivery()
	if d.ID != made.ID || d.Owner != owner || d.Event != onejob.WebhookJobCancelled || d.Body != nil || d.Tries != 0 || d.State != onejob.DeliveryPending {
		f.Errorf("the claim answers %+v; want the delivery, not tried, with its owner", d)
	}
	f.wantDeliveries("during the lease", f.claimDeliveries(sendingTo()))
	f.advance(sendLease + time.Second)
	f.wantDeliveries("after the lease", f.claimDeliveries(sendingTo()), made.ID)
}

func testDeliveryOrder(f *fixture) {
	first := f.ended("k1")
	f.advance(time.Second)
	second := f.ended("k2")
	f.advance(time.Second)
	third := f.ended("k3")
	p := sendingTo(plain)
	p.Max = 2
	f.wantDeliveries("at most two", f.claimDeliveries(p), first.ID, second.ID)
	p.Max = 0
	f.wantDeliveries("none", f.claimDeliveries(p))
	p.Max = 2
	f.wantDeliveries("the rest", f.claimDeliveries(p), third.ID)
}

func testDeliveryEndpoints(f *fixture) {
	f.cancel(f.create("k1", hooked).ID)
	for _, p := range []onejob.DeliveryClaimParams{sendingTo("ep_other"), {Lease: sendLease, Max: 10}} {
		f.wantDeliveries("to others", f.claimDeliveries(p))
	}
	claimed := f.claimDeliveries(sendingTo(curious, "ep_other"))
	if len(claimed) != 1 || claimed[0].Endpoint != curious {
		f.Errorf("a sender to %s got %+v", curious, claimed)
	}
}

func testDeliveryShared(f *fixture) {
	want := map[string]int{}
	for i := range 40 {
		want[f.ended(fmt.Sprintf("k%d", i)).ID] = 1
	}
	got := map[string]int{}
	var mu sync.Mutex
	f.race(4, func(ctx context.Context, _ int, s onejob.Store) error {
		p := sendingTo()
		p.Max = 3
		for range 30 {
			claimed, err := s.(onejob.DeliveryStore).DeliveryClaim(ctx, p)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, d := range claimed {
				got[d.ID]++
			}
			mu.Unlock()
		}
		return nil
	})
	for _, d := range f.claimDeliveries(sendingTo()) { // what a sender passed over because another held it
		got[d.ID]++
	}
	for id, n := range got {
		if want[id] != 1 || n != 1 {
			f.Errorf("delivery %s was claimed %d times; want once", id, n)
		}
	}
	if len(got) != len(want) {
		f.Errorf("%d deliveries were claimed; want %d", len(got), len(want))
	}
}

func testDeliveryDisabled(f *fixture) {
	d := f.ended("k1")
	f.noError(f.outbox().EndpointDisable(f.Context(), plain, "it answered 410"))
	f.wantDeliveries("while disabled", f.claimDeliveries(sendingTo()))
	other := f.create("k2", hooked)
	f.cancel(other.ID)
	claimed := f.claimDeliveries(sendingTo())
	if len(claimed) != 1 || claimed[0].Endpoint != curious {
		f.Errorf("beside a disabled endpoint %+v were claimed; want the other endpoint's", claimed)
	}
	f.wantDelivery(d.ID, onejob.DeliveryPending)
	f.noError(f.outbox().EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: plain, Actor: "olga"}))
	f.noError(f.outbox().EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: plain, Actor: "olga"}))
	if claimed := f.claimDeliveries(sendingTo()); len(claimed) != 2 || claimed[0].ID != d.ID && claimed[1].ID != d.ID {
		f.Errorf("once enabled, %+v were claimed; want what had waited", claimed)
	}
}

// givingUp is a claim that gives up what is four days old.
func givingUp() onejob.DeliveryClaimParams {
	p := sendingTo()
	p.GiveUpAfter = 96 * time.Hour
	return p
}

func testDeliveryGiveUp(f *fixture) {
	tried1 := f.ended("k1")
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryPending)))
	never := f.ended("k2", func(p *onejob.JobCreateParams) { p.Webhooks[0].Endpoint = "ep_gone" })
	f.advance(48 * time.Hour)
	young := f.ended("k3")
	f.advance(48*time.Hour + time.Minute)
	f.wantDeliveries("four days on", f.claimDeliveries(givingUp()), young.ID)
	if d := f.wantDelivery(tried1.ID, onejob.DeliveryFailed); d.Error != onejob.GivenUp(96*time.Hour)+": the endpoint answered 503" || d.Tries != 1 || d.Status != 503 {
		f.Errorf("the one that was tried is %+v; want given up, and why the last try failed", d)
	}
	if d := f.wantDelivery(never.ID, onejob.DeliveryFailed); d.Error != onejob.GivenUp(96*time.Hour) || d.Tries != 0 {
		f.Errorf("the one that nobody sends is %+v; want given up", d)
	}
	f.wantDelivery(young.ID, onejob.DeliveryPending)
	kept := f.ended("k4")
	f.advance(10 * 365 * 24 * time.Hour)
	f.claimDeliveries(onejob.DeliveryClaimParams{})
	f.wantDelivery(kept.ID, onejob.DeliveryPending)
	f.claimDeliveries(onejob.DeliveryClaimParams{GiveUpAfter: time.Hour})
	f.wantDelivery(kept.ID, onejob.DeliveryFailed)
}

func testDeliveryGiveUpLeased(f *fixture) {
	f.ended("k1")
	f.advance(96*time.Hour - sendLease/2)
	d := f.claimDelivery()
	f.advance(sendLease - time.Second)
	f.claimDeliveries(givingUp())
	f.wantDelivery(d.ID, onejob.DeliveryPending)
	f.noError(f.record(tried(d, onejob.DeliveryDelivered)))
	f.wantDelivery(d.ID, onejob.DeliveryDelivered)
}

func testDeliveryGiveUpBounded(f *fixture) {
	const n = 250
	var params []onejob.JobCreateParams
	var cancels []onejob.JobCancelParams
	for i := range n {
		params = append(params, f.intent(fmt.Sprintf("k%d", i), told))
		cancels = append(cancels, onejob.JobCancelParams{ID: params[i].ID})
	}
	f.submitAll(params...)
	_, err := f.s.JobCancel(f.Context(), cancels)
	f.noError(err)
	f.advance(97 * time.Hour)
	p := givingUp()
	p.Max, p.Endpoints = 0, nil
	pending := onejob.DeliveryListParams{States: []onejob.DeliveryState{onejob.DeliveryPending}}
	f.claimDeliveries(p)
	if left := len(f.deliveries(pending).Deliveries); left == 0 {
		f.Fatalf("one claim gave up all of %d deliveries", n)
	}
	for range n {
		f.claimDeliveries(p)
		if len(f.deliveries(pending).Deliveries) == 0 {
			return
		}
	}
	f.Errorf("after %d claims some are still pending", n)
}

func testDeliveryRetry(f *fixture) {
	d := f.ended("k1")
	claimed := f.claimDelivery()
	before := f.get(d.JobID)
	f.noError(f.record(tried(claimed, onejob.DeliveryPending)))
	got := f.wantDelivery(d.ID, onejob.DeliveryPending)
	if got.Tries != 1 || got.Status != 503 || got.Error != "the endpoint answered 503" || !got.CreatedAt.Equal(d.CreatedAt) {
		f.Errorf("after a try it is %+v; want one try, its status and error", got)
	}
	f.advance(5*time.Minute - time.Second)
	f.wantDeliveries("a second early", f.claimDeliveries(sendingTo()))
	f.advance(time.Second)
	if again := f.claimDelivery(); again.ID != d.ID || again.Tries != 1 || string(again.Body) != `{"type":"test"}` {
		f.Errorf("the second claim answers %+v; want one try, and the body that was sent", again)
	}
	if after := f.get(d.JobID); after.Revision != before.Revision {
		f.Errorf("a try changed the job's revision from %d to %d", before.Revision, after.Revision)
	}
}

func testDeliveryEnds(f *fixture) {
	for i, state := range []onejob.DeliveryState{onejob.DeliveryDelivered, onejob.DeliveryFailed} {
		f.ended(fmt.Sprintf("k%d", i))
		d := f.claimDelivery()
		f.noError(f.record(tried(d, state)))
		got := f.wantDelivery(d.ID, state)
		if got.Tries != 1 || got.FinishedAt.Before(got.CreatedAt) {
			f.Errorf("after its last try it is %+v", got)
		}
		f.advance(365 * 24 * time.Hour)
		f.wantDeliveries("a year later", f.claimDeliveries(givingUp()))
		if after := f.delivery(d.ID); after.State != state || after.Error != got.Error {
			f.Errorf("a year later it is %+v; want it as it was", after)
		}
	}
}

func testDeliveryStale(f *fixture) {
	f.ended("k1")
	first := f.claimDelivery()
	f.advance(sendLease + time.Second)
	second := f.claimDelivery()
	f.noError(f.record(tried(second, onejob.DeliveryPending)))
	f.wantCode(f.record(tried(first, onejob.DeliveryDelivered)), onejob.CodeClaimLost)
	f.wantDelivery(first.ID, onejob.DeliveryPending)
	f.advance(time.Hour)
	third := f.claimDelivery()
	f.noError(f.record(tried(third, onejob.DeliveryDelivered)))
	f.wantCode(f.record(tried(third, onejob.DeliveryFailed)), onejob.CodeClaimLost)
	ended := third
	ended.Tries++
	f.wantCode(f.record(tried(ended, onejob.DeliveryFailed)), onejob.CodeClaimLost)
	if d := f.wantDelivery(first.ID, onejob.DeliveryDelivered); d.Tries != 2 {
		f.Errorf("the delivery has %d tries; want 2", d.Tries)
	}
}

func testDeliveryRecordRace(f *fixture) {
	for i := range rounds() {
		f.ended(fmt.Sprintf("k%d", i))
		d := f.claimDelivery()
		recorded := make([]error, 4)
		f.race(len(recorded), func(ctx context.Context, i int, s onejob.Store) error {
			errs, err := s.(onejob.DeliveryStore).DeliveryRecord(ctx, []onejob.DeliveryRecordParams{tried(d, onejob.DeliveryDelivered)})
			if err == nil {
				recorded[i] = errs[0]
			}
			return err
		})
		won := 0
		for _, err := range recorded {
			if err == nil {
				won++
				continue
			}
			f.wantCode(err, onejob.CodeClaimLost)
		}
		if got := f.wantDelivery(d.ID, onejob.DeliveryDelivered); won != 1 || got.Tries != 1 {
			f.Fatalf("%d of 4 recorded the try and %d are counted; want 1", won, got.Tries)
		}
	}
}

func testDeliveryBody(f *fixture) {
	f.ended("k1")
	sent := []byte(`{"first":true}`)
	body := func(b []byte) func(*onejob.DeliveryRecordParams) {
		return func(p *onejob.DeliveryRecordParams) { p.Body = b }
	}
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryPending, body(nil))))
	f.advance(time.Hour)
	for _, b := range [][]byte{sent, []byte(`{"second":true}`), nil} {
		d := f.claimDelivery()
		f.noError(f.record(tried(d, onejob.DeliveryPending, body(b))))
		f.advance(time.Hour)
	}
	d := f.claimDelivery()
	f.noError(f.record(tried(d, onejob.DeliveryDelivered, body([]byte("other")))))
	f.resend(d.ID)
	if d := f.claimDelivery(); !bytes.Equal(d.Body, sent) {
		f.Errorf("the body is %q; want %q, which was sent first", d.Body, sent)
	}
}

func testDeliveryBatch(f *fixture) {
	f.ended("k1")
	f.advance(time.Second)
	f.ended("k2")
	claimed := f.claimDeliveries(sendingTo())
	if len(claimed) != 2 {
		f.Fatalf("%d were claimed; want 2", len(claimed))
	}
	none := onejob.Delivery{ID: onejob.NewDeliveryID(7)}
	stale := claimed[0]
	stale.Tries = 5
	errs, err := f.outbox().DeliveryRecord(f.Context(), []onejob.DeliveryRecordParams{
		tried(none, onejob.DeliveryDelivered), tried(onejob.Delivery{ID: "nonsense"}, onejob.DeliveryDelivered), tried(stale, onejob.DeliveryDelivered),
		tried(claimed[0], "lost"), tried(claimed[0], onejob.DeliveryDelivered), tried(claimed[0], onejob.DeliveryFailed),
		tried(claimed[1], onejob.DeliveryPending),
	})
	f.noError(err)
	want := []onejob.Code{
		onejob.CodeNotFound, onejob.CodeNotFound, onejob.CodeClaimLost, onejob.CodeInvalidArgument, "", onejob.CodeClaimLost, "",
	}
	for i, err := range errs {
		if want[i] == "" {
			f.noError(err)
			continue
		}
		f.wantCode(err, want[i])
	}
	f.wantDelivery(claimed[0].ID, onejob.DeliveryDelivered)
	if d := f.wantDelivery(claimed[1].ID, onejob.DeliveryPending); d.Tries != 1 {
		f.Errorf("the row after the bad ones has %d tries; want 1", d.Tries)
	}
}

func testDeliveryResend(f *fixture) {
	for i, state := range onejob.DeliveryStates() {
		f.ended(fmt.Sprintf("k%d", i))
		d := f.claimDelivery()
		f.noError(f.record(tried(d, state)))
		f.advance(time.Minute)
		again := f.resend(d.ID)
		if again.ID != d.ID || again.State != onejob.DeliveryPending || again.Tries != 0 || again.Status != 0 || again.Error != "" ||
			!again.FinishedAt.IsZero() || !again.DueAt.After(d.CreatedAt) || !again.CreatedAt.Equal(d.CreatedAt) || again.Owner != owner {
			f.Errorf("a %s one resent is %+v; want it as new, under the same id and time", state, again)
		}
		claimed := f.claimDelivery()
		if claimed.ID != d.ID || claimed.Tries != 0 || string(claimed.Body) != `{"type":"test"}` {
			f.Errorf("the resent one is claimed as %+v; want the same body", claimed)
		}
		f.noError(f.record(tried(claimed, onejob.DeliveryDelivered)))
	}
}

// What a try that began before somebody asked for another one comes to says nothing
// of the one that was asked for.
func testDeliveryResendUnderWay(f *fixture) {
	for i, state := range onejob.DeliveryStates() {
		f.ended(fmt.Sprintf("k%d", i))
		before := f.claimDelivery()
		f.resend(before.ID)
		f.wantCode(f.record(tried(before, state)), onejob.CodeClaimLost)
		again := f.claimDelivery()
		if again.ID != before.ID {
			f.Fatalf("the resent delivery %s is not sent; claimed was %+v", before.ID, again)
		}
		f.resend(again.ID)
		f.wantCode(f.record(tried(again, state)), onejob.CodeClaimLost)
		f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryDelivered)))
		f.wantDelivery(before.ID, onejob.DeliveryDelivered)
	}
}

func testDeliveryResendAge(f *fixture) {
	d := f.ended("k1")
	f.advance(97 * time.Hour)
	f.claimDeliveries(givingUp())
	f.wantDelivery(d.ID, onejob.DeliveryFailed)
	f.resend(d.ID)
	f.advance(time.Hour)
	f.wantDeliveries("an hour after resending", f.claimDeliveries(givingUp()), d.ID)
}

func testDeliveryResendOwner(f *fixture) {
	d := f.ended("k1")
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryDelivered)))
	for _, p := range []onejob.DeliveryResendParams{
		{ID: d.ID, Owner: "bob"}, {ID: onejob.NewDeliveryID(d.Part)}, {ID: "nonsense"}, {},
	} {
		_, err := f.outbox().DeliveryResend(f.Context(), p)
		f.wantCode(err, onejob.CodeNotFound)
	}
	f.wantDelivery(d.ID, onejob.DeliveryDelivered)
	_, err := f.outbox().DeliveryResend(f.Context(), onejob.DeliveryResendParams{ID: d.ID, Owner: owner})
	f.noError(err)
	f.wantDelivery(d.ID, onejob.DeliveryPending)
}

func testDeliveryPages(f *fixture) {
	var newest []string
	for i := range 7 {
		d := f.ended(fmt.Sprintf("k%d", i))
		newest = append([]string{d.ID}, newest...)
		if i%3 == 0 {
			f.advance(time.Second)
		}
	}
	for _, d := range f.claimDeliveries(sendingTo()) {
		f.noError(f.record(tried(d, onejob.DeliveryDelivered)))
	}
	var got []onejob.Delivery
	p := onejob.DeliveryListParams{Limit: 2}
	for range 4 {
		page := f.deliveries(p)
		got = append(got, page.Deliveries...)
		if more := len(got) < 7; page.More != more {
			f.Fatalf("after %d of 7 there are more: %t", len(got), page.More)
		}
		last := got[len(got)-1]
		p.Before = &onejob.JobCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	for i, d := range got {
		if d.Body != nil {
			f.Errorf("the list shows the body of %s", d.ID)
		}
		if i > 0 && (d.CreatedAt.After(got[i-1].CreatedAt) || d.CreatedAt.Equal(got[i-1].CreatedAt) && d.ID > got[i-1].ID) {
			f.Errorf("%s of %s comes after %s of %s", d.ID, d.CreatedAt, got[i-1].ID, got[i-1].CreatedAt)
		}
	}
	ids := deliveryIDs(got)
	slices.Sort(ids)
	slices.Sort(newest)
	if !slices.Equal(ids, newest) {
		f.Errorf("the pages hold %q; want %q", ids, newest)
	}
}

func testDeliveryFilters(f *fixture) {
	mine := f.ended("k1")
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryFailed)))
	f.advance(time.Second)
	other := f.ended("k1", withOwner("bob"), func(p *onejob.JobCreateParams) { p.Webhooks[0].Endpoint = curious })
	for name, c := range map[string]struct {
		p    onejob.DeliveryListParams
		want []string
	}{
		"everybody's":         {onejob.DeliveryListParams{}, []string{other.ID, mine.ID}},
		"alice's":             {onejob.DeliveryListParams{Owner: owner}, []string{mine.ID}},
		"bob's":               {onejob.DeliveryListParams{Owner: "bob"}, []string{other.ID}},
		"nobody's":            {onejob.DeliveryListParams{Owner: "carol"}, nil},
		"a job's":             {onejob.DeliveryListParams{JobID: other.JobID}, []string{other.ID}},
		"another owner's job": {onejob.DeliveryListParams{JobID: other.JobID, Owner: owner}, nil},
		"no job's":            {onejob.DeliveryListParams{JobID: "nonsense"}, nil},
		"one":                 {onejob.DeliveryListParams{ID: mine.ID}, []string{mine.ID}},
		"another owner's one": {onejob.DeliveryListParams{ID: mine.ID, Owner: "bob"}, nil},
		"none":                {onejob.DeliveryListParams{ID: "nonsense"}, nil},
		"an endpoint's":       {onejob.DeliveryListParams{Endpoint: curious}, []string{other.ID}},
		"failed":              {onejob.DeliveryListParams{States: []onejob.DeliveryState{onejob.DeliveryFailed}}, []string{mine.ID}},
		"in no state":         {onejob.DeliveryListParams{States: []onejob.DeliveryState{"lost"}}, nil},
		"in two states": {onejob.DeliveryListParams{States: []onejob.DeliveryState{onejob.DeliveryFailed, onejob.DeliveryPending}},
			[]string{other.ID, mine.ID}},
	} {
		f.wantDeliveries(name, f.deliveries(c.p).Deliveries, c.want...)
	}
}

func testEndpointReason(f *fixture) {
	o := f.outbox()
	list := func() []onejob.DisabledEndpoint {
		disabled, err := o.EndpointDisabled(f.Context())
		f.noError(err)
		return disabled
	}
	if got := list(); len(got) != 0 {
		f.Fatalf("at first %v are disabled; want none", got)
	}
	f.noError(o.EndpointDisable(f.Context(), "ep_2", "it answered 410"))
	f.noError(o.EndpointDisable(f.Context(), "ep_1", "it answered 410"))
	since := list()[1].Since
	f.advance(time.Minute)
	f.noError(o.EndpointDisable(f.Context(), "ep_2", "again"))
	got := list()
	if len(got) != 2 || got[0].ID != "ep_1" || got[1].ID != "ep_2" || got[1].Reason != "it answered 410" || !got[1].Since.Equal(since) || since.IsZero() {
		f.Errorf("the disabled are %+v; want both by id, with the first reason and its time", got)
	}
	f.noError(o.EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: "ep_1", Actor: "olga"}))
	if got := list(); len(got) != 1 || got[0].ID != "ep_2" {
		f.Errorf("the disabled are %+v; want ep_2", got)
	}
}

func testPurgeTelling(f *fixture) {
	for i, state := range []onejob.DeliveryState{onejob.DeliveryDelivered, onejob.DeliveryFailed} {
		f.ended(fmt.Sprintf("k%d", i))
		f.advance(payloadAge + time.Second)
		d := f.claimDelivery()
		f.noError(f.record(tried(d, onejob.DeliveryPending)))
		if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 || f.get(d.JobID).Input == nil {
			f.Errorf("%d jobs were purged whose end was not told yet; want none", n)
		}
		f.advance(time.Hour)
		f.noError(f.record(tried(f.claimDelivery(), state)))
		if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 1 || !f.get(d.JobID).Purged() {
			f.Errorf("with the delivery %s %d jobs were purged; want 1", state, n)
		}
	}
}

func testPurgeDeliveries(f *fixture) {
	f.ended("k1")
	d := f.claimDelivery()
	f.noError(f.record(tried(d, onejob.DeliveryDelivered)))
	f.purgeAll()
	f.wantDelivery(d.ID, onejob.DeliveryDelivered)
	f.resend(d.ID)
	if again := f.claimDelivery(); again.Body != nil {
		f.Errorf("after the purge the body is %q; want it gone", again.Body)
	}
	f.advance(keyAge)
	shrink := onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge}
	if n := f.purge(shrink); n != 0 || len(f.get(d.JobID).Webhooks) == 0 {
		f.Errorf("%d tombstones shrank with a delivery pending; want none", n)
	}
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryDelivered)))
	if n := f.purge(shrink); n != 1 {
		f.Errorf("%d tombstones shrank; want 1", n)
	}
	if page := f.deliveries(onejob.DeliveryListParams{}); len(page.Deliveries) != 0 {
		f.Errorf("of a shrunk job the outbox still holds %+v", page.Deliveries)
	}
	_, err := f.outbox().DeliveryResend(f.Context(), onejob.DeliveryResendParams{ID: d.ID})
	f.wantCode(err, onejob.CodeNotFound)
}
