package storetest

import (
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Endpoints of the suite's own world.
const (
	plain   = "ep_plain"   // is told how a job ends
	curious = "ep_curious" // asks for everything
)

// hooked has both endpoints told about a job.
func hooked(p *onejob.JobCreateParams) {
	p.Webhooks = []onejob.Subscription{{Endpoint: plain}, {Endpoint: curious, Events: askable()}}
}

// told has only the end of a job told, to one endpoint.
func told(p *onejob.JobCreateParams) { p.Webhooks = []onejob.Subscription{{Endpoint: plain}} }

// askable are the events that only those are told who ask.
func askable() []onejob.WebhookEvent {
	return slices.DeleteFunc(onejob.WebhookEvents(), onejob.WebhookEvent.Terminal)
}

// outbox returns the first handle's deliveries.
func (f *fixture) outbox() onejob.DeliveryStore {
	f.Helper()
	d, ok := f.s.(onejob.DeliveryStore)
	if !ok {
		f.Fatal("the store is no onejob.DeliveryStore")
	}
	return d
}

func (f *fixture) deliveries(p onejob.DeliveryListParams) onejob.DeliveryPage {
	f.Helper()
	if p.Limit == 0 {
		p.Limit = 200
	}
	page, err := f.outbox().DeliveryList(f.Context(), p)
	f.noError(err)
	return page
}

// wantTold checks what the outbox holds about a job: "endpoint event", in any order.
func (f *fixture) wantTold(jobID string, want ...string) {
	f.Helper()
	var got []string
	for _, d := range f.deliveries(onejob.DeliveryListParams{JobID: jobID}).Deliveries {
		got = append(got, d.Endpoint+" "+string(d.Event))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.Errorf("the outbox holds\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// both is an event told to both endpoints.
func both(e onejob.WebhookEvent) []string { return []string{plain + " " + string(e), asked(e)} }

// asked is an event told to the one that asks for it.
func asked(e onejob.WebhookEvent) string { return curious + " " + string(e) }
