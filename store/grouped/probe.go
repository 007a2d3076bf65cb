package grouped

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// probesOf returns a store's own questions, which are too few to be gathered.
func probesOf(store onejob.Store) onejob.ProbeStore {
	if p, ok := store.(onejob.ProbeStore); ok {
		return p
	}
	return noProbes{}
}

// noProbes stands in for a store that keeps no questions.
type noProbes struct{}

func (noProbes) refuse() error {
	return &onejob.Error{Code: onejob.CodeInternal, Message: "the store keeps no probes"}
}

func (n noProbes) ProbeClaim(context.Context, onejob.ProbeClaimParams) ([]onejob.Claimed, error) {
	return nil, n.refuse()
}

func (n noProbes) ProbeRecord(context.Context, []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	return nil, n.refuse()
}

func (n noProbes) ProbeList(context.Context, onejob.ProbeListParams) ([]onejob.Probe, error) {
	return nil, n.refuse()
}

func (n noProbes) ProbeNow(context.Context, onejob.ProbeNowParams) error { return n.refuse() }

func (n noProbes) AttemptAsk(context.Context, int) ([]onejob.AttemptRef, error) {
	return nil, n.refuse()
}
