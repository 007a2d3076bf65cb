package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

// generator is a store that can be filled with honest rows: one finished and one
// queued job are made by the store itself, and the rest are copies of their rows,
// with ids, parts, keys, owners and times of their own, through the real tables,
// constraints, triggers and indexes.
type generator struct {
	services *services
	url      string
	store    *postgres.Store
	conn     *pgx.Conn

	holds     size
	made      int // numbers given to keys
	filled    int // rows generated
	templates [2]onejob.JobRef
	claimed   []onejob.Claimed
	lastOwner string
}

// Templates.
const (
	templateFinished = iota
	templateQueued
)

const (
	owners       = 1000
	measureBatch = 64     // of creations and claims
	fillBatch    = 20_000 // rows of one statement
)

func (g *generator) open(ctx context.Context) (err error) {
	if g.url, err = g.services.newDatabase(ctx); err != nil {
		return err
	}
	return g.connect(ctx)
}

func (g *generator) connect(ctx context.Context) (err error) {
	if g.store, err = postgres.Open(ctx, g.url, postgres.Options{Migrate: true, MaxConns: 4}); err != nil {
		return err
	}
	if g.conn, err = pgx.Connect(ctx, g.url); err != nil {
		return errors.Join(err, g.store.Close())
	}
	return nil
}

func (g *generator) close() error {
	return errors.Join(g.conn.Close(context.Background()), g.store.Close())
}

func (g *generator) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := g.conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// intents are creations under new keys of random owners.
func (g *generator) intents(count int) ([]onejob.JobCreateParams, error) {
	policy, err := kinds()[kind].Policy.WithDefaults()
	if err != nil {
		return nil, err
	}
	params := make([]onejob.JobCreateParams, count)
	for i := range params {
		g.made++
		owner, key := fmt.Sprintf("owner-%d", rand.IntN(owners)), fmt.Sprintf("key-%d", g.made)
		part, hash := onejob.PartOf(owner, key), sha256.Sum256([]byte(key))
		params[i] = onejob.JobCreateParams{
			ID: onejob.NewJobID(part, time.Now()), Owner: owner, Part: part,
			KeyHash: hash[:], KeyPrefix: key[:min(8, len(key))], Fingerprint: hash[:], FingerprintVersion: 1,
			Token: onejob.NewToken(), Kind: kind, Input: input, Policy: policy,
		}
	}
	return params, nil
}

// starting is how a worker starts attempts.
func starting() onejob.StartParams {
	return onejob.StartParams{Worker: "bench", Lease: time.Hour, Since: time.Now(), Targets: map[string]onejob.TargetPins{"t": {Digest: "d"}}}
}

func (g *generator) create(ctx context.Context) (int, error) {
	params, err := g.intents(measureBatch)
	if err != nil {
		return 0, err
	}
	created, err := g.store.JobCreate(ctx, params)
	for _, r := range created {
		err = errors.Join(err, r.Err)
	}
	return len(created), err
}

func (g *generator) claim(ctx context.Context) (int, error) {
	r, err := g.store.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: starting(), Max: measureBatch, Mark: true, AfterOwner: g.lastOwner})
	g.lastOwner, g.claimed = r.LastOwner, append(g.claimed, r.Claimed...)
	return len(r.Claimed), err
}

