package httpapi

import (
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// Limits is what this server takes, and how long it keeps it.
type Limits struct {
	MaxBodyBytes     int     `json:"max_body_bytes"`
	MaxInputBytes    int     `json:"max_input_bytes"`
	MaxMetadataBytes int     `json:"max_metadata_bytes"`
	MaxKeyBytes      int     `json:"max_key_bytes"`
	MaxDepth         int     `json:"max_depth" doc:"How deep JSON may be nested"`
	MaxBatchItems    int     `json:"max_batch_items"`
	MaxPage          int     `json:"max_page"`
	MaxWaitMS        int64   `json:"max_wait_ms"`
	MaxRequests      int     `json:"max_requests" doc:"Served at once, those that hold left out"`
	MaxHolding       int     `json:"max_holding" doc:"Waiting for jobs, or streaming them, at once"`
	OwnerRate        float64 `json:"owner_rate" doc:"New jobs per second and owner; 0: unlimited"`
	KeepPayloadsMS   int64   `json:"keep_payloads_ms" doc:"Counted from the end of a job; 0: for ever"`
	KeepKeysMS       int64   `json:"keep_keys_ms" doc:"After it only the key's hash is kept, which still answers; 0: all is kept"`
}

// getLimits serves GET /v1/limits.
func (a *api) getLimits(w http.ResponseWriter, _ *http.Request) error {
	body, err := encode(Limits{
		MaxBodyBytes: a.opts.MaxBodyBytes, MaxInputBytes: a.client.MaxInputBytes(), MaxMetadataBytes: maxMetadataBytes,
		MaxKeyBytes: onejob.MaxKeyLength, MaxDepth: onejob.MaxDepth, MaxBatchItems: maxBatchItems, MaxPage: maxPage,
		MaxWaitMS: int64(maxWait / time.Millisecond), MaxRequests: a.opts.MaxRequests, MaxHolding: a.opts.MaxHolding,
		OwnerRate:      a.opts.OwnerRate,
		KeepPayloadsMS: a.opts.KeepPayloads.Milliseconds(), KeepKeysMS: a.opts.KeepKeys.Milliseconds(),
	})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func getLimitsDoc() operation {
	return operation{
		id: "getLimits", summary: "Sizes, rates and retention",
		answers: []answer{{status: 200, says: "The limits", body: Limits{}}},
	}
}
