package grouped_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/memory"
)

func TestAuditIncidentsAndCostsReachTheStoreBehind(t *testing.T) {
	t.Parallel()
	s := open(t, memory.Open(memory.Options{}), grouped.Options{})
	if _, err := s.AuditList(t.Context(), onejob.AuditListParams{Limit: 1}); err != nil {
		t.Errorf("AuditList: %v", err)
	}
	_, err := s.IncidentClose(t.Context(), onejob.IncidentCloseParams{ID: onejob.NewIncidentID(1, 1), Note: "none"})
	if onejob.CodeOf(err) != onejob.CodeNotFound {
		t.Errorf("IncidentClose answered %v; want the store's own %q", err, onejob.CodeNotFound)
	}
	if _, err := s.CostSum(t.Context(), onejob.CostSumParams{Limit: 1}); err != nil {
		t.Errorf("CostSum: %v", err)
	}
}

func TestAStoreWithoutAuditIncidentsAndCostsSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, &slowStore{}, grouped.Options{})
	_, audit := s.AuditList(t.Context(), onejob.AuditListParams{Limit: 1})
	_, heads := s.AuditHeads(t.Context(), "")
	_, list := s.IncidentList(t.Context(), onejob.IncidentListParams{Limit: 1})
	_, closed := s.IncidentClose(t.Context(), onejob.IncidentCloseParams{Note: "none"})
	_, sums := s.CostSum(t.Context(), onejob.CostSumParams{Limit: 1})
	for name, err := range map[string]error{"AuditList": audit, "AuditHeads": heads, "IncidentList": list, "IncidentClose": closed, "CostSum": sums} {
		if onejob.CodeOf(err) != onejob.CodeInternal {
			t.Errorf("%s answered %v; want %q", name, err, onejob.CodeInternal)
		}
	}
}
