package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/certify"
)

// Certificate is the verdict on one target under one contract.
type Certificate struct {
	ID           string          `json:"id"`
	Kind         string          `json:"kind"`
	Contract     string          `json:"contract" doc:"Its digest"`
	Target       string          `json:"target"`
	TargetDigest string          `json:"target_digest"`
	Environment  string          `json:"environment"`
	Verdict      string          `json:"verdict" doc:"certified, refused or inconclusive"`
	Status       string          `json:"status" doc:"active, suspended, revoked or superseded"`
	Sandbox      bool            `json:"sandbox,omitzero" doc:"Shown in a sandbox only"`
	Reason       string          `json:"reason,omitzero" doc:"Of a refusal, or of the last change of status"`
	Detail       string          `json:"detail,omitzero"`
	Dropped      []string        `json:"dropped_params,omitempty" nullable:"false" doc:"Parameters that the target does not carry"`
	Observed     onejob.Observed `json:"observed" doc:"Who made the answers; another one suspends it"`
	Counts       json.RawMessage `json:"counts,omitempty" doc:"Cases and failures by gate"`
	Bounds       json.RawMessage `json:"bounds,omitempty" doc:"Rates that were shown by gate"`
	Verification string          `json:"verification_id"`
	IssuedAt     time.Time       `json:"issued_at"`
	ExpiresAt    time.Time       `json:"expires_at,omitzero"`
	RenewAt      time.Time       `json:"renew_at,omitzero" doc:"When it is to be renewed"`
}

// CertificateList is a list of certificates, newest first.
type CertificateList struct {
	Items []Certificate `json:"items" nullable:"false"`
}

func certificateOf(c *onejob.Certificate) Certificate {
	return Certificate{
		ID: c.ID, Kind: c.Kind, Contract: c.ContractDigest, Target: c.TargetName, TargetDigest: c.TargetDigest, Environment: c.Environment,
		Verdict: string(c.Verdict), Status: string(c.Status), Sandbox: c.Sandbox, Reason: c.Reason, Detail: c.Detail,
		Dropped: c.Dropped, Observed: c.Observed, Counts: rawOr(c.Counts), Bounds: rawOr(c.Bounds), Verification: c.RunID,
		IssuedAt: c.IssuedAt.UTC(), ExpiresAt: utc(c.ExpiresAt), RenewAt: utc(c.RenewAt),
	}
}

// Verification is one verification of a target.
type Verification struct {
	ID           string          `json:"id"`
	Kind         string          `json:"kind"`
	Contract     string          `json:"contract"`
	Target       string          `json:"target"`
	TargetDigest string          `json:"target_digest"`
	Environment  string          `json:"environment"`
	Trigger      string          `json:"trigger" doc:"Who or what asked"`
	State        string          `json:"state" doc:"running, certified, refused or inconclusive"`
	StartedAt    time.Time       `json:"started_at"`
	FinishedAt   time.Time       `json:"finished_at,omitzero"`
	Calls        int             `json:"calls"`
	SpendMicros  int64           `json:"spend_micros"`
	Report       json.RawMessage `json:"report,omitempty" doc:"What was shown, stage by stage"`
}

func verificationOf(r *onejob.VerificationRun) Verification {
	return Verification{
		ID: r.ID, Kind: r.Kind, Contract: r.ContractDigest, Target: r.TargetName, TargetDigest: r.TargetDigest, Environment: r.Environment,
		Trigger: r.Trigger, State: string(r.State), StartedAt: r.StartedAt.UTC(), FinishedAt: utc(r.FinishedAt),
		Calls: r.Calls, SpendMicros: r.SpendMicros, Report: rawOr(r.Report),
	}
}

// defaultListed is how many certificates are listed when nobody says how many.
const defaultListed = 200

// certificateQuery reads what certificates and waivers are filtered by.
func certificateQuery(r *http.Request) (onejob.CertificateListParams, error) {
	q := queryOf(r, "kind", "target", "live")
	p := onejob.CertificateListParams{Kind: q.text("kind"), TargetName: q.text("target"), Limit: defaultListed}
	switch live := q.text("live"); live {
	case "", "false":
	case "true":
		p.Live = true
	default:
		q.refuse("live is true or false")
	}
	return p, q.err
}

var certificateParams = []param{
	{name: "kind"}, {name: "target"}, {name: "live", says: "true: only those that open something now"},
}

// listCertificates serves GET /v1/certificates.
func (a *api) listCertificates(w http.ResponseWriter, r *http.Request) error {
	p, err := certificateQuery(r)
	if err != nil {
		return err
	}
	if a.opts.Contracts == nil {
		return writeAll(w, []Certificate{})
	}
	found, err := a.opts.Contracts.Certificates(r.Context(), p)
	if err != nil {
		return err
	}
	list := make([]Certificate, len(found))
	for i := range found {
		list[i] = certificateOf(&found[i])
	}
	return writeAll(w, list)
}

