package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

const sqlOtherBuild = `UPDATE schema_steps SET digest = 'of another text'`

func TestASQLiteOfAnotherBuildIsToldByEveryCommand(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "x.db")
	url := "sqlite:" + path
	if got := run(t.Context(), nil, "", "keys", "create", "--owner", "shop", "--store", url); got.code != cli.ExitOK {
		t.Fatalf("%+v", got)
	}
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), sqlOtherBuild)
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"doctor"}, {"migrate", "status"}, {"migrate", "up"}} {
		if got := run(t.Context(), nil, "", append(args, "--store", url)...); got.code != cli.ExitFailed || !strings.Contains(got.stderr, "mv FILE* old/") {
			t.Errorf("%v: %+v; want a refusal that says what to do", args, got)
		}
	}
}

func TestAPostgresOfAnotherBuildIsToldByEveryCommand(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	d := &troubled{t: t, url: url}
	d.conn = d.connect()
	d.exec(sqlOtherBuild)
	env := map[string]string{"ONEJOB_SECRET": "a-secret-for-this-test-only"}
	for _, args := range [][]string{{"doctor"}, {"migrate", "status"}, {"migrate", "up"}} {
		got := run(t.Context(), env, "", append(args, "--store", url)...)
		if got.code != cli.ExitFailed || !strings.Contains(got.stderr, "CREATE SCHEMA onejob_new") {
			t.Errorf("%v: %+v; want a refusal that says what to do", args, got)
		}
		if args[0] == "migrate" && args[1] == "status" && !strings.Contains(got.stdout, "by another build") {
			t.Errorf("the status is\n%s", got.stdout)
		}
	}
}
