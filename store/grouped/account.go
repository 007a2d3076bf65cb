package grouped

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// What a store keeps for people to look at is asked for too seldom to be gathered.

func auditOf(store onejob.Store) onejob.AuditStore {
	if a, ok := store.(onejob.AuditStore); ok {
		return a
	}
	return noAccount{}
}

func incidentsOf(store onejob.Store) onejob.IncidentStore {
	if i, ok := store.(onejob.IncidentStore); ok {
		return i
	}
	return noAccount{}
}

func costsOf(store onejob.Store) onejob.CostStore {
	if c, ok := store.(onejob.CostStore); ok {
		return c
	}
	return noAccount{}
}

// noAccount stands in for a store that keeps no audit, incidents or sums.
type noAccount struct{}

func (noAccount) refuse(what string) error {
	return &onejob.Error{Code: onejob.CodeInternal, Message: "the store keeps no " + what}
}

func (n noAccount) AuditList(context.Context, onejob.AuditListParams) (onejob.AuditPage, error) {
	return onejob.AuditPage{}, n.refuse("audit")
}

func (n noAccount) AuditHeads(context.Context, string) ([]onejob.AuditHead, error) {
	return nil, n.refuse("audit")
}

func (n noAccount) IncidentList(context.Context, onejob.IncidentListParams) (onejob.IncidentPage, error) {
	return onejob.IncidentPage{}, n.refuse("incidents")
}

func (n noAccount) IncidentClose(context.Context, onejob.IncidentCloseParams) (onejob.Incident, error) {
	return onejob.Incident{}, n.refuse("incidents")
}

func (n noAccount) CostSum(context.Context, onejob.CostSumParams) (onejob.CostPage, error) {
	return onejob.CostPage{}, n.refuse("costs")
}
