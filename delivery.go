package onejob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// WebhookEvent names what a webhook tells. It is the type member of its body.
type WebhookEvent string

// The events of webhooks. Every subscriber is told how a job ended, once; the
// others are for those who ask.
const (
	WebhookJobSucceeded    WebhookEvent = "job.succeeded"
	WebhookJobFailed       WebhookEvent = "job.failed"
	WebhookJobCancelled    WebhookEvent = "job.cancelled"
	WebhookJobBlocked      WebhookEvent = "job.blocked"                 // [EventBlocked]
	WebhookAttemptUnknown  WebhookEvent = "attempt.unknown"             // an attempt entered unknown
	WebhookAttemptAsked    WebhookEvent = "attempt.asked"               // [EventAsked]
	WebhookDuplicateEffect WebhookEvent = "incident.duplicate_effect"   // [EventDuplicateEffect]
	WebhookLateEffect      WebhookEvent = "incident.effect_after_close" // [EventLateEffect]
)

// WebhookEvents lists every event, those that end a job first.
func WebhookEvents() []WebhookEvent {
	return []WebhookEvent{
		WebhookJobSucceeded, WebhookJobFailed, WebhookJobCancelled,
		WebhookJobBlocked, WebhookAttemptUnknown, WebhookAttemptAsked, WebhookDuplicateEffect, WebhookLateEffect,
	}
}

// Terminal reports whether the event ends a job.
func (e WebhookEvent) Terminal() bool {
	return e == WebhookJobSucceeded || e == WebhookJobFailed || e == WebhookJobCancelled
}

// Webhook returns the event that subscribers who ask are told of when e is written
// down about a job. It reports false for what no webhook tells.
func (k EventKind) Webhook() (WebhookEvent, bool) {
	switch k {
	case EventBlocked:
		return WebhookJobBlocked, true
	case EventAsked:
		return WebhookAttemptAsked, true
	case EventDuplicateEffect:
		return WebhookDuplicateEffect, true
	case EventLateEffect:
		return WebhookLateEffect, true
	case EventReplayed, EventConflicted, EventUnblocked, EventRaceLost, EventRuled, EventCancelAsked, EventPurged:
	}
	return "", false
}

// Webhook returns the event that ends a job in state s. It reports false for a
// state that is not terminal.
func (s JobState) Webhook() (WebhookEvent, bool) {
	switch s {
	case JobSucceeded:
		return WebhookJobSucceeded, true
	case JobFailed:
		return WebhookJobFailed, true
	case JobCancelled:
		return WebhookJobCancelled, true
	case JobQueued, JobRunning, JobBlocked:
	}
	return "", false
}

// Subscription is an endpoint that is told about one job. Subscriptions are pinned
// when the job is created: changing the configuration does not change them.
type Subscription struct {
	Endpoint string `json:"endpoint"` // its id; what stands at that id is the sender's to know
	// Events beyond the end of the job, which every subscriber is told.
	Events []WebhookEvent `json:"events,omitempty"`
}

// Wants reports whether the subscriber is told of e.
func (s Subscription) Wants(e WebhookEvent) bool { return e.Terminal() || slices.Contains(s.Events, e) }

// EncodeSubscriptions returns what a store keeps in jobs.webhooks: JSON, or the
// empty string for none.
func EncodeSubscriptions(subscriptions []Subscription) string {
	if len(subscriptions) == 0 {
		return ""
	}
	text, _ := json.Marshal(subscriptions) // strings always can
	return string(text)
}

// DecodeSubscriptions is the inverse of [EncodeSubscriptions].
func DecodeSubscriptions(text string) (subscriptions []Subscription, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &subscriptions)
	return subscriptions, err
}

// Delivery is one webhook to one endpoint: a row of the outbox. The transaction
// that changes a job writes it, so it exists exactly if the change does.
type Delivery struct {
	Part uint8
	// ID is the webhook-id that every try carries.
	ID        string
	JobID     string
	AttemptID string // empty when it concerns no attempt
	Owner     string // of the job
	Endpoint  string
	Event     WebhookEvent
	State     DeliveryState

	Tries  int    // made so far
	Resent int    // how often it was resent; tries are counted anew each time
	Status int    // HTTP status of the last try; zero: none came
	Error  string // of the last try, free of secrets and URLs; empty: none
	// Body is what the first try sent; every later one sends the same bytes. Nil
	// until a try was recorded. Lists leave it out.
	Body []byte

	CreatedAt  time.Time
	DueAt      time.Time // of the next try, while pending
	FinishedAt time.Time // delivered or given up
}

const deliveryPrefix = "msg_"

// NewDeliveryID returns an id for a delivery about a job of the given part: two
// hexadecimal digits of part, and 32 random ones. Stores make the same in SQL.
func NewDeliveryID(part uint8) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return fmt.Sprintf("%s%02x%x", deliveryPrefix, part, b)
}

// PartOfDeliveryID returns the part that a delivery's id carries. It reports false
// for anything that is not such an id.
func PartOfDeliveryID(id string) (part uint8, ok bool) {
	rest, isDelivery := strings.CutPrefix(id, deliveryPrefix)
	b, err := hex.DecodeString(rest)
	if !isDelivery || err != nil || len(b) != 17 || rest != strings.ToLower(rest) {
		return 0, false
	}
	return b[0], true
}

