package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The limit on PostgreSQL: the fewest tables and constraints that hold one key to
// one job, one attempt in doubt and one result, and nothing else. No events, no
// evidence, no deadlines, no webhooks.
const rawSchema = `
CREATE TABLE jobs (
    id bigint PRIMARY KEY, owner text NOT NULL, key_hash bytea NOT NULL, fingerprint bytea NOT NULL,
    kind text NOT NULL, input bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (owner, key_hash)
);
ALTER TABLE jobs ALTER COLUMN input SET STORAGE EXTERNAL;
CREATE TABLE states (
    job_id bigint PRIMARY KEY, state text NOT NULL, version integer NOT NULL DEFAULT 1, completed_by bigint
) WITH (fillfactor = 70);
CREATE TABLE attempts (
    id bigint PRIMARY KEY, job_id bigint NOT NULL, state text NOT NULL, token text NOT NULL,
    lease timestamptz NOT NULL, result bytea
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX in_doubt ON attempts (job_id) WHERE state IN ('starting', 'running', 'unknown');`

func newRawPool(ctx context.Context, s *services, conns int) (*pgxpool.Pool, error) {
	pool, err := s.newPool(ctx, conns)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, rawSchema); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// naive is one transaction a step: created, claimed and marked, finished.
type naive struct {
	pool *pgxpool.Pool
	ids  counter
}

func openNaive(ctx context.Context, s *services, callers int) (entrant, error) {
	pool, err := newRawPool(ctx, s, min(callers, 64))
	return &naive{pool: pool}, err
}

func (n *naive) close() error {
	n.pool.Close()
	return nil
}

func (n *naive) live(ctx context.Context, key string) error {
	id := n.ids.next()
	hash := sha256.Sum256([]byte(key))
	err := n.tx(ctx, func(b *pgx.Batch) {
		b.Queue(`INSERT INTO jobs (id, owner, key_hash, fingerprint, kind, input) VALUES ($1, $2, $3, $3, $4, $5) ON CONFLICT DO NOTHING`, id, owner, hash[:], kind, input)
		b.Queue(`INSERT INTO states (job_id, state) VALUES ($1, 'queued')`, id)
	})
	if err == nil {
		err = n.tx(ctx, func(b *pgx.Batch) {
			b.Queue(`UPDATE states SET state = 'running' WHERE job_id = $1 AND state = 'queued'`, id)
			b.Queue(`INSERT INTO attempts (id, job_id, state, token, lease) VALUES ($1, $1, 'running', $2, now() + interval '30 seconds')`, id, key)
		})
	}
	if err == nil {
		err = n.tx(ctx, func(b *pgx.Batch) {
			b.Queue(`UPDATE attempts SET state = 'succeeded', result = $2 WHERE id = $1 AND token = $3 AND state = 'running'`, id, result, key)
			b.Queue(`UPDATE states SET state = 'succeeded', completed_by = $1, version = version + 1 WHERE job_id = $1 AND completed_by IS NULL`, id)
		})
	}
	return err
}

// tx is one transaction as a careful hand sends it: all of it in one round trip.
func (n *naive) tx(ctx context.Context, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	queue(b)
	b.Queue("COMMIT")
	return n.pool.SendBatch(ctx, b).Close()
}

// rawGrouped is the limit: callers share transactions, and a life is two commits,
// since the job is created with its first attempt running.
type rawGrouped struct {
	pool           *pgxpool.Pool
	ids            counter
	create, finish *committer[rawJob]
}

type rawJob struct {
	id   int64
	key  string
	hash []byte
}

func openRawGrouped(ctx context.Context, s *services, _ int) (entrant, error) {
	pool, err := newRawPool(ctx, s, 8)
	if err != nil {
		return nil, err
	}
	g := &rawGrouped{pool: pool}
	g.create, g.finish = newCommitter(g.createAll), newCommitter(g.finishAll)
	return g, nil
}

func (g *rawGrouped) close() error {
	g.pool.Close()
	return nil
}

func (g *rawGrouped) live(ctx context.Context, key string) error {
	hash := sha256.Sum256([]byte(key))
	job := rawJob{id: g.ids.next(), key: key, hash: hash[:]}
	if err := g.create.do(ctx, job); err != nil {
		return err
	}
	return g.finish.do(ctx, job)
}

const (
	rawCreate = `
WITH created AS (
    INSERT INTO jobs (id, owner, key_hash, fingerprint, kind, input)
    SELECT id, $1, hash, hash, $2, input FROM unnest($3::bigint[], $4::bytea[], $5::bytea[]) AS u (id, hash, input)
    ON CONFLICT (owner, key_hash) DO NOTHING RETURNING id
), standing AS (
    INSERT INTO states (job_id, state) SELECT id, 'running' FROM created
)
INSERT INTO attempts (id, job_id, state, token, lease)
SELECT u.id, u.id, 'running', u.token, now() + interval '30 seconds'
  FROM unnest($3::bigint[], $6::text[]) AS u (id, token) JOIN created USING (id)`
	rawFinish = `
WITH done AS (
    UPDATE attempts a SET state = 'succeeded', result = u.result
      FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS u (id, token, result)
     WHERE a.id = u.id AND a.token = u.token AND a.state = 'running' RETURNING a.id, a.job_id
)
UPDATE states s SET state = 'succeeded', completed_by = d.id, version = version + 1
  FROM done d WHERE s.job_id = d.job_id AND s.completed_by IS NULL`
)

func (g *rawGrouped) createAll(ctx context.Context, jobs []rawJob) error {
	ids, keys, hashes, inputs := make([]int64, len(jobs)), make([]string, len(jobs)), make([][]byte, len(jobs)), make([][]byte, len(jobs))
	for i, j := range jobs {
		ids[i], keys[i], hashes[i], inputs[i] = j.id, j.key, j.hash, input
	}
	return g.exec(ctx, len(jobs), rawCreate, owner, kind, ids, hashes, inputs, keys)
}

func (g *rawGrouped) finishAll(ctx context.Context, jobs []rawJob) error {
	ids, keys, results := make([]int64, len(jobs)), make([]string, len(jobs)), make([][]byte, len(jobs))
	for i, j := range jobs {
		ids[i], keys[i], results[i] = j.id, j.key, result
	}
	return g.exec(ctx, len(jobs), rawFinish, ids, keys, results)
}

func (g *rawGrouped) exec(ctx context.Context, rows int, sql string, args ...any) error {
	tag, err := g.pool.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != int64(rows) {
		err = fmt.Errorf("%d of %d rows", tag.RowsAffected(), rows)
	}
	return err
}

// What every contestant's jobs are made of: about a kilobyte in, a little out.
const (
	owner = "o"
	kind  = "k"
)

var (
	input  = fmt.Appendf(nil, `{"prompt":%q}`, repeated("a picture of a cat ", 50))
	result = []byte(`{"ok":true}`)
)

const leaseTime = 30 * time.Second
