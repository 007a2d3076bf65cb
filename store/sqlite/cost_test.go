package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// The rule is said twice, in Go and in SQL: this holds the second to the first.
func TestWhatMayCostMoreIsTheSameInSQL(t *testing.T) {
	t.Parallel()

	s := open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{})
	for _, state := range onejob.AttemptStates() {
		for _, outcome := range append(onejob.Outcomes(), "") {
			for _, a := range []onejob.Attempt{
				{Phase: onejob.PhaseSent}, {Phase: onejob.PhaseSent, Currency: "EUR"}, {Phase: onejob.PhaseNotSent},
			} {
				a.State, a.Outcome = state, outcome
				got, err := s.MayCostMore(t.Context(), string(state), string(outcome), string(a.Phase), a.Currency)
				if err != nil || got != a.MayCostMore() {
					t.Errorf("%s, %q, %q, %q: SQL says %v, %v; want %v", state, outcome, a.Phase, a.Currency, got, err, a.MayCostMore())
				}
			}
		}
	}
}
