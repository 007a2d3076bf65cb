package httpapi

import (
	"bytes"
	"cmp"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// Bounds of a claim.
const (
	maxClaim      = 32 // inputs are up to a megabyte each
	maxClaimKinds = 100
	minLease      = time.Second
	maxLease      = time.Hour
)

// ClaimRequest asks for attempts to work on.
type ClaimRequest struct {
	Kinds   []string `json:"kinds" nullable:"false" minItems:"1" maxItems:"100" doc:"The kinds that the worker can do"`
	Max     int      `json:"max" minimum:"1" maximum:"32" doc:"How many at most"`
	LeaseMS int64    `json:"lease_ms" minimum:"1000" maximum:"3600000" doc:"How long the claim is trusted without a heartbeat; at most the timeout of the kinds"`
	WaitMS  int64    `json:"wait_ms,omitzero" minimum:"0" doc:"How long to wait for something to do, at most 60000; absent: not at all"`
	Worker  string   `json:"worker,omitzero" maxLength:"255" doc:"A name for people"`
}

// ClaimAnswer is what a worker got.
type ClaimAnswer struct {
	Items []ClaimedAttempt `json:"items" nullable:"false"`
}

// ClaimedAttempt is one attempt in a worker's hands.
type ClaimedAttempt struct {
	Attempt         Attempt        `json:"attempt"`
	JobID           string         `json:"job_id"`
	Kind            string         `json:"kind"`
	ClaimToken      string         `json:"claim_token" doc:"Proves the claim; to be kept from everybody else"`
	ProviderKey     string         `json:"provider_key" doc:"Stable per job and target: the idempotency key of the worker's own calls"`
	Metadata        jsontext.Value `json:"metadata,omitzero"`
	LeaseExpiresAt  time.Time      `json:"lease_expires_at"`
	DoNotBeginAfter time.Time      `json:"do_not_begin_after" doc:"What has not begun by then must not begin"`

	// Input comes last: see encodeClaimed.
	Input jsontext.Value `json:"input,omitzero" doc:"The caller's own bytes"`
}

// claimAttempts serves POST /v1/attempts:claim. A claim that finds nothing may be
// held, among the requests that hold.
func (a *api) claimAttempts(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req ClaimRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	params := onejob.AttemptClaimParams{
		Owner: c.scope, Kinds: req.Kinds, Max: req.Max,
		StartParams: onejob.StartParams{
			Worker: cmp.Or(req.Worker, c.actor), Lease: time.Duration(req.LeaseMS) * time.Millisecond, Targets: a.opts.Pulled,
		},
	}
	claimed, err := a.claim(w, r, params, min(time.Duration(req.WaitMS)*time.Millisecond, maxWait))
	if err != nil {
		return err
	}
	items := make([][]byte, len(claimed))
	for i := range claimed {
		a.opts.Observer.AttemptStarted(claimed[i].Attempt.Target)
		if items[i], err = encodeClaimed(&claimed[i]); err != nil {
			return err
		}
	}
	writeItems(w, items, "")
	return nil
}

// claim claims at once and, if there is nothing and room to wait, until there is.
func (a *api) claim(w http.ResponseWriter, r *http.Request, p onejob.AttemptClaimParams, wait time.Duration) ([]onejob.Claimed, error) {
	if len(p.Targets) == 0 {
		return nil, &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "no target of this server is for workers: say provider: worker in its configuration"}
	}
	if a.opts.DrainingFunc() {
		return nil, nil // another node gives work out
	}
	claimed, err := a.client.ClaimAttempts(r.Context(), p)
	if err != nil || len(claimed) > 0 || wait == 0 {
		return claimed, err
	}
	ctx, done, ok := a.hold(w, r, wait)
	if !ok {
		return nil, &onejob.Error{Code: onejob.CodeOverloaded, Message: "as many requests wait as the server can hold", RetryAfter: pollAfter}
	}
	defer done()
	return a.client.AwaitAttempts(ctx, p)
}

func (req *ClaimRequest) check() error {
	lease := time.Duration(req.LeaseMS) * time.Millisecond
	switch {
	case len(req.Kinds) < 1 || len(req.Kinds) > maxClaimKinds:
		return invalid("member %q names 1 to %d kinds", "kinds", maxClaimKinds)
	case req.Max < 1 || req.Max > maxClaim:
		return invalid("member %q is 1 to %d", "max", maxClaim)
	case req.LeaseMS > maxLease.Milliseconds() || lease < minLease:
		return invalid("member %q is %d to %d", "lease_ms", minLease.Milliseconds(), maxLease.Milliseconds())
	case req.WaitMS < 0 || req.WaitMS > int64(24*time.Hour/time.Millisecond):
		return invalid("member %q is not a time to wait", "wait_ms")
	case len(req.Worker) > maxNameLength:
		return invalid("member %q is longer than %d bytes", "worker", maxNameLength)
	}
	for _, kind := range req.Kinds {
		if len(kind) > maxNameLength {
			return invalid("member %q has a name longer than %d bytes", "kinds", maxNameLength)
		}
	}
	return checkText("worker", req.Worker)
}

func encodeClaimed(c *onejob.Claimed) ([]byte, error) {
	t := &c.Attempt
	item := ClaimedAttempt{
		Attempt: attemptOf(t), JobID: t.JobID, Kind: c.Job.Kind, ClaimToken: t.ClaimToken, ProviderKey: t.ProviderKey,
		LeaseExpiresAt: t.LeaseExpiresAt.UTC(), DoNotBeginAfter: t.SendBy.UTC(),
	}
	if jsontext.Value(c.Job.Metadata).IsValid() {
		item.Metadata = jsontext.Value(c.Job.Metadata)
	}
	object, err := encode(item)
	if err != nil {
		return nil, err
	}
	object = append(object[:len(object)-1], `,"input":`...)
	object = append(object, bytes.TrimSpace(c.Job.Input)...)
	return append(object, '}'), nil
}

func claimAttemptsDoc() operation {
	return operation{
		id: "claimAttempts", summary: "Take attempts to work on (pull workers)",
		description: "For targets of provider worker. What is handed out counts as begun: finish it, or release what was not begun. An attempt whose lease ends without word is unknown, and nobody else gets it until it is resolved. A claim with wait_ms is held until there is something to do.",
		body:        ClaimRequest{},
		answers:     []answer{{status: 200, says: "What was claimed; maybe nothing", body: ClaimAnswer{}}},
		problems:    []onejob.Code{onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia},
	}
}
