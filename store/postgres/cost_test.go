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
			for _, currency := range []string{"", "EUR"} {
				a := onejob.Attempt{State: state, Outcome: outcome, Currency: currency}
				got := lines(t, url, "SELECT ("+postgres.SQLMayCostMore+")::text FROM (VALUES ($1, nullif($2, ''), $3)) AS a (state, outcome, currency)",
					string(state), string(outcome), currency)
				if len(got) != 1 || got[0] != fmt.Sprint(a.MayCostMore()) {
					t.Errorf("%s, %q, %q: SQL says %v; want %v", state, outcome, currency, got, a.MayCostMore())
				}
			}
		}
	}
}