// finishClaimed ends what was claimed, so that no round begins among more attempts
// under way than the one before.
func (g *generator) finishClaimed(ctx context.Context) error {
	defer func() { g.claimed = nil }()
	for some := range slices.Chunk(g.claimed, measureBatch) {
		params := make([]onejob.AttemptFinishParams, len(some))
		for i, c := range some {
			params[i] = success(c.Attempt)
		}
		finished, err := g.store.AttemptFinish(ctx, params)
		for _, r := range finished {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func success(a onejob.Attempt) onejob.AttemptFinishParams {
	return onejob.AttemptFinishParams{
		Ref:        onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID},
		ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeSucceeded, Phase: onejob.PhaseAnswered,
		Evidence: onejob.Evidence{Status: 200, BytesWritten: int64(len(input)), BytesRead: int64(len(result))},
		Result:   &onejob.Result{Body: result, ContentType: "application/json"},
	}
}

// grow fills the store up to a size, and has the database look at what it holds.
func (g *generator) grow(ctx context.Context, to size, p *progress) error {
	if to == g.holds {
		return nil
	}
	if err := g.makeTemplates(ctx); err != nil {
		return err
	}
	if err := g.services.set(ctx, "synchronous_commit = off", "full_page_writes = off", "autovacuum = off"); err != nil { // of what is generated
		return err
	}
	for template, count := range []int{to.finished - g.holds.finished, to.queued - g.holds.queued} {
		err := g.fillAll(ctx, template, count, func(left int) { p.say(fmt.Sprintf("filling up to %s, %s to go", to, thousands(left))) })
		if err != nil {
			return err
		}
	}
	g.holds = to
	p.say("VACUUM ANALYZE")
	if err := errors.Join(g.exec(ctx, "VACUUM ANALYZE"), g.services.set(ctx)); err != nil {
		return err
	}
	return g.exec(ctx, "CHECKPOINT")
}

func (g *generator) fillAll(ctx context.Context, template, count int, say func(left int)) error {
	for count > 0 {
		n := min(count, fillBatch)
		if err := g.fill(ctx, template, n); err != nil {
			return err
		}
		count -= n
		say(count)
	}
	return nil
}

// makeTemplates has the store make the jobs that are copied.
func (g *generator) makeTemplates(ctx context.Context) error {
	if g.templates[templateQueued].ID != "" {
		return nil
	}
	params, err := g.intents(2)
	if err != nil {
		return err
	}
	start := starting()
	params[templateFinished].Start = &start
	created, err := g.store.JobCreate(ctx, params)
	if err != nil {
		return err
	}
	for i, r := range created {
		if r.Err != nil {
			return r.Err
		}
		g.templates[i] = onejob.JobRef{Part: r.Job.Part, ID: r.Job.ID}
	}
	finished, err := g.store.AttemptFinish(ctx, []onejob.AttemptFinishParams{success(created[templateFinished].Started.Attempt)})
	if err != nil {
		return err
	}
	return finished[0].Err
}

// copies are the new values of copied rows, an array each. Every other column is
// the template's.
const copies = `unnest($1::smallint[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::interval[]) AS
    u (part, id, owner, key_hash, key_prefix, attempt_id, ago)`

// Jobs come one after another: who is younger lies behind, in every table, as it is
// where rows were not copied.
const (
	oldest = 35 * 24 * time.Hour
	apart  = 250 * time.Millisecond
)

// age is that of the next row that is generated.
func (g *generator) age() time.Duration {
	g.filled++
	return max(oldest-time.Duration(g.filled)*apart, time.Second)
}

// fill copies the rows of a template, one statement a table.
func (g *generator) fill(ctx context.Context, template, count int) error {
	params, err := g.intents(count)
	if err != nil {
		return err
	}
	var parts []int16
	var ids, owners, prefixes, attempts []string
	var hashes [][]byte
	var ago []time.Duration
	for _, p := range params {
		parts, ids, owners = append(parts, int16(p.Part)), append(ids, p.ID), append(owners, p.Owner)
		hashes, prefixes = append(hashes, p.KeyHash), append(prefixes, p.KeyPrefix)
		attempts = append(attempts, onejob.NewAttemptID(p.ID, 1))
		ago = append(ago, g.age())
	}
	from := g.templates[template]
	return pgx.BeginFunc(ctx, g.conn, func(tx pgx.Tx) error {
		for _, table := range copiedTables(template) {
			sql, err := table.copying(ctx, tx)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, sql, parts, ids, owners, hashes, prefixes, attempts, ago, int16(from.Part), from.ID); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
		return nil
	})
}

// copied is a table whose rows are copied: which column names the job, and what its
// copies have of their own, beside part.
type copied struct {
	name, job string
	own       map[string]string
}

func copiedTables(template int) []copied {
	states := map[string]string{"job_id": "u.id", "owner": "u.owner", "created_at": "t.created_at - u.ago", "run_after": "t.run_after - u.ago"}
	tables := []copied{
		{"jobs", "id", map[string]string{
			"id": "u.id", "owner": "u.owner", "key_hash": "u.key_hash", "key_prefix": "u.key_prefix", "fingerprint": "u.key_hash",
			"created_at": "t.created_at - u.ago",
		}},
		{"job_states", "job_id", states},
	}
	if template == templateQueued {
		return tables
	}
	states["completed_by"], states["finished_at"] = "u.attempt_id", "t.finished_at - u.ago"
	return append(tables, copied{"attempts", "job_id", map[string]string{
		"job_id": "u.id", "id": "u.attempt_id", "claim_token": "u.attempt_id", "provider_key": "u.attempt_id", "started_at": "t.started_at - u.ago",
		"marked_at": "t.marked_at - u.ago", "finished_at": "t.finished_at - u.ago", "lease_expires_at": "t.lease_expires_at - u.ago",
		"send_by": "t.send_by - u.ago",
	}})
}

// copying is the statement that copies, with all columns that the table has.
func (c copied) copying(ctx context.Context, tx pgx.Tx) (string, error) {
	rows, err := tx.Query(ctx, "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum", c.name)
	if err != nil {
		return "", err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "t." + column
		if own, ok := c.own[column]; ok {
			values[i] = own
		}
		if column == "part" {
			values[i] = "u.part"
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s t, %s WHERE t.part = $8 AND t.%s = $9",
		c.name, strings.Join(columns, ", "), strings.Join(values, ", "), c.name, copies, c.job), nil
}
