package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/store/postgres"
)

// By its part alone a result would be looked for among all attempts of the part, which
// takes a second where there are ten million.
func TestAResultIsFoundByItsJob(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), schema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN "+postgres.SQLResultsOfJobs, []int16{1}, []string{"job_1"}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "((part = s.part) AND (job_id = s.job_id))") {
		t.Errorf("the attempt is not looked up by its job:\n%s", plan)
	}
}
