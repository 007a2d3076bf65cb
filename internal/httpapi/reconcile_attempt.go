package httpapi

import (
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// reconcileAttempt serves POST /v1/attempts/{id}/reconcile: the provider is asked
// soon, and what it says is found under probes.
func (a *api) reconcileAttempt(w http.ResponseWriter, r *http.Request) error {
	if err := a.readNothing(w, r); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	attempt, err := a.client.Reconcile(r.Context(), onejob.ProbeNowParams{AttemptID: r.PathValue("id"), Owner: c.scope, Actor: c.actor})
	if err != nil {
		return err
	}
	return a.writeAttempt(w, http.StatusAccepted, &attempt)
}

func reconcileAttemptDoc() operation {
	return operation{
		id: "reconcileAttempt", summary: "Ask the provider about an attempt now",
		description: "Makes an unknown or accepted attempt due to be asked about at once, where its target says how. Safe to repeat.",
		answers:     []answer{{status: 202, says: "The attempt as it is; the answer comes later", body: Attempt{}}},
		problems: []onejob.Code{
			onejob.CodeNotFound, onejob.CodeAttemptTerminal, onejob.CodeAttemptNotUnknown, onejob.CodePayloadNotCanonical,
			onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}

// Probe is one question about an attempt, and what was answered.
type Probe struct {
	Number   int                `json:"number"`
	Method   onejob.ProbeMethod `json:"method"`
	At       time.Time          `json:"at"`
	Outcome  onejob.Outcome     `json:"outcome,omitzero" doc:"What the answer proves; absent: nothing"`
	Detail   string             `json:"detail" doc:"What was asked and answered, in words"`
	Evidence Evidence           `json:"evidence"`
	NextAt   time.Time          `json:"next_at,omitzero" doc:"When the next question is due; absent: none is"`
}

// ProbeList is the questions about one attempt.
type ProbeList struct {
	Items []Probe `json:"items" nullable:"false"`
}

// listProbes serves GET /v1/attempts/{id}/probes, oldest first.
func (a *api) listProbes(w http.ResponseWriter, r *http.Request) error {
	probes, err := a.client.Probes(r.Context(), onejob.ProbeListParams{
		AttemptID: r.PathValue("id"), Owner: exchangeOf(r).caller.scope, Limit: maxPage,
	})
	if err != nil {
		return err
	}
	items := make([][]byte, len(probes))
	for i := range probes {
		if items[i], err = encode(probeOf(&probes[i])); err != nil {
			return err
		}
	}
	writeItems(w, items, "")
	return nil
}

func probeOf(p *onejob.Probe) Probe {
	return Probe{
		Number: p.Number, Method: p.Method, At: p.At.UTC(), Outcome: p.Outcome,
		Detail: p.Detail, Evidence: evidenceOf(&p.Evidence), NextAt: utc(p.NextAt),
	}
}

func listProbesDoc() operation {
	return operation{
		id: "listProbes", summary: "List the questions about an attempt and their answers, oldest first",
		description: "The newest 200.",
		answers:     []answer{{status: 200, says: "The questions", body: ProbeList{}}},
		problems:    []onejob.Code{onejob.CodeNotFound},
	}
}
