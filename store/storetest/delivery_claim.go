package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

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
