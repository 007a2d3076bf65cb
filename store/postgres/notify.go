package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

var _ onejob.Notifier = (*Store)(nil)

// Each schema has a channel of its own, whatever its name.
const sqlChannel = `SELECT 'onejob_' || md5(current_schema())`

// What is told here is durable already, and whoever misses it polls: the commit of
// a ring, which one after the other must make, waits for no disk.
const sqlNotify = `
SELECT pg_notify('onejob_' || md5(current_schema()), u.message), set_config('synchronous_commit', 'off', true)
  FROM unnest($1::text[]) AS u (message)`

// Notify implements [onejob.Notifier]. A message has at most 7,999 bytes.
func (s *Store) Notify(ctx context.Context, messages []string) error {
	_, err := s.pool.Exec(ctx, sqlNotify, messages)
	return onejob.Unavailable(err)
}

const (
	// quietFor is how long nothing may be heard before the connection is tried, and
	// answerWithin how long that may take: one that broke without a word would be
	// listened to for ever.
	quietFor     = 15 * time.Second
	answerWithin = 5 * time.Second
	hangUpWithin = time.Second
)

// Listen implements [onejob.Notifier], on a connection of its own beside
// Options.MaxConns.
func (s *Store) Listen(ctx context.Context, ready func(), hear func(message string)) error {
	conn, err := s.listener(ctx)
	if err != nil {
		return onejob.Unavailable(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUpWithin)
		defer cancel()
		_ = conn.Close(closing)
	}()
	ready()
	for {
		message, err := next(ctx, conn)
		if err != nil {
			return onejob.Unavailable(err)
		}
		if message != "" {
			hear(message)
		}
	}
}

// listener takes a connection out of the pool for good, and listens on it.
func (s *Store) listener(ctx context.Context) (*pgx.Conn, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	conn := pooled.Hijack()
	var channel string
	if err = conn.QueryRow(ctx, sqlChannel).Scan(&channel); err == nil {
		_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
	}
	if err != nil {
		_ = conn.Close(ctx) // it is of no use
		return nil, err
	}
	return conn, nil
}

// next waits for a message. It returns none, without an error, when it was quiet
// and the connection is still alive.
func next(ctx context.Context, conn *pgx.Conn) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, quietFor)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	if err == nil {
		return n.Payload, nil
	}
	if ctx.Err() != nil || waiting.Err() == nil || conn.IsClosed() {
		return "", err
	}
	asking, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return "", conn.Ping(asking)
}
