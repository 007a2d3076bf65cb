package onejob_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

func TestADeliverysIDCarriesItsPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Uint8().Draw(t, "part")
		id := onejob.NewDeliveryID(part)
		if got, ok := onejob.PartOfDeliveryID(id); got != part || !ok {
			t.Fatalf("id %q carries part %d, %t; want %d", id, got, ok, part)
		}
	})
}

func TestPartOfDeliveryIDRefusesGarbage(t *testing.T) {
	t.Parallel()
	good := onejob.NewDeliveryID(7)
	for _, id := range []string{"", "msg_", good[4:], strings.ToUpper(good), "msg_" + strings.ToUpper(good[4:36]) + "AB", good[:len(good)-2], good + "00", "job_" + good[4:], good[:10] + "zz" + good[12:]} {
		if part, ok := onejob.PartOfDeliveryID(id); ok {
			t.Errorf("%q is taken for the id of a delivery of part %d", id, part)
		}
	}
}

func TestEverySubscriberIsToldTheEndAndOnlyWhoAsksTheRest(t *testing.T) {
	t.Parallel()
	silent := onejob.Subscription{Endpoint: "ep_1"}
	curious := onejob.Subscription{Endpoint: "ep_2", Events: []onejob.WebhookEvent{onejob.WebhookAttemptUnknown}}
	for _, e := range onejob.WebhookEvents() {
		if got, want := silent.Wants(e), e.Terminal(); got != want {
			t.Errorf("who asks for nothing wants %s: %t; want %t", e, got, want)
		}
		if got, want := curious.Wants(e), e.Terminal() || e == onejob.WebhookAttemptUnknown; got != want {
			t.Errorf("who asks for attempt.unknown wants %s: %t; want %t", e, got, want)
		}
	}
}

func TestExactlyTheStatesThatEndAJobAreWebhooks(t *testing.T) {
	t.Parallel()
	for _, s := range onejob.JobStates() {
		if e, ok := s.Webhook(); ok != s.Terminal() || ok && !e.Terminal() {
			t.Errorf("%s is told as %q, %t", s, e, ok)
		}
	}
}

func TestSubscriptionsSurviveTheirText(t *testing.T) {
	t.Parallel()
	for _, subs := range [][]onejob.Subscription{
		nil,
		{{Endpoint: "ep_1"}},
		{{Endpoint: "ep_1"}, {Endpoint: "ep_2", Events: slices.Clone(onejob.WebhookEvents()[3:])}},
	} {
		got, err := onejob.DecodeSubscriptions(onejob.EncodeSubscriptions(subs))
		if diff := cmp.Diff(subs, got); diff != "" || err != nil {
			t.Errorf("%v comes back changed, %v (-want +got):\n%s", subs, err, diff)
		}
	}
}

func TestAJobIsToldToTheEndpointsOfItsOwner(t *testing.T) {
	t.Parallel()
	subscribe := func(owner, url string) ([]onejob.Subscription, *onejob.Error) {
		if url == "https://nowhere.example" {
			return nil, &onejob.Error{Code: onejob.CodeInvalidJob, Message: "no such endpoint"}
		}
		return []onejob.Subscription{{Endpoint: "ep_of_" + owner}}, nil
	}
	w := newWorld(t, func(_ *world, o *onejob.Options) { o.SubscribeFunc = subscribe })
	intent := onejob.SubmitParams{Owner: "alice", Key: "k1", Kind: "draw", Input: []byte("1")}
	job, _ := w.submit(intent)
	if diff := cmp.Diff([]onejob.Subscription{{Endpoint: "ep_of_alice"}}, job.Webhooks); diff != "" {
		t.Errorf("the job's subscriptions (-want +got):\n%s", diff)
	}
	intent.Webhook = "https://nowhere.example"
	if again, existed := w.submit(intent); !existed || again.ID != job.ID {
		t.Errorf("a repeat with another webhook answers job %s, existed %t; want %s: the webhook is no part of the intent", again.ID, existed, job.ID)
	}
	intent.Key = "k2"
	_, _, err := w.client.Submit(t.Context(), intent)
	wantCode(t, err, onejob.CodeInvalidJob)
}
