package storetest

import (
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

// auditTelling are the acts that concern no job's state: webhooks and the store.
func auditTelling() []promise {
	return []promise{
		{name: "Audit/TellsOfAWebhookSentAgain", test: testAuditResend},
		{name: "Audit/TellsOfAnEndpointThatIsEnabledAndOnce", test: testAuditEndpoint},
		{name: "Audit/TellsOfARestoreThatAPersonDeclares", test: testAuditDeclare},
		{name: "Audit/TellsOfARestoreThatIsConfirmedAndOnce", test: testAuditConfirm},
		{name: "Audit/NoWebhookAndNoRestoreThatItDoesNotTell", test: testAuditToldAtomic},
	}
}

func testAuditResend(f *fixture) {
	d := f.ended("k1", withOwner("bob"))
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryDelivered)))
	_, err := f.outbox().DeliveryResend(f.Context(), onejob.DeliveryResendParams{ID: d.ID, Owner: owner, Actor: "mallory"})
	f.wantCode(err, onejob.CodeNotFound)
	f.resend(d.ID)
	f.wantEntries("bob",
		onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: d.JobID},
		onejob.AuditEntry{
			Actor: "olga", Action: onejob.AuditResend, Subject: d.ID,
			Detail: "job.cancelled of job " + d.JobID + " to endpoint " + plain,
		},
	)
	f.wantEntries(owner)
}

func testAuditEndpoint(f *fixture) {
	for range 2 {
		f.noError(f.outbox().EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: plain, Owner: owner, Actor: "olga"}))
	}
	f.wantEntries(owner)
	for _, of := range []string{owner, ""} {
		f.noError(f.outbox().EndpointDisable(f.Context(), plain, "it answered 410"))
		for range 2 {
			f.noError(f.outbox().EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: plain, Owner: of, Actor: "olga"}))
		}
	}
	enabled := onejob.AuditEntry{Actor: "olga", Action: onejob.AuditEndpoint, Subject: plain, Detail: "it was disabled: it answered 410"}
	f.wantEntries(owner, enabled)
	f.wantEntries(onejob.InstanceOwner, enabled)
}

// declare says that somebody has seen a higher number; without an actor it is a node.
func (f *fixture) declare(actor string) (onejob.Generation, error) {
	f.Helper()
	return f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: f.generation().Number + 7, Actor: actor})
}

func testAuditDeclare(f *fixture) {
	_, err := f.declare("")
	f.noError(err)
	f.wantEntries(onejob.InstanceOwner)
	g, err := f.declare("olga")
	f.noError(err)
	_, err = f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: g.Number, Actor: "otto"})
	f.noError(err)
	f.wantEntries(onejob.InstanceOwner, onejob.AuditEntry{
		Actor: "olga", Action: onejob.AuditDeclare, Detail: fmt.Sprintf("generation %d", g.Number),
	})
}

func testAuditConfirm(f *fixture) {
	f.create("k1")
	g := f.restored()
	_, err := f.restores().RestoreConfirm(f.Context(), "too early")
	f.wantCode(err, onejob.CodeRestoreUnconfirmed)
	f.hold()
	f.confirm()
	f.confirm()
	f.wantEntries(onejob.InstanceOwner, onejob.AuditEntry{
		Actor: "olga", Action: onejob.AuditConfirm,
		Detail: fmt.Sprintf("generation %d, found restored at %s", g.Number, g.RestoredAt.UTC().Format(time.RFC3339)),
	})
}

// testAuditToldAtomic takes the audit away, as testAuditAtomic does.
func testAuditToldAtomic(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	d := f.ended("k1")
	f.noError(f.record(tried(f.claimDelivery(), onejob.DeliveryDelivered)))
	f.noError(f.outbox().EndpointDisable(f.Context(), plain, "it answered 410"))
	f.noError(f.Exec("ALTER TABLE audit RENAME TO audit_gone"))
	if _, err := f.outbox().DeliveryResend(f.Context(), onejob.DeliveryResendParams{ID: d.ID, Actor: "olga"}); err == nil {
		f.Error("a webhook was resent without the audit")
	}
	if err := f.outbox().EndpointEnable(f.Context(), onejob.EndpointEnableParams{ID: plain, Actor: "olga"}); err == nil {
		f.Error("an endpoint was enabled without the audit")
	}
	was := f.generation()
	if _, err := f.declare("olga"); err == nil || f.generation() != was {
		f.Errorf("without the audit a restore was declared: %v, the store is %+v; want %+v", err, f.generation(), was)
	}
	g := f.restored()
	f.hold()
	if _, err := f.restores().RestoreConfirm(f.Context(), "olga"); err == nil || f.generation() != g {
		f.Errorf("without the audit a restore was confirmed: %v, the store is %+v; want %+v", err, f.generation(), g)
	}
	f.noError(f.Exec("ALTER TABLE audit_gone RENAME TO audit"))
	f.wantDelivery(d.ID, onejob.DeliveryDelivered)
	if disabled, err := f.outbox().EndpointDisabled(f.Context()); err != nil || len(disabled) != 1 {
		f.Errorf("%v are disabled, %v; want %s", disabled, err, plain)
	}
	f.wantEntries(onejob.InstanceOwner)
}
