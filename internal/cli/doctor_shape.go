package cli

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/store/postgres"
)

// shape is what a schema has beside its rows.
type shape struct {
	indexes map[string]index
	options map[string][]string // of tables: name=value
}

type index struct {
	table, definition string // without the schema
	valid             bool
}

// checkShape compares indexes and storage parameters with what the migrations make.
// The database itself says what that is: it makes the tables once more, as temporary
// ones in a transaction that is rolled back, and both are read in the same words.
func (x *examination) checkShape(ctx context.Context, conn *pgx.Conn) error {
	return aside(ctx, conn, func(tx pgx.Tx) error {
		var migrated bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('job_states') IS NOT NULL`).Scan(&migrated); err != nil || !migrated {
			return err // the store says that there is no schema
		}
		have, err := readShape(ctx, tx, "current_schema()::regnamespace")
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlTemporary); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, tablesOf(postgres.Print())); err != nil {
			return err
		}
		want, err := readShape(ctx, tx, "pg_my_temp_schema()")
		if err != nil {
			return err
		}
		x.compareIndexes(have.indexes, want.indexes)
		x.compareOptions(have.options, want.options)
		return nil
	})
}

// sqlTemporary has tables made as temporary ones. Functions, which defaults may call,
// are found where they are, since nobody looks for those among what is temporary.
const sqlTemporary = `SELECT set_config('search_path', 'pg_temp, ' || quote_ident(current_schema()), true), set_config('lock_timeout', '2s', true)`

var (
	sqlComment   = regexp.MustCompile(`--[^\n]*`)
	sqlShapes    = regexp.MustCompile(`(?s)\b(CREATE TABLE|CREATE INDEX|CREATE UNIQUE INDEX|ALTER TABLE|DROP INDEX)\b[^;]*;`)
	sqlOnSchema  = regexp.MustCompile(` ON \S+?\.`)
	sqlMakeIndex = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX `)
)

// tablesOf leaves of the migrations what makes tables and indexes. A temporary index
// cannot be made concurrently.
func tablesOf(migrations string) string {
	statements := sqlShapes.FindAllString(sqlComment.ReplaceAllString(migrations, ""), -1)
	return strings.ReplaceAll(strings.Join(statements, "\n"), " CONCURRENTLY", "")
}

func readShape(ctx context.Context, tx pgx.Tx, schema string) (shape, error) {
	s := shape{map[string]index{}, map[string][]string{}}
	err := each(ctx, tx.Conn(), func(row pgx.CollectableRow) error {
		var name string
		var i index
		err := row.Scan(&name, &i.table, &i.definition, &i.valid)
		i.definition = sqlOnSchema.ReplaceAllString(i.definition, " ON ")
		s.indexes[name] = i
		return err
	}, `SELECT c.relname, t.relname, pg_get_indexdef(i.indexrelid), i.indisvalid AND i.indisready
	      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
	     WHERE t.relkind = 'r' AND t.relnamespace = `+schema)
	if err != nil {
		return s, err
	}
	return s, each(ctx, tx.Conn(), func(row pgx.CollectableRow) error {
		var name string
		var options []string
		err := row.Scan(&name, &options)
		s.options[name] = options
		return err
	}, `SELECT relname, coalesce(reloptions, '{}') FROM pg_class WHERE relkind = 'r' AND relnamespace = `+schema)
}

func (x *examination) compareIndexes(have, want map[string]index) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		there, found := have[name]
		switch {
		case !found:
			x.problem("store: index %s of table %s is missing, so that what it is for reads the whole table, or is not guarded; make it again: %s",
				name, want[name].table, concurrently(want[name].definition))
		case !there.valid:
			x.problem("store: index %s of table %s is not valid, so it serves and guards nothing; build it again: REINDEX INDEX CONCURRENTLY %s", name, there.table, name)
		case there.definition != want[name].definition:
			x.problem("store: index %s is not the one that the migrations make; it is %q; drop it and make: %s", name, there.definition, concurrently(want[name].definition))
		}
	}
}

// concurrently has an index made while the table is in use.
func concurrently(definition string) string {
	return sqlMakeIndex.ReplaceAllStringFunc(definition, func(head string) string { return head + "CONCURRENTLY " })
}

func (x *examination) compareOptions(have, want map[string][]string) {
	for _, table := range slices.Sorted(maps.Keys(want)) {
		var lacks []string
		for _, option := range want[table] {
			if !slices.Contains(have[table], option) {
				lacks = append(lacks, strings.Replace(option, "=", " = ", 1))
			}
		}
		if len(lacks) > 0 {
			x.problem("store: table %s has not the settings that the migrations give it: ALTER TABLE %s SET (%s)", table, table, strings.Join(lacks, ", "))
		}
		if slices.Contains(have[table], "autovacuum_enabled=false") || slices.Contains(have[table], "autovacuum_enabled=off") {
			x.problem("store: autovacuum is off for table %s, which grows without end: ALTER TABLE %s RESET (autovacuum_enabled)", table, table)
		}
	}
}
