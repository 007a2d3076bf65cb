package httpapi

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// ReleaseRequest gives an attempt back.
type ReleaseRequest struct {
	ClaimToken string `json:"claim_token" minLength:"1"`
}

// FinishRequest is what a worker says of an attempt.
type FinishRequest struct {
	ClaimToken string         `json:"claim_token" minLength:"1"`
	Outcome    onejob.Outcome `json:"outcome" enum:"succeeded,executed_failed,refused,not_executed,unknown" doc:"What is proven. refused and not_executed promise that nothing happened; unknown is for doubt"`
	Result     jsontext.Value `json:"result,omitzero" doc:"Required with succeeded, and only with it; null must be said"`
	Error      *FinishError   `json:"error,omitzero" doc:"With any outcome but succeeded"`
	ProviderID string         `json:"provider_id,omitzero" maxLength:"255" doc:"Whatever names the work elsewhere"`
	Usage      jsontext.Value `json:"usage,omitzero" doc:"An object: what was used, as the worker counts it"`
	CostMicros int64          `json:"cost_micros,omitzero" minimum:"0" doc:"Millionths of the currency"`
	Currency   string         `json:"currency,omitzero" maxLength:"16" doc:"Absent, with a cost: USD"`
}

// FinishError says what went wrong.
type FinishError struct {
	Code    string `json:"code" maxLength:"255"`
	Message string `json:"message,omitzero" maxLength:"4096"`
}

// workerOutcomes are what a worker may say.
var workerOutcomes = []onejob.Outcome{
	onejob.OutcomeSucceeded, onejob.OutcomeExecutedFailed, onejob.OutcomeRefused, onejob.OutcomeNotExecuted, onejob.OutcomeUnknown,
}

// releaseAttempt serves POST /v1/attempts/{id}:release.
func (a *api) releaseAttempt(w http.ResponseWriter, r *http.Request) error {
	var req ReleaseRequest
	p, err := a.readWorker(w, r, &req, &req.ClaimToken)
	if err != nil {
		return err
	}
	done, err := a.client.ReleaseAttempt(r.Context(), p)
	if err != nil {
		return err
	}
	return a.writeFinished(w, &done)
}

// finishAttempt serves POST /v1/attempts/{id}:finish. A success that came too late
// to win is 200 with state discarded.
func (a *api) finishAttempt(w http.ResponseWriter, r *http.Request) error {
	var req FinishRequest
	worker, err := a.readWorker(w, r, &req, &req.ClaimToken)
	if err != nil {
		return err
	}
	p, err := req.params(worker)
	if err != nil {
		return err
	}
	done, err := a.client.FinishAttempt(r.Context(), p)
	if err != nil {
		return err
	}
	return a.writeFinished(w, &done)
}

// writeFinished answers with the attempt, without the result that its worker has.
func (a *api) writeFinished(w http.ResponseWriter, done *onejob.FinishResult) error {
	if !done.Repeated {
		a.observeFinished(done)
	}
	body, err := encode(attemptOf(&done.Attempt))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func (a *api) observeFinished(done *onejob.FinishResult) {
	t := &done.Attempt
	a.opts.Observer.AttemptEnded(t.Target, t.Outcome, max(0, t.FinishedAt.Sub(t.StartedAt)))
	if t.State == onejob.AttemptDiscarded {
		a.opts.Observer.RaceLost(t.Target)
	}
	if done.Incident != "" {
		a.log.Error("incident: the effect may have happened twice", "incident", done.Incident, "job_id", t.JobID, "attempt_id", t.ID)
		a.opts.Observer.Incident(done.Incident)
	}
}

// params translates what a worker says, or tells what contradicts itself.
func (req *FinishRequest) params(worker onejob.WorkerParams) (onejob.FinishParams, error) {
	p := onejob.FinishParams{
		WorkerParams: worker, Outcome: req.Outcome, ProviderID: req.ProviderID, CostMicros: req.CostMicros, Currency: req.Currency,
	}
	if p.CostMicros > 0 {
		fill(&p.Currency, "USD")
	}
	succeeded := req.Outcome == onejob.OutcomeSucceeded
	switch {
	case !slices.Contains(workerOutcomes, req.Outcome):
		return p, invalid("member %q is succeeded, executed_failed, refused, not_executed or unknown", "outcome")
	case succeeded && len(req.Result) == 0:
		return p, invalid("succeeded needs a %q; null must be said", "result")
	case !succeeded && len(req.Result) > 0:
		return p, invalid("member %q goes with succeeded only", "result")
	case succeeded && req.Error != nil:
		return p, invalid("member %q does not go with succeeded", "error")
	case req.CostMicros < 0:
		return p, invalid("member %q is negative", "cost_micros")
	case len(req.Usage) > 0 && (!isObject(req.Usage) || len(req.Usage) > maxEvidenceBytes):
		return p, invalid("member %q is an object of at most %d bytes", "usage", maxEvidenceBytes)
	}
	if len(req.Usage) > 0 {
		p.Usage = req.Usage
	}
	if succeeded {
		if _, err := onejob.Canonical(req.Result); err != nil {
			return p, err // nested too deep, or a number that not everybody can read
		}
		p.Result = &onejob.Result{Body: req.Result, ContentType: "application/json"}
	} else {
		p.Failure = req.failure()
	}
	return p, req.checkTexts()
}

func (req *FinishRequest) failure() *onejob.Failure {
	if req.Error == nil {
		return &onejob.Failure{Code: string(req.Outcome), Message: "the worker said so"}
	}
	return &onejob.Failure{Code: req.Error.Code, Message: req.Error.Message}
}

func (req *FinishRequest) checkTexts() error {
	texts := map[string]string{"provider_id": req.ProviderID, "currency": req.Currency}
	if req.Error != nil {
		texts["error.code"], texts["error.message"] = req.Error.Code, req.Error.Message
		if req.Error.Code == "" {
			return invalid("member %q is required", "error.code")
		}
	}
	for name, value := range texts {
		most := map[string]int{"currency": 16, "error.message": maxEvidenceBytes}[name]
		fill(&most, maxNameLength)
		if len(value) > most {
			return invalid("member %q is longer than %d bytes", name, most)
		}
		if err := checkText(name, value); err != nil {
			return err
		}
	}
	return nil
}

func releaseAttemptDoc() operation {
	return operation{
		id: "releaseAttempt", summary: "Give back an attempt that was not begun (pull workers)",
		description: "It promises that nothing was begun; another worker then gets the job.",
		body:        ReleaseRequest{},
		answers:     []answer{{status: 200, says: "The attempt", body: Attempt{}}},
		problems:    workerProblems,
	}
}

func finishAttemptDoc() operation {
	return operation{
		id: "finishAttempt", summary: "Say what came of an attempt (pull workers)",
		description: "It may come after the lease: a success still wins if nothing replaced the attempt, and is answered as discarded otherwise. A repeat answers as the first did.",
		body:        FinishRequest{},
		answers:     []answer{{status: 200, says: "The attempt as it stands, without its result", body: Attempt{}}},
		problems:    workerProblems,
	}
}
