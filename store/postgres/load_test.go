package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/store/postgres"
)

// A plan that finds rows by their part alone reads one of 256 of all there are. Plans
// are made while tables are empty, and stay until these are analysed.
func TestAJobIsFoundByAllOfItsKey(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), schema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	parts, ids, keys := []int16{1}, []string{"job_1"}, [][]byte{{1}}
	for name, tt := range map[string]struct {
		sql  string
		args []any
	}{
		"jobs":    {postgres.SQLJobs, []any{parts, ids, ids}},
		"results": {postgres.SQLResultsOfJobs, []any{parts, ids, ids}},
		"keys":    {postgres.SQLJobsByKey, []any{parts, ids, keys}},
	} {
		rows, err := conn.Query(t.Context(), "EXPLAIN "+tt.sql, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if strings.Contains(line, "Index Cond") && !strings.Contains(line, " AND ") {
				t.Errorf("%s are looked for by%s in\n%s", name, line, strings.Join(plan, "\n"))
			}
		}
	}
}
