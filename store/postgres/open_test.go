package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
)

func TestOpenRefusesAnOutdatedSchemaAndSaysWhatToDo(t *testing.T) {
	t.Parallel()

	_, err := postgres.Open(t.Context(), pgtest.URL(t), postgres.Options{})
	wantCode(t, err, onejob.CodeStoreUnavailable, "onejob migrate up")
}

func TestOpenRefusesASchemaFromTheFuture(t *testing.T) {
	t.Parallel()

	url := schema(t)
	if err := execute(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), url, postgres.Options{})
	wantCode(t, err, onejob.CodeStoreUnavailable, "newer program")
}

func TestOpenRefusesASchemaOfAnotherBuildAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]string{
		"WithOtherSteps":    "UPDATE schema_steps SET digest = 'of another text'",
		"WithoutItsDigests": "DROP TABLE schema_steps",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			if err := postgres.Migrate(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			if err := execute(t, url, change); err != nil {
				t.Fatal(err)
			}
			before := lines(t, url, sqlInventory)
			for _, migrate := range []bool{false, true} {
				_, err := postgres.Open(t.Context(), url, postgres.Options{Migrate: migrate})
				wantCode(t, err, onejob.CodeStoreUnavailable, "another build")
				wantCode(t, err, onejob.CodeStoreUnavailable, "CREATE SCHEMA")
			}
			steps, err := postgres.Status(t.Context(), url)
			wantCode(t, err, onejob.CodeStoreUnavailable, "another build")
			if len(steps) == 0 || !steps[0].Foreign {
				t.Errorf("the status is %+v; want the first step of another build", steps)
			}
			if diff := cmp.Diff(before, lines(t, url, sqlInventory)); diff != "" {
				t.Errorf("the schema has changed: %s", diff)
			}
		})
	}
}

func TestOpenRefusesAServerWithoutAStandbyWhereReplicationIsPromised(t *testing.T) {
	t.Parallel()

	_, err := postgres.Open(t.Context(), schema(t), postgres.Options{Durability: postgres.Replicated})
	wantCode(t, err, onejob.CodeInvalidArgument, "synchronous_standby_names")
}

func TestOpenRefusesAServerThatLosesCommits(t *testing.T) {
	t.Parallel()

	c, err := pgtest.New(t.Context())
	if err != nil {
		t.Skip("no cluster:", err)
	}
	t.Cleanup(func() { _ = c.Remove() })
	if err := c.Start(t.Context(), "fsync=off", "full_page_writes=off", "synchronous_commit=off"); err != nil {
		t.Fatal(err)
	}
	_, err = postgres.Open(t.Context(), c.URL(), postgres.Options{Migrate: true})
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		wantCode(t, err, onejob.CodeInvalidArgument, setting+" is off")
	}
}

func TestOpenReportsEveryWrongOptionAtOnce(t *testing.T) {
	t.Parallel()

	_, err := postgres.Open(t.Context(), "postgres://127.0.0.1:1/none", postgres.Options{MaxConns: -1, Durability: "hoped for"})
	wantCode(t, err, onejob.CodeInvalidArgument, "MaxConns")
	wantCode(t, err, onejob.CodeInvalidArgument, "Durability")
}

func TestMigrateFromManyProgramsAtOnceMigratesOnce(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	group, ctx := errgroup.WithContext(t.Context())
	for range 3 {
		group.Go(func() error { return postgres.Migrate(ctx, url) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	open(t, url)
	for _, m := range status(t, url) {
		if m.AppliedAt.IsZero() {
			t.Errorf("step %d %s is not applied", m.Version, m.Name)
		}
	}
}

func TestStatusBeforeAnythingIsAppliedListsEveryStep(t *testing.T) {
	t.Parallel()

	steps := status(t, pgtest.URL(t))
	if len(steps) == 0 || !steps[0].AppliedAt.IsZero() {
		t.Errorf("the status is %+v; want every step, not applied", steps)
	}
}

// The columns, constraints, indexes, triggers and functions of a schema.
const sqlInventory = `
SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) FROM information_schema.columns WHERE table_schema = current_schema()
UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
UNION ALL SELECT replace(indexdef, current_schema() || '.', '') FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL SELECT tgname FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace) AND NOT tgisinternal
UNION ALL SELECT prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
ORDER BY 1`

func TestPrintAppliedByHandIsWhatMigrateMakes(t *testing.T) {
	t.Parallel()

	migrated, byHand := pgtest.URL(t), schema(t)
	if err := postgres.Migrate(t.Context(), migrated); err != nil {
		t.Fatal(err)
	}
	withoutLock := func(lines []string) (kept []string) {
		for _, l := range lines {
			if !strings.Contains(l, "goose_lock") && l != "PRIMARY KEY (lock_id)" {
				kept = append(kept, l)
			}
		}
		return kept
	}
	if diff := cmp.Diff(withoutLock(lines(t, migrated, sqlInventory)), withoutLock(lines(t, byHand, sqlInventory))); diff != "" {
		t.Errorf("migrated (-), by hand (+):\n%s", diff)
	}
	if err := postgres.Migrate(t.Context(), byHand); err != nil {
		t.Errorf("migrate what was made by hand: %v", err)
	}
}

func status(t *testing.T, url string) []postgres.Migration {
	t.Helper()
	steps, err := postgres.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func wantCode(t *testing.T, err error, code onejob.Code, text string) {
	t.Helper()
	if err == nil || onejob.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v; want code %s and a text with %q", err, code, text)
	}
}
