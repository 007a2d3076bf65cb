package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onejob-dev/onejob"
)

// What the database itself holds the outbox to. The statements are the same text
// for every SQL store.
func outboxConstraining() []promise {
	return []promise{
		{name: "Database/TheOutboxIsTheSameListOfEventsAsInGo", test: testSQLEvents},
		{name: "Database/HoldsTheOutboxToItsRules", test: testOutboxArbiter},
		{name: "Database/AnEndpointWithoutANameKeepsNoJobFromEnding", test: testNamelessEndpoint},
	}
}

// eventKinds are all that is ever written down.
func eventKinds() []onejob.EventKind {
	return []onejob.EventKind{
		onejob.EventReplayed, onejob.EventConflicted, onejob.EventBlocked, onejob.EventUnblocked, onejob.EventRaceLost, onejob.EventRuled,
		onejob.EventAsked, onejob.EventCancelAsked, onejob.EventDuplicateEffect, onejob.EventLateEffect, onejob.EventPurged,
	}
}

// testSQLEvents writes events of every kind behind the store's back: what they make
// is what the functions in Go say, and every webhook that is not the end of a job
// or the entry to unknown comes of one.
func testSQLEvents(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	job := f.create("k1", hooked)
	var want []string
	made := []onejob.WebhookEvent{onejob.WebhookAttemptUnknown}
	for _, kind := range eventKinds() {
		f.noError(f.Exec(fmt.Sprintf("INSERT INTO events (part, job_id, kind, at) SELECT part, id, '%s', created_at FROM jobs", kind)))
		if e, told := kind.Webhook(); told {
			want, made = append(want, asked(e)), append(made, e)
		}
		f.wantTold(job.ID, want...)
	}
	slices.Sort(made)
	all := askable()
	slices.Sort(all)
	if !slices.Equal(made, all) {
		f.Errorf("events make %q; want %q", made, all)
	}
	for i, e := range onejob.WebhookEvents() {
		statement := fmt.Sprintf(insertDelivery, i, "ep_other_"+fmt.Sprint(i), e)
		if err := f.Exec(statement); err != nil {
			f.Errorf("the database does not know the webhook %s: %v", e, err)
		}
	}
	if err := f.Exec(fmt.Sprintf(insertDelivery, 99, "ep_other", "job.started")); err == nil {
		f.Error("the database took a webhook that there is not")
	}
}

// insertDelivery makes one delivery of every job: a number, an endpoint, an event.
const insertDelivery = `INSERT INTO deliveries (part, id, job_id, endpoint, event, created_at, since, due_at)
	SELECT part, 'msg_%d', id, '%s', '%s', created_at, created_at, created_at FROM jobs`

func testOutboxArbiter(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	a := f.running("k1", told)
	f.finish(a, onejob.OutcomeSucceeded)
	before := f.deliveries(onejob.DeliveryListParams{})
	for name, statement := range map[string]string{
		"TheEndIsToldOnce":               fmt.Sprintf(insertDelivery, 1, plain, onejob.WebhookJobSucceeded),
		"ASecondEndIsNotToldEither":      fmt.Sprintf(insertDelivery, 2, plain, onejob.WebhookJobFailed),
		"WhatIsPendingIsDue":             "UPDATE deliveries SET due_at = NULL WHERE state = 'pending'",
		"WhatIsPendingIsNotFinished":     "UPDATE deliveries SET finished_at = since WHERE state = 'pending'",
		"WhatIsDeliveredHasATime":        "UPDATE deliveries SET state = 'delivered', due_at = NULL WHERE state = 'pending'",
		"WhatIsDeliveredIsNotDue":        "UPDATE deliveries SET state = 'delivered', finished_at = since WHERE state = 'pending'",
		"AStateIsOneOfTheKnown":          "UPDATE deliveries SET state = 'lost' WHERE state = 'pending'",
		"ADeliveryHasAnEndpoint":         "UPDATE deliveries SET endpoint = '' WHERE state = 'pending'",
		"ADeliveryIsOfAJob":              "UPDATE deliveries SET job_id = 'job_none' WHERE state = 'pending'",
		"AJobKeepsItsSubscribers":        "UPDATE jobs SET webhooks = '' WHERE purged_at IS NULL",
		"APurgeMakesNoSubscriber":        "UPDATE jobs SET webhooks = '[]', input = NULL, purged_at = created_at WHERE purged_at IS NULL",
		"SubscribersAreAListOfThem":      "INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token, kind, target, effect, lanes, policy, priority, supersedes, trace, created_at, input, webhooks) SELECT part, 'job_2', 'bob', key_hash, '', fingerprint, 1, '', kind, '', effect, lanes, policy, 0, '', '', created_at, input, '{}' FROM jobs",
		"SubscribersAreNotAnythingAtAll": "INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token, kind, target, effect, lanes, policy, priority, supersedes, trace, created_at, input, webhooks) SELECT part, 'job_3', 'bob', key_hash, '', fingerprint, 1, '', kind, '', effect, lanes, policy, 0, '', '', created_at, input, 'garbage' FROM jobs",
	} {
		f.Run(name, func(t *testing.T) {
			if err := f.Exec(statement); err == nil {
				t.Errorf("the database took %s", statement)
			}
		})
	}
	if after := f.deliveries(onejob.DeliveryListParams{}); fmt.Sprint(after) != fmt.Sprint(before) {
		f.Errorf("the outbox changed from\n%+v\nto\n%+v", before, after)
	}
}

func testNamelessEndpoint(f *fixture) {
	a := f.unknown("k1", func(p *onejob.JobCreateParams) {
		hooked(p)
		p.Webhooks = append(p.Webhooks, onejob.Subscription{Events: askable()})
	})
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
	f.wantTold(a.JobID, append(both(onejob.WebhookJobSucceeded), asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked))...)
}
