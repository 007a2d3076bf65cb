package httpapi

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// Attempt is an attempt as callers see it. Its claim token goes to its worker alone.
type Attempt struct {
	ID     string              `json:"id"`
	JobID  string              `json:"job_id"`
	Number int                 `json:"number"`
	Lane   int                 `json:"lane"`
	Target string              `json:"target"`
	State  onejob.AttemptState `json:"state"`
	Phase  onejob.Phase        `json:"phase" doc:"How far the request got on the wire"`

	Outcome  onejob.Outcome `json:"outcome,omitzero" doc:"What the answer, or its absence, proves"`
	Evidence Evidence       `json:"evidence"`
	Error    *Failure       `json:"error,omitzero"`

	ProviderID    string `json:"provider_id,omitzero" doc:"The provider's own id for the work"`
	ProviderKey   string `json:"provider_key,omitzero" doc:"The idempotency key that the provider got"`
	CertificateID string `json:"certificate_id,omitzero"`
	WaiverID      string `json:"waiver_id,omitzero"`

	SendBy          time.Time `json:"send_by,omitzero"`
	QuarantineUntil time.Time `json:"quarantine_until,omitzero" doc:"No ruling but success before it"`
	StartedAt       time.Time `json:"started_at"`
	AcceptedAt      time.Time `json:"accepted_at,omitzero" doc:"Since when the provider is known to be at it, under provider_id"`
	NextProbeAt     time.Time `json:"next_probe_at,omitzero" doc:"When its provider is asked about it next; absent: not by itself"`
	AskedAt         time.Time `json:"asked_at,omitzero" doc:"When a person was asked to settle it"`
	FinishedAt      time.Time `json:"finished_at,omitzero"`

	CostMicros int64          `json:"cost_micros,omitzero"`
	Currency   string         `json:"currency,omitzero"`
	Usage      jsontext.Value `json:"usage,omitzero" doc:"As the provider counted it"`

	Discarded *Discarded `json:"discarded,omitzero" doc:"With state discarded"`
	Ruling    *Ruling    `json:"ruling,omitzero"`

	// Result comes last: see encodeAttempt.
	Result jsontext.Value `json:"result,omitzero" doc:"The attempt's own answer, whether or not it won. Lists leave it out"`
}

// Evidence is what was seen of one attempt.
type Evidence struct {
	Status            int    `json:"status,omitzero" doc:"HTTP status; absent: none came"`
	Error             string `json:"error,omitzero"`
	BytesWritten      int64  `json:"bytes_written"`
	BytesRead         int64  `json:"bytes_read"`
	ProviderRequestID string `json:"provider_request_id,omitzero"`
	Model             string `json:"model,omitzero"`
	ReusedConnection  bool   `json:"reused_connection,omitzero"`
	ConnectedMS       int64  `json:"connected_ms,omitzero" doc:"Milliseconds from the start of the call"`
	SentMS            int64  `json:"sent_ms,omitzero"`
	FirstByteMS       int64  `json:"first_byte_ms,omitzero"`
	EndedMS           int64  `json:"ended_ms,omitzero"`
	Excerpt           string `json:"excerpt,omitzero" doc:"The start of a body that was no success"`
	Rule              string `json:"rule,omitzero" doc:"The configured outcome rule that decided"`
}

// Discarded says whom a success lost to.
type Discarded struct {
	Winner  string `json:"winner,omitzero" doc:"Absent: the job had closed without one"`
	AfterMS int64  `json:"after_ms"`
}

// Ruling is a decision about an attempt that is not the provider's own answer.
type Ruling struct {
	By               string         `json:"by"`
	Outcome          onejob.Outcome `json:"outcome"`
	Evidence         string         `json:"evidence"`
	At               time.Time      `json:"at"`
	RiskAcknowledged bool           `json:"risk_acknowledged,omitzero"`
}

func attemptOf(t *onejob.Attempt) Attempt {
	attempt := Attempt{
		ID: t.ID, JobID: t.JobID, Number: t.Number, Lane: t.Lane, Target: t.Target, State: t.State,
		Phase: t.Phase, Outcome: t.Outcome, Evidence: evidenceOf(&t.Evidence), Error: failureOf(t.Error),
		ProviderID: t.ProviderID, ProviderKey: t.ProviderKey, CertificateID: t.CertificateID, WaiverID: t.WaiverID,
		SendBy: utc(t.SendBy), QuarantineUntil: utc(t.QuarantineUntil), StartedAt: t.StartedAt.UTC(), FinishedAt: utc(t.FinishedAt),
		AcceptedAt: utc(t.AcceptedAt), NextProbeAt: utc(t.NextProbeAt), AskedAt: utc(t.AskedAt),
		CostMicros: t.CostMicros, Currency: t.Currency,
	}
	if jsontext.Value(t.Usage).IsValid() {
		attempt.Usage = jsontext.Value(t.Usage)
	}
	if d := t.Discarded; d != nil {
		attempt.Discarded = &Discarded{Winner: d.Winner, AfterMS: d.After.Milliseconds()}
	}
	if r := t.Ruling; r != nil {
		attempt.Ruling = &Ruling{By: r.By, Outcome: r.Outcome, Evidence: r.Evidence, At: r.At.UTC(), RiskAcknowledged: r.RiskAcknowledged}
	}
	return attempt
}

func evidenceOf(e *onejob.Evidence) Evidence {
	return Evidence{
		Status: e.Status, Error: e.Error, BytesWritten: e.BytesWritten, BytesRead: e.BytesRead,
		ProviderRequestID: e.ProviderRequestID, Model: e.Model, ReusedConnection: e.ReusedConnection,
		ConnectedMS: e.ConnectedMS, SentMS: e.SentMS, FirstByteMS: e.FirstByteMS, EndedMS: e.EndedMS,
		Excerpt: e.Excerpt, Rule: e.Rule,
	}
}

// encode shows what came from outside: text that is not UTF-8 is shown with
// replacement characters rather than not at all.
func encode(v any) ([]byte, error) { return json.Marshal(v, jsontext.AllowInvalidUTF8(true)) }

// encodeAttempt returns an attempt as JSON, with its own answer if it has one.
func encodeAttempt(t *onejob.Attempt) ([]byte, error) {
	body, err := encode(attemptOf(t))
	if err != nil {
		return nil, err
	}
	if t.State == onejob.AttemptSucceeded {
		return withResult(body, t.Result, "/v1/jobs/"+t.JobID+"/result"), nil
	}
	return withResult(body, t.Result, "/v1/attempts/"+t.ID), nil
}
