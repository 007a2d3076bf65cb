package postgres_test

import (
	"fmt"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

// The rule is said twice, in Go and in SQL: this holds the second to the first.
func TestWhatMayCostMoreIsTheSameInSQL(t *testing.T) {
	t.Parallel()

	url := schema(t)
	for _, state := range onejob.AttemptStates() {
		for _, outcome := range append(onejob.Outcomes(), "") {
			for _, a := range []onejob.Attempt{
				{Phase: onejob.PhaseSent}, {Phase: onejob.PhaseSent, Currency: "EUR"}, {Phase: onejob.PhaseNotSent},
			} {
				a.State, a.Outcome = state, outcome
				got := lines(t, url, "SELECT ("+postgres.SQLMayCostMore+")::text FROM (VALUES ($1, nullif($2, ''), $3, $4)) AS a (state, outcome, phase, currency)",
					string(state), string(outcome), string(a.Phase), a.Currency)
				if len(got) != 1 || got[0] != fmt.Sprint(a.MayCostMore()) {
					t.Errorf("%s, %q, %q, %q: SQL says %v; want %v", state, outcome, a.Phase, a.Currency, got, a.MayCostMore())
				}
			}
		}
	}
}
