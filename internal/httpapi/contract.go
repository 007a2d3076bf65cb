package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/certify"
)

// ContractList is every contract that there is.
type ContractList struct {
	Items []certify.Contract `json:"items" nullable:"false"`
}

// office returns who knows of contracts.
func (a *api) office() (*certify.Office, error) {
	if a.opts.Contracts == nil {
		return nil, &onejob.Error{Code: onejob.CodeNotFound, Message: "no kind has a contract here"}
	}
	return a.opts.Contracts, nil
}

// writeJSON answers with one thing.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	write(w, status, "application/json", body)
	return nil
}

// writeAll answers with a list of things that comes whole.
func writeAll[T any](w http.ResponseWriter, list []T) error {
	items := make([][]byte, len(list))
	for i := range list {
		item, err := encode(list[i])
		if err != nil {
			return err
		}
		items[i] = item
	}
	writeItems(w, items, "")
	return nil
}

// listContracts serves GET /v1/contracts.
func (a *api) listContracts(w http.ResponseWriter, r *http.Request) error {
	if q := queryOf(r); q.err != nil {
		return q.err
	}
	if a.opts.Contracts == nil {
		return writeAll(w, []certify.Contract{})
	}
	return writeAll(w, a.opts.Contracts.Contracts())
}

func listContractsDoc() operation {
	return operation{
		id: "listContracts", summary: "List the contracts of kinds, as new jobs pin them",
		answers:  []answer{{status: 200, says: "All of them", body: ContractList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}

// getMatrix serves GET /v1/contracts/{kind}/matrix.
func (a *api) getMatrix(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	office, err := a.office()
	if err != nil {
		return err
	}
	m, err := office.Matrix(r.Context(), r.PathValue("kind"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, m)
}

func getMatrixDoc() operation {
	return operation{
		id: "getContractMatrix", summary: "Say which targets of a kind may take over from its first",
		answers:  []answer{{status: 200, says: "Where every target stands now", body: certify.Matrix{}}},
		problems: []onejob.Code{onejob.CodeNotFound, onejob.CodeInvalidRequest},
	}
}

// getFailover serves GET /v1/contracts/{kind}/can-failover.
func (a *api) getFailover(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "from", "to")
	from, to := q.text("from"), q.text("to")
	if from == "" || to == "" {
		q.refuse("from and to are required: names of targets")
	} else if from == to {
		q.refuse("from and to are the same target, which stands in for nobody")
	}
	if q.err != nil {
		return q.err
	}
	office, err := a.office()
	if err != nil {
		return err
	}
	f, err := office.CanFailover(r.Context(), r.PathValue("kind"), from, to)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, f)
}

func getFailoverDoc() operation {
	return operation{
		id: "canFailover", summary: "Say whether one target may stand in for another",
		description: "As a decision about a job would have it at this moment, but for what is the job's own: its budget, its deadline, and an attempt in doubt, which no certificate overrides.",
		query:       []param{{name: "from", says: "The target that fails; required"}, {name: "to", says: "The one that would take over; required"}},
		answers:     []answer{{status: 200, says: "Yes or no, and why", body: certify.Failover{}}},
		problems:    []onejob.Code{onejob.CodeNotFound, onejob.CodeInvalidRequest},
	}
}

// VerifyRequest asks for a target to be verified.
type VerifyRequest struct {
	Target  string `json:"target"`
	Against string `json:"against,omitzero" doc:"Whom it is to stand in for; absent: the kind's first target, where the contract asks for agreement"`
	// MaxSpendMicros is a ceiling.
	MaxSpendMicros int64 `json:"max_spend_micros,omitzero" minimum:"0" doc:"Ceiling of what it may cost; absent: the contract's"`
}

// verifyContract serves POST /v1/contracts/{kind}/verify.
func (a *api) verifyContract(w http.ResponseWriter, r *http.Request) error {
	office, err := a.office()
	if err != nil {
		return err
	}
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req VerifyRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.Target == "" || req.MaxSpendMicros < 0 {
		return invalid("member %q is required, and %q is not negative", "target", "max_spend_micros")
	}
	run, err := office.VerifyLater(certify.VerifyParams{
		Kind: r.PathValue("kind"), Target: req.Target, Against: req.Against,
		Actor: exchangeOf(r).caller.actor, MaxSpendMicros: req.MaxSpendMicros, Keep: true,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/verifications/"+run.ID)
	return writeJSON(w, http.StatusAccepted, verificationOf(&run))
}

func verifyContractDoc() operation {
	return operation{
		id: "verifyContract", summary: "Have a target verified",
		description: "It goes on in the background, one verification of a target at a time, and spends money there within the ceilings of the contract. Its verdict is a certificate.",
		body:        VerifyRequest{},
		answers:     []answer{{status: 202, says: "The verification, under way", body: Verification{}, headers: []string{"Location"}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodeRequestInProgress,
			onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}

// getVerification serves GET /v1/verifications/{id}.
func (a *api) getVerification(w http.ResponseWriter, r *http.Request) error {
	office, err := a.office()
	if err != nil {
		return err
	}
	run, err := office.Run(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, verificationOf(&run))
}

func getVerificationDoc() operation {
	return operation{
		id: "getVerification", summary: "Read a verification, with its report once it has ended",
		answers:  []answer{{status: 200, says: "The verification", body: Verification{}}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}

// rawOr returns JSON that is there, or null.
func rawOr(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
