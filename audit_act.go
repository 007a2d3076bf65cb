package onejob

import (
	"cmp"
	"fmt"
	"time"
)

// What the audit is told of each act, so that every store tells the same. The
// store adds the time and the place in the chain.

// AuditOf is a ruling about an attempt of owner's: what was ruled, and the
// evidence given. A result given by hand is not in it.
func (p *AttemptResolveParams) AuditOf(owner string) AuditEntry {
	detail := string(p.Outcome)
	if p.AcknowledgeRisk {
		detail += " (risk acknowledged)"
	}
	return AuditEntry{Owner: owner, Actor: p.Actor, Action: AuditResolve, Subject: p.ID, Detail: detail + ": " + p.Evidence}
}

// AuditOf is a job of owner's that was let go on.
func (p *JobUnblockParams) AuditOf(owner string) AuditEntry {
	return AuditEntry{Owner: owner, Actor: p.Actor, Action: AuditUnblock, Subject: p.ID, Detail: p.Reason}
}

// AuditOf is a job of owner's that is to be given up. It reports false when no
// person asked: the machine's own doings are events.
func (p *JobCancelParams) AuditOf(owner string) (AuditEntry, bool) {
	return AuditEntry{Owner: owner, Actor: p.Actor, Action: AuditCancel, Subject: p.ID}, p.Actor != ""
}

// AuditOf is a press of the fallback button that started a. It reports false for
// a racing lane, which the machine starts.
func (p *AttemptStartParams) AuditOf(owner string, a *Attempt) (AuditEntry, bool) {
	return AuditEntry{
		Owner: owner, Actor: p.Actor, Action: AuditStart, Subject: a.ID,
		Detail: "job " + p.JobID + " at target " + a.Target,
	}, len(p.RequestKeyHash) > 0
}

// AuditOf is an incident of owner's that was closed.
func (p *IncidentCloseParams) AuditOf(owner string) AuditEntry {
	return AuditEntry{Owner: owner, Actor: p.Actor, Action: AuditIncidentClose, Subject: p.ID, Detail: p.Note}
}

// AuditOf is a key that was made: who may now do what.
func (p *KeyCreateParams) AuditOf() AuditEntry {
	detail := "role " + string(p.Key.Role)
	if p.Key.ActAs {
		detail += ", may act for sub-owners"
	}
	return AuditEntry{Owner: p.Key.Owner, Actor: p.Actor, Action: AuditKeyCreate, Subject: p.Key.ID, Detail: detail}
}

// AuditOf is a key of owner's that was revoked.
func (p *KeyRevokeParams) AuditOf(owner string) AuditEntry {
	return AuditEntry{Owner: owner, Actor: p.Actor, Action: AuditKeyRevoke, Subject: p.ID}
}

// AuditOf is a webhook about a job of d's owner that is sent again.
func (p *DeliveryResendParams) AuditOf(d *Delivery) AuditEntry {
	return AuditEntry{
		Owner: d.Owner, Actor: p.Actor, Action: AuditResend, Subject: d.ID,
		Detail: string(d.Event) + " of job " + d.JobID + " to endpoint " + d.Endpoint,
	}
}

// AuditOf is an endpoint that was disabled for a reason and is sent webhooks again.
func (p *EndpointEnableParams) AuditOf(reason string) AuditEntry {
	return AuditEntry{
		Owner: cmp.Or(p.Owner, InstanceOwner), Actor: p.Actor, Action: AuditEndpoint, Subject: p.ID,
		Detail: "it was disabled: " + reason,
	}
}

// AuditOf is a store that a person said was restored. It reports false when a node
// found out by itself: the machine's own doings are in its log.
func (p *RestoreDeclareParams) AuditOf(now Generation) (AuditEntry, bool) {
	return AuditEntry{
		Owner: InstanceOwner, Actor: p.Actor, Action: AuditDeclare, Detail: fmt.Sprintf("generation %d", now.Number),
	}, p.Actor != ""
}

// AuditOfConfirm is the restored store g that actor let take work again.
func (g Generation) AuditOfConfirm(actor string) AuditEntry {
	return AuditEntry{
		Owner: InstanceOwner, Actor: actor, Action: AuditConfirm,
		Detail: fmt.Sprintf("generation %d, found restored at %s", g.Number, g.RestoredAt.UTC().Format(time.RFC3339)),
	}
}
