package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

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
		"in two states": {
			onejob.DeliveryListParams{States: []onejob.DeliveryState{onejob.DeliveryFailed, onejob.DeliveryPending}},
			[]string{other.ID, mine.ID},
		},
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
