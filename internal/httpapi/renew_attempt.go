package httpapi

import (
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// maxClaimToken bounds what is looked at as a claim token, in bytes.
const maxClaimToken = 256

// HeartbeatRequest extends a claim.
type HeartbeatRequest struct {
	ClaimToken string `json:"claim_token" minLength:"1"`
	LeaseMS    int64  `json:"lease_ms,omitzero" minimum:"1000" maximum:"3600000" doc:"From now; absent: 30000. The job's timeout, from the claim, bounds it"`
}

// HeartbeatAnswer is how a claim stands.
type HeartbeatAnswer struct {
	ID              string              `json:"id"`
	JobID           string              `json:"job_id"`
	State           onejob.AttemptState `json:"state"`
	LeaseExpiresAt  time.Time           `json:"lease_expires_at"`
	DoNotBeginAfter time.Time           `json:"do_not_begin_after"`
	CancelRequested bool                `json:"cancel_requested" doc:"The result is no longer wanted; say what came of it all the same"`
}

const defaultLeaseMS = 30_000

// renewAttempt serves POST /v1/attempts/{id}:heartbeat.
func (a *api) renewAttempt(w http.ResponseWriter, r *http.Request) error {
	var req HeartbeatRequest
	p, err := a.readWorker(w, r, &req, &req.ClaimToken)
	if err != nil {
		return err
	}
	fill(&req.LeaseMS, defaultLeaseMS)
	if req.LeaseMS < minLease.Milliseconds() || req.LeaseMS > maxLease.Milliseconds() {
		return invalid("member %q is %d to %d", "lease_ms", minLease.Milliseconds(), maxLease.Milliseconds())
	}
	renewed, err := a.client.RenewAttempt(r.Context(), p, time.Duration(req.LeaseMS)*time.Millisecond)
	if err != nil {
		return err
	}
	t := &renewed.Attempt
	body, err := encode(HeartbeatAnswer{
		ID: t.ID, JobID: t.JobID, State: t.State, CancelRequested: renewed.CancelRequested,
		LeaseExpiresAt: t.LeaseExpiresAt.UTC(), DoNotBeginAfter: t.SendBy.UTC(),
	})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

// readWorker reads what a worker says of the attempt in the path. token is the
// member of req that proves its claim.
func (a *api) readWorker(w http.ResponseWriter, r *http.Request, req any, token *string) (onejob.WorkerParams, error) {
	p := onejob.WorkerParams{AttemptID: r.PathValue("id"), Owner: exchangeOf(r).caller.scope}
	body, err := a.readJSON(w, r)
	if err != nil {
		return p, err
	}
	if err := decode(body, req); err != nil {
		return p, err
	}
	if *token == "" || len(*token) > maxClaimToken || !isText(*token) {
		return p, invalid("member %q is required, as the claim gave it", "claim_token")
	}
	p.ClaimToken = *token
	return p, nil
}

// workerProblems are what every verb of a worker can answer.
var workerProblems = []onejob.Code{
	onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodeClaimLost,
	onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
}

func renewAttemptDoc() operation {
	return operation{
		id: "renewAttempt", summary: "Keep a claim (pull workers)",
		description: "Send one every third of the lease. The job's timeout bounds the whole work, heartbeats notwithstanding; an answer after that still counts if nothing replaced the attempt.",
		body:        HeartbeatRequest{},
		answers:     []answer{{status: 200, says: "How the claim stands", body: HeartbeatAnswer{}}},
		problems:    workerProblems,
	}
}
