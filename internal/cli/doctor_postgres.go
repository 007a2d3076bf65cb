package cli

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/store/postgres"
)

const sqlStandbys = `SELECT count(*) FILTER (WHERE sync_state = 'async'), clock_timestamp() FROM pg_stat_replication`

// checkPostgres looks for standbys that may lack what was acknowledged, and for a
// clock far from ours.
func (x *examination) checkPostgres(ctx context.Context) {
	asynchronous, now, err := askPostgres(ctx, x.store.Postgres)
	if err != nil {
		x.problem("store: %s", oneLine(err))
		return
	}
	if asynchronous > 0 && x.cfg.Durability != string(postgres.Replicated) {
		x.problem("store: %d standbys replicate asynchronously; after a failover to one of them acknowledged jobs are lost and may run twice", asynchronous)
	}
	const tolerable = 5 * time.Second
	if skew := now.Sub(x.env.NowFunc()).Abs(); skew > tolerable {
		x.problem("clock: this machine and the database are %s apart; the database decides leases, and this machine when the last byte must be out", skew.Round(time.Second))
	}
}

func askPostgres(ctx context.Context, url string) (asynchronous int, now time.Time, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, now, err
	}
	err = conn.QueryRow(ctx, sqlStandbys).Scan(&asynchronous, &now)
	return asynchronous, now, errors.Join(err, conn.Close(ctx))
}
