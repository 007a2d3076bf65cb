package storetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

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
