package onejob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// AuditEntry is one thing that a person did with power over an owner's jobs. The
// entries of one owner are a chain: each carries the hash of the one before, so
// that none can be changed, taken out or moved without every later hash changing.
type AuditEntry struct {
	Owner   string // whose jobs or keys it concerns; InstanceOwner: everybody's
	Seq     int64  // 1 for the owner's first
	At      time.Time
	Actor   string // who did it
	Action  AuditAction
	Subject string // id of the job, attempt, incident, key, webhook, endpoint, certificate or waiver; empty: the store
	Detail  string // the outcome and the reason given; no secret, no input, no result

	Prev []byte // Hash of the entry before; empty for the first
	Hash []byte // SHA-256 of Prev and the canonical form of all the rest
}

// AuditAction names what was done.
type AuditAction string

// What is written to the audit.
const (
	AuditResolve       AuditAction = "attempt.resolve" // a ruling
	AuditStart         AuditAction = "attempt.start"   // the fallback button
	AuditCancel        AuditAction = "job.cancel"
	AuditUnblock       AuditAction = "job.unblock"
	AuditIncidentClose AuditAction = "incident.close"
	AuditKeyCreate     AuditAction = "key.create"
	AuditKeyRevoke     AuditAction = "key.revoke"
	AuditResend        AuditAction = "webhook.resend"
	AuditEndpoint      AuditAction = "endpoint.enable"
	AuditDeclare       AuditAction = "restore.declare"
	AuditConfirm       AuditAction = "restore.confirm"

	AuditCertificateSuspend AuditAction = "certificate.suspend"
	AuditCertificateRevoke  AuditAction = "certificate.revoke"
	AuditWaiverGrant        AuditAction = "waiver.grant"
	AuditWaiverRevoke       AuditAction = "waiver.revoke"
)

// InstanceOwner is the owner in the audit of what concerns everybody's jobs. No
// credential can have it: an owner's name begins with no slash, and a sub-owner's
// with its parent's name.
const InstanceOwner = "/instance"

// MaxAuditText bounds each text of an entry, in bytes: what is longer is cut.
const MaxAuditText = 4096

// AuditHead is the end of an owner's chain. Kept elsewhere, it is an anchor: what
// the chain was up to there can no longer be changed without being found.
type AuditHead struct {
	Owner string
	Seq   int64
	At    time.Time // of the last entry
	Hash  []byte
}

// Head returns the chain's end with e as its last entry.
func (e *AuditEntry) Head() AuditHead {
	return AuditHead{Owner: e.Owner, Seq: e.Seq, At: e.At, Hash: e.Hash}
}

// NextAudit returns e as the entry that follows prev, whose zero value stands for
// an owner without entries. It sets Seq, Prev and Hash, cuts texts to what a store
// keeps, and never lets At be earlier than prev's. e.At must be as exact as the
// store keeps it, and no more.
func NextAudit(prev AuditHead, e AuditEntry) AuditEntry {
	e.Seq, e.Prev = prev.Seq+1, bytes.Clone(prev.Hash)
	if e.At.Before(prev.At) {
		e.At = prev.At
	}
	e.At = e.At.UTC()
	e.Actor, e.Subject, e.Detail = auditText(e.Actor), auditText(e.Subject), auditText(e.Detail)
	e.Hash = e.sum()
	return e
}

// auditText is text as every store can keep it.
func auditText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) <= MaxAuditText {
		return s
	}
	cut := MaxAuditText - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// auditForm is what of an entry is hashed, as JSON. Its members are never renamed.
type auditForm struct {
	Action  AuditAction `json:"action"`
	Actor   string      `json:"actor"`
	At      string      `json:"at"` // RFC 3339, in UTC, with no more digits than it needs
	Detail  string      `json:"detail"`
	Owner   string      `json:"owner"`
	Seq     int64       `json:"seq"`
	Subject string      `json:"subject"`
}

// sum hashes what came before and the canonical form of the entry. An entry that
// has none (a text that is no UTF-8) cannot have been written by us: nil, which
// equals no hash.
func (e *AuditEntry) sum() []byte {
	plain, err := json.Marshal(auditForm{
		Action: e.Action, Actor: e.Actor, At: e.At.UTC().Format(time.RFC3339Nano), Detail: e.Detail,
		Owner: e.Owner, Seq: e.Seq, Subject: e.Subject,
	})
	if err != nil || !utf8.ValidString(e.Actor+e.Detail+e.Owner+e.Subject+string(e.Action)) {
		return nil
	}
	canonical, err := Canonical(plain)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(append(bytes.Clone(e.Prev), canonical...))
	return sum[:]
}

// AuditAnchor is a head that a chain must have had, and where that is known from.
type AuditAnchor struct {
	AuditHead
	From string // for people, as in "the anchor file"
}

// AuditFault is the first thing that is wrong with an owner's chain.
type AuditFault struct {
	Owner string
	Seq   int64 // of the entry that is wrong, or missing
	What  string
}

// Error says what is wrong with which entry.
func (f AuditFault) Error() string {
	return fmt.Sprintf("owner %q, entry %d: %s", f.Owner, f.Seq, f.What)
}