func listCertificatesDoc() operation {
	return operation{
		id: "listCertificates", summary: "List certificates of this environment, newest first, at most 200",
		query:    certificateParams,
		answers:  []answer{{status: 200, says: "The newest", body: CertificateList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}

// RevokeRequest says why a certificate is taken back.
type RevokeRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"4096" doc:"Kept for ever in the audit"`
}

// revokeCertificate serves POST /v1/certificates/{id}/revoke.
func (a *api) revokeCertificate(w http.ResponseWriter, r *http.Request) error {
	office, err := a.office()
	if err != nil {
		return err
	}
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req RevokeRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if err := checkReason(req.Reason); err != nil {
		return err
	}
	c, err := office.Revoke(r.Context(), r.PathValue("id"), exchangeOf(r).caller.actor, req.Reason)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, certificateOf(&c))
}

func checkReason(reason string) error {
	if reason == "" || len(reason) > maxEvidenceBytes {
		return invalid("member %q is required, and at most %d bytes", "reason", maxEvidenceBytes)
	}
	return checkText("reason", reason)
}

func revokeCertificateDoc() operation {
	return operation{
		id: "revokeCertificate", summary: "Take a certificate back",
		description: "After the answer no attempt starts by it. Safe to repeat: the first reason stays.",
		body:        RevokeRequest{},
		answers:     []answer{{status: 200, says: "The certificate as it is now", body: Certificate{}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}

// Waiver is a person's word that stands in for a certificate until it ends.
type Waiver struct {
	ID           string    `json:"id"`
	Kind         string    `json:"kind"`
	Contract     string    `json:"contract"`
	Target       string    `json:"target"`
	TargetDigest string    `json:"target_digest"`
	Environment  string    `json:"environment"`
	Actor        string    `json:"actor"`
	Reason       string    `json:"reason"`
	GrantedAt    time.Time `json:"granted_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	RevokedAt    time.Time `json:"revoked_at,omitzero"`
}

// WaiverList is a list of waivers, newest first.
type WaiverList struct {
	Items []Waiver `json:"items" nullable:"false"`
}

func waiverOf(v *onejob.Waiver) Waiver {
	return Waiver{
		ID: v.ID, Kind: v.Kind, Contract: v.ContractDigest, Target: v.TargetName, TargetDigest: v.TargetDigest, Environment: v.Environment,
		Actor: v.Actor, Reason: v.Reason, GrantedAt: v.GrantedAt.UTC(), ExpiresAt: v.ExpiresAt.UTC(), RevokedAt: utc(v.RevokedAt),
	}
}

// WaiveRequest is a person's word for one target.
type WaiveRequest struct {
	Kind   string    `json:"kind"`
	Target string    `json:"target"`
	Reason string    `json:"reason" minLength:"1" maxLength:"4096" doc:"Kept for ever in the audit"`
	Until  time.Time `json:"until" doc:"When it ends, within 90 days"`
}

// grantWaiver serves POST /v1/waivers.
func (a *api) grantWaiver(w http.ResponseWriter, r *http.Request) error {
	office, err := a.office()
	if err != nil {
		return err
	}
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req WaiveRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if err := checkReason(req.Reason); err != nil {
		return err
	}
	granted, err := office.Waive(r.Context(), certify.WaiveParams{
		Kind: req.Kind, Target: req.Target, Reason: req.Reason, Until: req.Until, Actor: exchangeOf(r).caller.actor,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, waiverOf(&granted))
}

func grantWaiverDoc() operation {
	return operation{
		id: "grantWaiver", summary: "Let a target take over without a certificate until a day",
		description: "For the contract and the target as they are now. It stands in for a certificate and for the agreement with the primary, and for nothing else: neither an attempt in doubt nor a budget.",
		body:        WaiveRequest{},
		answers:     []answer{{status: 200, says: "The waiver", body: Waiver{}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}

// listWaivers serves GET /v1/waivers.
func (a *api) listWaivers(w http.ResponseWriter, r *http.Request) error {
	p, err := certificateQuery(r)
	if err != nil {
		return err
	}
	if a.opts.Contracts == nil {
		return writeAll(w, []Waiver{})
	}
	found, err := a.opts.Contracts.Waivers(r.Context(), p)
	if err != nil {
		return err
	}
	list := make([]Waiver, len(found))
	for i := range found {
		list[i] = waiverOf(&found[i])
	}
	return writeAll(w, list)
}

func listWaiversDoc() operation {
	return operation{
		id: "listWaivers", summary: "List waivers of this environment, newest first, at most 200",
		query:    certificateParams,
		answers:  []answer{{status: 200, says: "The newest", body: WaiverList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}

// revokeWaiver serves DELETE /v1/waivers/{id}.
func (a *api) revokeWaiver(w http.ResponseWriter, r *http.Request) error {
	office, err := a.office()
	if err != nil {
		return err
	}
	if err := a.readNothing(w, r); err != nil {
		return err
	}
	revoked, err := office.Unwaive(r.Context(), r.PathValue("id"), exchangeOf(r).caller.actor)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, waiverOf(&revoked))
}

func revokeWaiverDoc() operation {
	return operation{
		id: "revokeWaiver", summary: "Take a waiver back",
		description: "After the answer no attempt starts by it. Safe to repeat.",
		answers:     []answer{{status: 200, says: "The waiver, revoked", body: Waiver{}}},
		problems:    []onejob.Code{onejob.CodeNotFound, onejob.CodeInvalidRequest},
	}
}