// DeliveryState is where a delivery stands.
type DeliveryState string

const (
	// DeliveryPending : a try is due, or will be.
	DeliveryPending DeliveryState = "pending"
	// DeliveryDelivered : the endpoint answered with a 2xx status. Terminal, unless resent.
	DeliveryDelivered DeliveryState = "delivered"
	// DeliveryFailed : given up. Terminal, unless resent.
	DeliveryFailed DeliveryState = "failed"
)

// DeliveryStates lists every state.
func DeliveryStates() []DeliveryState {
	return []DeliveryState{DeliveryPending, DeliveryDelivered, DeliveryFailed}
}

// DeliveryStore keeps the outbox. Every store implements it.
//
// The rows are written by the store itself, in the transaction that changes a job
// with subscriptions: one for its end, ever, and one for each [JobEvent] and each
// attempt entering unknown that a subscriber asked for. A job with a pending
// delivery is not purged.
type DeliveryStore interface {
	// DeliveryClaim takes pending deliveries that are due, longest due first. Nobody
	// else is given them before Lease has passed. Those of an endpoint that is
	// disabled wait. Those older than GiveUpAfter become failed, whoever's they are.
	DeliveryClaim(ctx context.Context, params DeliveryClaimParams) ([]Delivery, error)
	// DeliveryRecord writes tries down, each by compare-and-swap on the numbers of
	// tries and of resendings that were claimed. It returns one error a row: nil,
	// [ErrClaimLost] for a delivery that somebody else recorded, or that was resent
	// while the try was under way: that is still to be sent; [ErrNotFound].
	DeliveryRecord(ctx context.Context, params []DeliveryRecordParams) ([]error, error)
	// DeliveryList reads one page, newest first, without bodies.
	DeliveryList(ctx context.Context, params DeliveryListParams) (DeliveryPage, error)
	// DeliveryResend makes a delivery due now under the same id, whatever its state,
	// with its tries counted anew. It returns the delivery as it is then.
	DeliveryResend(ctx context.Context, params DeliveryResendParams) (Delivery, error)

	// EndpointDisable keeps an endpoint from being sent anything until it is enabled.
	// It is safe to repeat; the first reason stays.
	EndpointDisable(ctx context.Context, id, reason string) error
	// EndpointEnable is safe to repeat; of one that is not disabled it is a no-op,
	// and not in the audit.
	EndpointEnable(ctx context.Context, params EndpointEnableParams) error
	// EndpointDisabled lists the endpoints that are disabled.
	EndpointDisabled(ctx context.Context) ([]DisabledEndpoint, error)
}

// DeliveryClaimParams says what a sender can send.
type DeliveryClaimParams struct {
	Endpoints []string // those it knows and has room for
	Lease     time.Duration
	Max       int // at most so many; zero or less claims nothing
	// GiveUpAfter is the age, since creation or resending, of a delivery that is
	// given up. Zero: none is.
	GiveUpAfter time.Duration
}

// DeliveryRecordParams is one try.
type DeliveryRecordParams struct {
	ID     string
	Tries  int // as claimed, this try not counted
	Resent int // as claimed

	// State is where it stands now: delivered, failed, or pending and due After.
	State  DeliveryState
	After  time.Duration
	Status int
	Error  string
	Body   []byte // kept if there is none yet
}

// CheckDeliveryRecord refuses what says of no try what became of it.
func CheckDeliveryRecord(p *DeliveryRecordParams) error {
	if !slices.Contains(DeliveryStates(), p.State) || p.Tries < 0 {
		return &Error{
			Code: CodeInvalidArgument, Message: fmt.Sprintf("a try after %d others cannot leave a delivery %q", p.Tries, p.State),
		}
	}
	return nil
}

// ErrorOfLostDelivery is the answer to a record of a delivery that somebody else
// recorded, resent or gave up since it was claimed.
func ErrorOfLostDelivery(p *DeliveryRecordParams) error {
	return &Error{
		Code: CodeClaimLost, Message: fmt.Sprintf("delivery %s does not wait for try %d any more", p.ID, p.Tries+1),
	}
}

// GivenUp is the error of a delivery that was given up at an age. What its last try
// ended in follows after a colon, if anything was tried.
func GivenUp(age time.Duration) string { return "given up after " + age.String() }

// DeliveryListParams filters a list. Zero members do not filter.
type DeliveryListParams struct {
	ID       string
	Owner    string
	JobID    string
	Endpoint string
	States   []DeliveryState
	Before   *JobCursor // by (CreatedAt, ID)
	Limit    int        // 1 to 200
}

// DeliveryPage is one page of deliveries. More is set when there are older ones.
type DeliveryPage struct {
	Deliveries []Delivery
	More       bool
}

// DeliveryResendParams names a delivery and who asks. Another owner's is [ErrNotFound].
type DeliveryResendParams struct {
	ID    string
	Owner string // empty: any
	Actor string
}

// EndpointEnableParams names an endpoint and who lets it be sent webhooks again.
type EndpointEnableParams struct {
	ID    string
	Owner string // in whose audit it is written; empty: [InstanceOwner]'s
	Actor string
}

// DisabledEndpoint is an endpoint that is not sent anything.
type DisabledEndpoint struct {
	ID     string
	Reason string
	Since  time.Time
}
