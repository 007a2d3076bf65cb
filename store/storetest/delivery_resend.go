package storetest

import (
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

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
