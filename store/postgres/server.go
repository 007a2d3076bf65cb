package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onejob-dev/onejob"
)

// oldestServer is the first version whose features the store relies on, as
// server_version_num has it.
const oldestServer = 150000

const sqlServer = `
SELECT current_setting('server_version_num')::integer,
       current_setting('server_version'),
       current_setting('fsync'),
       current_setting('full_page_writes'),
       current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names')`

type server struct {
	number  int
	version string

	fsync, fullPageWrites string
	synchronousCommit     string
	standbys              string
}

// checkServer returns everything that makes the server unfit to be trusted with
// an acknowledgement.
func checkServer(ctx context.Context, pool *pgxpool.Pool, want Durability) error {
	var s server
	err := pool.QueryRow(ctx, sqlServer).Scan(&s.number, &s.version, &s.fsync, &s.fullPageWrites, &s.synchronousCommit, &s.standbys)
	if err != nil {
		return onejob.Unavailable(err)
	}
	if err := s.faults(want); err != nil {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the PostgreSQL server cannot be trusted: " + err.Error(), Err: err}
	}
	return nil
}

func (s server) faults(want Durability) error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(s.number < oldestServer, "it is version %s, and 15 is the oldest that will do", s.version)
	add(s.fsync == "off", "fsync is off: a power cut loses acknowledged jobs and may break the database; set fsync = on")
	add(s.fullPageWrites == "off", "full_page_writes is off: a power cut may break the database; set full_page_writes = on")
	add(s.synchronousCommit == "off", "synchronous_commit is off: a crash loses acknowledged jobs; set synchronous_commit = on")
	if want == Replicated {
		add(s.synchronousCommit == "local", "synchronous_commit is local, and durability replicated needs on, remote_write or remote_apply")
		add(s.standbys == "", "synchronous_standby_names is empty, and durability replicated needs a synchronous standby")
	}
	return errors.Join(errs...)
}