// VerifyAudit recomputes chains. entries come one owner after another, each
// oldest first. It returns the heads of the chains as far as they hold, and the
// first fault of each that does not. A chain that was cut at its end holds in
// itself: only an anchor tells.
//
// It keeps one head and the anchors of each owner, and no entry.
func VerifyAudit(entries iter.Seq2[AuditEntry, error], anchors []AuditAnchor) ([]AuditHead, []AuditFault, error) {
	v := auditVerifier{anchors: map[string][]AuditAnchor{}}
	for _, a := range anchors {
		v.anchors[a.Owner] = append(v.anchors[a.Owner], a)
	}
	for e, err := range entries {
		if err != nil {
			return nil, nil, err
		}
		v.next(&e)
	}
	v.endChain()
	for _, a := range anchors { // owners of whom nothing is left
		if a.Seq > 0 && len(v.anchors[a.Owner]) > 0 {
			delete(v.anchors, a.Owner)
			v.faults = append(v.faults, AuditFault{Owner: a.Owner, Seq: 1, What: fmt.Sprintf("it is missing with all that followed; %s knows of %d", a.From, a.Seq)})
		}
	}
	return v.heads, v.faults, nil
}

// auditVerifier is how far a verification has come.
type auditVerifier struct {
	anchors map[string][]AuditAnchor // of owners whose chain has not ended
	head    AuditHead
	broken  bool // the chain of head: what follows tells nothing more
	heads   []AuditHead
	faults  []AuditFault
}

func (v *auditVerifier) next(e *AuditEntry) {
	if e.Owner != v.head.Owner || v.head.Seq == 0 {
		v.endChain()
		v.head, v.broken = AuditHead{Owner: e.Owner}, false
	}
	if v.broken {
		return
	}
	if fault := v.judge(e); fault != "" {
		v.broken = true
		seq := v.head.Seq + 1
		v.faults = append(v.faults, AuditFault{Owner: e.Owner, Seq: seq, What: fault})
		if v.head.Seq == 0 {
			v.head.Seq = seq // the chain has begun, though with nothing that holds
		}
		return
	}
	v.head = e.Head()
}

// judge says what is wrong with the entry that comes after v.head.
func (v *auditVerifier) judge(e *AuditEntry) string {
	switch want := v.head.Seq + 1; {
	case e.Seq != want:
		return fmt.Sprintf("it is missing; entry %d is in its place", e.Seq)
	case !bytes.Equal(e.Prev, v.head.Hash):
		return "it does not follow on the entry before"
	case !bytes.Equal(e.Hash, e.sum()):
		return "it was changed: its hash is of something else"
	case e.At.Before(v.head.At):
		return "it is earlier than the entry before"
	}
	for _, a := range v.anchors[e.Owner] {
		if a.Seq == e.Seq && !bytes.Equal(a.Hash, e.Hash) {
			return fmt.Sprintf("it was changed, with all that followed: %s has hash %s", a.From, hex.EncodeToString(a.Hash))
		}
	}
	return ""
}

// endChain closes the chain of v.head: it must reach as far as every anchor.
func (v *auditVerifier) endChain() {
	if v.head.Seq == 0 {
		return
	}
	owned := v.anchors[v.head.Owner]
	delete(v.anchors, v.head.Owner)
	if v.broken {
		return
	}
	v.heads = append(v.heads, v.head)
	for _, a := range owned {
		if a.Seq > v.head.Seq {
			v.faults = append(v.faults, AuditFault{
				Owner: v.head.Owner, Seq: v.head.Seq + 1,
				What: fmt.Sprintf("it is missing with all that followed; %s knows of %d", a.From, a.Seq),
			})
			return
		}
	}
}

// AuditStore keeps the audit. Every store implements it, and writes entries
// itself, in the transaction that does what they tell. Nothing changes or removes
// one.
type AuditStore interface {
	// AuditList reads one page of entries.
	AuditList(ctx context.Context, params AuditListParams) (AuditPage, error)
	// AuditHeads reads the end of one owner's chain, or with an empty owner of
	// every chain, by owner.
	AuditHeads(ctx context.Context, owner string) ([]AuditHead, error)
}

// AuditOrder is the order of a list of entries.
type AuditOrder int

const (
	// AuditNewestFirst : as people read it. Of one owner the order is that of the chain.
	AuditNewestFirst AuditOrder = iota
	// AuditByChain : one owner after another, each oldest first, as [VerifyAudit]
	// wants it.
	AuditByChain
)

// AuditListParams picks entries. Zero members do not filter.
type AuditListParams struct {
	Owner string
	Order AuditOrder
	After *AuditCursor // the last entry of the page before
	Limit int          // 1 to 200
}

// AuditCursor is a place in a list of entries.
type AuditCursor struct {
	At    time.Time
	Owner string
	Seq   int64
}

// Cursor returns the place of e.
func (e *AuditEntry) Cursor() *AuditCursor { return &AuditCursor{At: e.At, Owner: e.Owner, Seq: e.Seq} }

// AuditPage is one page of entries. More is set when others follow.
type AuditPage struct {
	Entries []AuditEntry
	More    bool
}

// AuditChains reads the chains of one owner, or of all, as [VerifyAudit] wants
// them, page by page.
func AuditChains(ctx context.Context, store AuditStore, owner string) iter.Seq2[AuditEntry, error] {
	return func(yield func(AuditEntry, error) bool) {
		p := AuditListParams{Owner: owner, Order: AuditByChain, Limit: 200}
		for {
			page, err := store.AuditList(ctx, p)
			if err != nil {
				yield(AuditEntry{}, err)
				return
			}
			for i := range page.Entries {
				if !yield(page.Entries[i], nil) {
					return
				}
			}
			if !page.More || len(page.Entries) == 0 {
				return
			}
			p.After = page.Entries[len(page.Entries)-1].Cursor()
		}
	}
}

// Audit returns one page of the audit, newest first unless the order says
// otherwise. An empty Owner lists everybody's.
func (c *Client) Audit(ctx context.Context, p AuditListParams) (AuditPage, error) {
	store, ok := c.store.(AuditStore)
	if !ok {
		return AuditPage{}, &Error{Code: CodeInternal, Message: "the store keeps no audit"}
	}
	page, err := store.AuditList(ctx, p)
	return page, Unavailable(err)
}
