package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// What is below these is no trouble, whatever its proportions.
const (
	fewDeadRows = 10_000
	deadShare   = 0.2
	littleSpace = 64 << 20
	tooManyFold = 4 // as large as it needs to be
)

// checkVacuum looks for an autovacuum that is off or falls behind.
func (x *examination) checkVacuum(ctx context.Context, conn *pgx.Conn) error {
	var vacuums, counts bool
	err := conn.QueryRow(ctx, `SELECT current_setting('autovacuum')::boolean, current_setting('track_counts')::boolean`).Scan(&vacuums, &counts)
	if err != nil {
		return err
	}
	if !vacuums || !counts {
		x.problem("store: autovacuum is off (autovacuum or track_counts), so tables and indexes grow without end; set both on and reload the server")
	}
	return each(ctx, conn, func(row pgx.CollectableRow) error {
		var table string
		var live, dead int64
		var last *time.Time
		if err := row.Scan(&table, &live, &dead, &last); err != nil {
			return err
		}
		when := "never"
		if last != nil {
			when = last.UTC().Format(time.RFC3339)
		}
		x.problem("store: table %s has %d dead rows beside %d live ones and was last vacuumed %s: autovacuum falls behind; now: VACUUM %s; then raise autovacuum_vacuum_cost_limit, or lower autovacuum_naptime",
			table, dead, live, when, table)
		return nil
	}, `SELECT relname, n_live_tup, n_dead_tup, greatest(last_vacuum, last_autovacuum) FROM pg_stat_user_tables
	     WHERE schemaname = current_schema() AND n_dead_tup > $1 AND n_dead_tup > $2::float8 * n_live_tup ORDER BY relname`, fewDeadRows, deadShare)
}

// What a table and an index need is estimated from what their columns were last seen
// to be wide, and the pages half full: what is far beyond that is bloat. Values
// that lie out of line count as the pointers that they are.
const (
	sqlTableBloat = `
SELECT c.relname, pg_relation_size(c.oid), (c.reltuples * (36 + w.width) / 0.6)::bigint
  FROM pg_class c
  JOIN LATERAL (SELECT sum(CASE WHEN avg_width > 2000 THEN 18 ELSE avg_width END) AS width
                  FROM pg_stats WHERE schemaname = current_schema() AND tablename = c.relname) w ON w.width IS NOT NULL
 WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.reltuples >= 0`

	sqlIndexBloat = `
SELECT c.relname, pg_relation_size(c.oid), (greatest(c.reltuples, 0) * (24 + w.width) / 0.5)::bigint
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
  JOIN LATERAL (SELECT sum(s.avg_width) AS width FROM pg_attribute a
                  JOIN pg_stats s ON s.schemaname = current_schema() AND s.tablename = t.relname AND s.attname = a.attname
                 WHERE a.attrelid = t.oid AND a.attnum = ANY (i.indkey)) w ON w.width IS NOT NULL
 WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace AND t.reltuples >= 0`
)

// checkBloat looks for tables and indexes out of proportion to what is in them.
func (x *examination) checkBloat(ctx context.Context, conn *pgx.Conn) error {
	for _, kind := range []struct{ sql, noun, remedy string }{
		{sqlTableBloat, "table", "vacuuming keeps it from growing; to give the space back, at a time without load: VACUUM FULL %s, or pg_repack"},
		{sqlIndexBloat, "index", "build it again while in use: REINDEX INDEX CONCURRENTLY %s"},
	} {
		err := each(ctx, conn, func(row pgx.CollectableRow) error {
			var name string
			var size, needs int64
			if err := row.Scan(&name, &size, &needs); err != nil {
				return err
			}
			if size > littleSpace && size > tooManyFold*needs {
				x.problem("store: %s %s takes %s and needs about %s; "+kind.remedy, kind.noun, name, bytesOf(size), bytesOf(needs), name)
			}
			return nil
		}, kind.sql+" ORDER BY c.relname")
		if err != nil {
			return err
		}
	}
	return nil
}

// longOpen is how long a transaction may be open before doctor speaks of it: until it
// ends nothing that died since it began is cleaned up.
const longOpen = 5 * time.Minute

// checkHorizon looks for who keeps vacuum from cleaning up.
func (x *examination) checkHorizon(ctx context.Context, conn *pgx.Conn) error {
	now := x.env.NowFunc()
	err := each(ctx, conn, func(row pgx.CollectableRow) error {
		var pid int
		var who, state string
		var since time.Time
		if err := row.Scan(&pid, &who, &state, &since); err != nil {
			return err
		}
		if now.Sub(since) > longOpen {
			x.problem("store: session %d (%s, %s) has had a transaction open since %s, and until it ends no dead row is cleaned up; end it: SELECT pg_terminate_backend(%d)",
				pid, clean(who), state, since.UTC().Format(time.RFC3339), pid)
		}
		return nil
	}, `SELECT pid, coalesce(nullif(application_name, ''), usename::text, ''), coalesce(state, ''), xact_start FROM pg_stat_activity
	     WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 5`)
	if err != nil {
		return err
	}
	return each(ctx, conn, func(row pgx.CollectableRow) error {
		var name string
		var since time.Time
		if err := row.Scan(&name, &since); err != nil {
			return err
		}
		if now.Sub(since) > longOpen {
			x.problem("store: the prepared transaction %q is open since %s, and until it ends no dead row is cleaned up; ROLLBACK PREPARED or COMMIT PREPARED it", name, since.UTC().Format(time.RFC3339))
		}
		return nil
	}, `SELECT gid, prepared FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 5`)
}

// bytesOf is a size for people.
func bytesOf(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
