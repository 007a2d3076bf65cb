package httpapi

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// ResolveRequest is a person's ruling about an unknown attempt.
type ResolveRequest struct {
	Outcome         string         `json:"outcome" enum:"succeeded,failed,cancelled"`
	Evidence        jsontext.Value `json:"evidence" doc:"What shows it: a text, or an object"`
	Proves          string         `json:"proves,omitzero" enum:"not_executed,executed_failed" doc:"Required with failed, and only with it"`
	Result          jsontext.Value `json:"result,omitzero" doc:"Required with succeeded; null must be said"`
	ResultLost      bool           `json:"result_lost,omitzero" doc:"It succeeded, and its result cannot be had"`
	AcknowledgeRisk bool           `json:"acknowledge_risk,omitzero" doc:"Rule although nothing proves that the target stopped"`
}

// maxEvidenceBytes bounds what a person says, in bytes.
const maxEvidenceBytes = 4096

// resolveAttempt serves POST /v1/attempts/{id}/resolve.
func (a *api) resolveAttempt(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req ResolveRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	p, err := req.params()
	if err != nil {
		// Whoever may not see the attempt is not told that the ruling is wrong.
		if _, missing := a.client.Attempt(r.Context(), c.scope, r.PathValue("id")); missing != nil {
			return missing
		}
		return err
	}
	p.ID, p.Owner, p.Actor, p.IfRevision = r.PathValue("id"), c.scope, c.actor, ifMatch(r.Header)
	attempt, job, err := a.client.Resolve(r.Context(), p)
	if err != nil {
		return err
	}
	a.opts.Observer.UnknownResolved("operator", p.Outcome)
	w.Header().Set("ETag", etag(job))
	return a.writeAttempt(w, http.StatusOK, attempt)
}

// params translates a ruling. It returns [onejob.CodeInvalidResolution] for one
// that contradicts itself.
func (req *ResolveRequest) params() (onejob.AttemptResolveParams, error) {
	p := onejob.AttemptResolveParams{AcknowledgeRisk: req.AcknowledgeRisk}
	var err error
	if p.Outcome, err = req.outcome(); err != nil {
		return p, err
	}
	if p.Evidence, err = req.evidence(); err != nil {
		return p, err
	}
	if p.Outcome == onejob.OutcomeSucceeded {
		if _, err := onejob.Canonical(req.Result); err != nil {
			return p, err // nested too deep, or a number that not everybody can read
		}
		p.Result = &onejob.Result{Body: req.Result, ContentType: "application/json"}
	}
	return p, nil
}

func (req *ResolveRequest) outcome() (onejob.Outcome, error) {
	switch {
	case req.Outcome != "failed" && req.Proves != "":
		return "", invalidResolution("proves goes with failed only")
	case req.Outcome != "succeeded" && (len(req.Result) > 0 || req.ResultLost):
		return "", invalidResolution("result and result_lost go with succeeded only")
	}
	switch req.Outcome {
	case "succeeded":
		return req.success()
	case "cancelled":
		return onejob.OutcomeCancelled, nil
	case "failed":
		switch o := onejob.Outcome(req.Proves); o {
		case onejob.OutcomeNotExecuted, onejob.OutcomeExecutedFailed:
			return o, nil
		default:
			return "", invalidResolution("failed needs proves: not_executed or executed_failed")
		}
	}
	return "", invalidResolution("outcome is succeeded, failed or cancelled")
}

func (req *ResolveRequest) success() (onejob.Outcome, error) {
	isNull := req.Result.Kind() == 'n'
	switch {
	case req.ResultLost && len(req.Result) > 0 && !isNull:
		return "", invalidResolution("with result_lost the result is null")
	case req.ResultLost:
		return onejob.OutcomeResultLost, nil
	case len(req.Result) == 0:
		return "", invalidResolution("succeeded needs a result; null must be said, and result_lost if it cannot be had")
	}
	return onejob.OutcomeSucceeded, nil
}

// evidence is kept as text: a string as it is, an object as it was written.
func (req *ResolveRequest) evidence() (string, error) {
	text := string(req.Evidence)
	switch req.Evidence.Kind() {
	case '"':
		if err := json.Unmarshal(req.Evidence, &text); err != nil {
			return "", invalidResolution("evidence is not a string")
		}
	case '{':
	default:
		return "", invalidResolution("evidence is required: say what shows it, as a text or an object")
	}
	if text == "" || len(text) > maxEvidenceBytes {
		return "", invalidResolution(fmt.Sprintf("evidence is 1 to %d bytes", maxEvidenceBytes))
	}
	if !isText(text) {
		return "", invalidResolution("evidence holds a NUL character")
	}
	return text, nil
}

func invalidResolution(message string) error {
	return &onejob.Error{Code: onejob.CodeInvalidResolution, Message: message}
}

func resolveAttemptDoc() operation {
	return operation{
		id: "resolveAttempt", summary: "Settle an unknown attempt by a ruling",
		description: "A success needs its result; a failure needs the end of quarantine and what it proves. The job then goes on by itself.",
		headers:     []header{ifMatchHeaderDoc},
		body:        ResolveRequest{},
		answers:     []answer{{status: 200, says: "The attempt", body: Attempt{}, headers: []string{"ETag"}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodeAttemptTerminal,
			onejob.CodeAttemptNotUnknown, onejob.CodeQuarantined, onejob.CodeVersionMismatch,
			onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia, onejob.CodeInvalidResolution,
		},
	}
}
