package cli

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/store/postgres"
)

// checkPostgres looks at the server and the schema beside the store itself, which
// may not have opened for what is found here.
func (x *examination) checkPostgres(ctx context.Context, opened bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, x.store.Postgres)
	if err != nil {
		if opened {
			x.problem("store: %s", oneLine(err))
		}
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	checks := []func(context.Context, *pgx.Conn) error{x.checkStandbys, x.checkVacuum, x.checkBloat, x.checkHorizon, x.checkWAL}
	if opened { // another schema has other indexes
		checks = append(checks, x.checkShape)
	}
	for _, check := range checks {
		if err := check(ctx, conn); err != nil {
			x.problem("store: %s", oneLine(err))
		}
	}
}

const sqlStandbys = `
SELECT count(*) FILTER (WHERE sync_state = 'async'), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), clock_timestamp()
  FROM pg_stat_replication`

// checkStandbys looks for standbys that may lack what was acknowledged, for one that
// is needed and not there, and for a clock far from ours.
func (x *examination) checkStandbys(ctx context.Context, conn *pgx.Conn) error {
	var asynchronous, synchronous int
	var now time.Time
	if err := conn.QueryRow(ctx, sqlStandbys).Scan(&asynchronous, &synchronous, &now); err != nil {
		return err
	}
	replicated := x.cfg.Durability == string(postgres.Replicated)
	if asynchronous > 0 && !replicated {
		x.problem("store: %d standbys replicate asynchronously; after a failover to one of them acknowledged jobs are lost and may run twice", asynchronous)
	}
	if replicated && synchronous == 0 {
		x.problem("store: durability is replicated and no synchronous standby is connected, so every commit waits for one; start it, or see synchronous_standby_names")
	}
	const tolerable = 5 * time.Second
	if skew := now.Sub(x.env.NowFunc()).Abs(); skew > tolerable {
		x.problem("clock: this machine and the database are %s apart; the database decides leases, and this machine when the last byte must be out", skew.Round(time.Second))
	}
	return nil
}

// each reads rows into what scan makes of them.
func each(ctx context.Context, conn *pgx.Conn, scan func(pgx.CollectableRow) error, sql string, args ...any) error {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, scan(row) })
	return err
}

// aside runs act in a transaction that is rolled back.
func aside(ctx context.Context, conn *pgx.Conn, act func(pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(act(tx), tx.Rollback(ctx))
}
