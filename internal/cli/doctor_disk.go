package cli

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Less than both of these free is a disk that runs full.
const (
	littleFree      = 5 << 30
	littleFreeShare = 0.1
)

// checkFree looks whether the disk of a folder runs full. Where that cannot be found
// out nothing is said.
func (x *examination) checkFree(folder string) {
	free, all, known := spaceOf(folder)
	if known && free < littleFree && float64(free) < littleFreeShare*float64(all) {
		x.problem("store: the disk of %s has %s left of %s; when it is full no job is taken and none is finished: make room, or shorten retention", folder, bytesOf(int64(free)), bytesOf(int64(all)))
	}
}

// checkWAL looks for what keeps the log from being recycled, and for a full disk
// where the server is on this machine. What the role may not see is left out.
func (x *examination) checkWAL(ctx context.Context, conn *pgx.Conn) error {
	return errors.Join(
		permitted(x.checkSlots(ctx, conn)), permitted(x.checkArchiver(ctx, conn)),
		permitted(x.checkWALSize(ctx, conn)), permitted(x.checkDataDirectory(ctx, conn)),
	)
}

// permitted leaves out what is refused for want of a privilege.
func permitted(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		return nil
	}
	return err
}

func (x *examination) checkSlots(ctx context.Context, conn *pgx.Conn) error {
	return each(ctx, conn, func(row pgx.CollectableRow) error {
		var name string
		var kept int64
		if err := row.Scan(&name, &kept); err != nil {
			return err
		}
		x.problem("store: replication slot %q is used by nobody and keeps %s of WAL from being removed, until the disk is full; start its reader, or: SELECT pg_drop_replication_slot('%s')", name, bytesOf(kept), name)
		return nil
	}, `SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots
	     WHERE NOT active AND restart_lsn IS NOT NULL ORDER BY 1`)
}

func (x *examination) checkArchiver(ctx context.Context, conn *pgx.Conn) error {
	return each(ctx, conn, func(row pgx.CollectableRow) error {
		var segment string
		if err := row.Scan(&segment); err != nil {
			return err
		}
		x.problem("store: WAL is not archived any more, %s last, and is kept until it is; look at archive_command in the server's log", segment)
		return nil
	}, `SELECT coalesce(last_failed_wal, '') FROM pg_stat_archiver
	     WHERE current_setting('archive_mode') <> 'off' AND last_failed_time > coalesce(last_archived_time, '-infinity')`)
}

func (x *examination) checkWALSize(ctx context.Context, conn *pgx.Conn) error {
	var size, most int64
	err := conn.QueryRow(ctx, `
SELECT coalesce(sum(size), 0)::bigint, pg_size_bytes(current_setting('max_wal_size')) FROM pg_ls_waldir()`).Scan(&size, &most)
	if err == nil && size > 2*most {
		x.problem("store: the WAL has grown to %s, and max_wal_size is %s; a slot, a standby or an archive keeps it, or checkpoints cannot keep up", bytesOf(size), bytesOf(most))
	}
	return err
}

func (x *examination) checkDataDirectory(ctx context.Context, conn *pgx.Conn) error {
	if u, err := url.Parse(x.store.Postgres); err != nil || !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
		return nil
	}
	var folder string
	if err := conn.QueryRow(ctx, `SELECT current_setting('data_directory')`).Scan(&folder); err != nil {
		return err
	}
	if _, err := os.Stat(folder); err == nil {
		x.checkFree(folder)
	}
	return nil
}
