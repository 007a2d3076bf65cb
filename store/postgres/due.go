package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// Jobs whose time has come join those that are due, longest due first. Only so many
// at once: the next claim goes on, and each is bounded.
const sqlComeDue = `
WITH c AS MATERIALIZED (
    SELECT s.part, s.job_id
      FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
           SELECT part, job_id FROM job_states
            WHERE waiting = 'queued' AND NOT due AND next_target = t.target AND run_after <= onejob_now()
            ORDER BY run_after
            LIMIT $2
              FOR NO KEY UPDATE SKIP LOCKED
      ) s
)
UPDATE job_states s SET due = true FROM c WHERE s.part = c.part AND s.job_id = c.job_id`

// comeDueSpare is how many more jobs than a claim takes may come due in it.
const comeDueSpare = 128

// The owners who have due jobs at these targets, one look into the index for each
// owner and target.
const sqlTurn = `
WITH RECURSIVE turn AS (
    SELECT ` + sqlNextOwner + `$3::text COLLATE "C"` + sqlNextOwnerTail + ` AS owner, 1 AS place
    UNION ALL
    SELECT ` + sqlNextOwner + `turn.owner` + sqlNextOwnerTail + `, place + 1
      FROM turn WHERE owner IS NOT NULL AND place <= $4
)`

const (
	sqlNextOwner = `(
        SELECT min(s.owner)
          FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
               SELECT owner FROM job_states
                WHERE waiting = 'queued' AND due AND next_target = t.target AND job_states.owner > `
	sqlNextOwnerTail = `
                ORDER BY owner LIMIT 1
          ) s)`
)

// One owner's jobs only.
const sqlTurnOfOne = `
WITH looked AS (SELECT $3::text COLLATE "C" AS owner, 1 AS place)`

// How much each owner may have: see [onejob.TurnLook.Share].
const (
	sqlShare = `, looked AS MATERIALIZED (
    SELECT owner, place FROM turn WHERE owner IS NOT NULL
), share AS MATERIALIZED (
    SELECT CASE WHEN $3 = '' THEN ($2 + count(*) - 1) / greatest(count(*), 1) ELSE 1 END AS most
      FROM looked WHERE place <= $4
)`
	sqlShareOfOne = `, share AS (SELECT $2::bigint AS most)`
)

// Rows that another claimer holds are passed over. The CTE is materialised so
// that the limit is applied once; as a subquery it is run again, and claims more.
// What is merged of several targets is locked at each of them; the surplus is free
// again when the transaction ends.
const (
	sqlJobsDue       = sqlTurn + sqlShare + sqlJobsDueHead + sqlJobsDueTail
	sqlJobsDueWanted = sqlTurn + sqlShare + sqlJobsDueHead + sqlWanted + sqlJobsDueTail
	sqlJobsDueOfOne  = sqlTurnOfOne + sqlShareOfOne + sqlJobsDueHead + sqlWanted + sqlJobsDueTail

	sqlJobsDueHead = `, c AS MATERIALIZED (
    SELECT l.owner, d.part, d.job_id
      FROM looked l CROSS JOIN LATERAL (
           SELECT a.part, a.job_id
             FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
                  SELECT s.part, s.job_id, s.priority, s.run_after FROM job_states s
                   WHERE s.waiting = 'queued' AND s.due AND s.next_target = t.target AND s.owner = l.owner
                     AND s.job_id <> ALL ($5::text[])`
	sqlJobsDueTail = `
                   ORDER BY s.priority DESC, s.run_after
                   LIMIT (SELECT most FROM share)
                     FOR NO KEY UPDATE SKIP LOCKED
             ) a
            ORDER BY a.priority DESC, a.run_after
            LIMIT (SELECT most FROM share)
      ) d
     WHERE l.place <= $4
     LIMIT $2
)
SELECT owner, part, job_id FROM c
UNION ALL
SELECT owner, NULL, NULL FROM looked`
)

// What a pull worker may be given, beside its targets and its owner. Jobs of other
// kinds are walked over, which a claimer who takes them all need not do.
const sqlWanted = `
                     AND ($6::text[] = '{}' OR EXISTS (SELECT FROM jobs j WHERE j.part = s.part AND j.id = s.job_id AND j.kind = ANY ($6::text[])))`

// NULL: nothing is to become due for these targets. What is due and was passed
// over, because another claimer holds it, is that one's. What is overdue and was
// not let come due yet is worth another claim at once.
const (
	sqlNextDue       = sqlNextDueHead + sqlNextDueTail
	sqlNextDueWanted = sqlNextDueHead + `
            AND $2::text IN ('', s.owner)
            AND ($3::text[] = '{}' OR EXISTS (SELECT FROM jobs j WHERE j.part = s.part AND j.id = s.job_id AND j.kind = ANY ($3::text[])))` + sqlNextDueTail

	sqlNextDueHead = `
SELECT min(n.run_after)
  FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
       SELECT s.run_after FROM job_states s
        WHERE s.waiting = 'queued' AND NOT s.due AND s.next_target = t.target`
	sqlNextDueTail = `
        ORDER BY s.run_after LIMIT 1
  ) n`
)

// dueJobs finds and locks what a claim may take, owners taking turns.
func dueJobs(ctx context.Context, t *txn, p onejob.AttemptClaimParams) (due []onejob.JobRef, last string, err error) {
	b := t.batch()
	b.Queue(sqlComeDue, targetsOf(p.StartParams), p.Max+comeDueSpare)
	return onejob.TakeTurns(&p, func(l onejob.TurnLook) (onejob.Turn, error) {
		var turn onejob.Turn
		queueLook(b, &p, &l, &turn)
		err := t.send(ctx, b)
		b = t.batch()
		return turn, err
	})
}

func queueLook(b *pgx.Batch, p *onejob.AttemptClaimParams, l *onejob.TurnLook, turn *onejob.Turn) {
	taken := column(l.Taken, func(r onejob.JobRef) string { return r.ID })
	sql, args := sqlJobsDue, []any{targetsOf(p.StartParams), l.Max, l.After, l.Owners, taken}
	switch {
	case p.Owner != "":
		args[2] = clean(p.Owner)
		sql, args = sqlJobsDueOfOne, append(args, texts(p.Kinds))
	case len(p.Kinds) > 0:
		sql, args = sqlJobsDueWanted, append(args, texts(p.Kinds))
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error { return addTurn(row, turn) })
	})
}

// addTurn reads an owner's due job, or an owner who was looked at.
func addTurn(row pgx.Row, turn *onejob.Turn) error {
	var owner string
	var part pgtype.Int2
	var id pgtype.Text
	err := row.Scan(&owner, &part, &id)
	if id.Valid {
		turn.Jobs = append(turn.Jobs, onejob.TurnJob{Owner: owner, Ref: onejob.JobRef{Part: uint8(part.Int16), ID: id.String}})
	} else {
		turn.Owners = append(turn.Owners, owner)
	}
	return err
}

func targetsOf(p onejob.StartParams) []string { return slices.Sorted(maps.Keys(p.Targets)) }

// nextDue queues the reading of when the next job is due, after all that this
// transaction does.
func nextDue(b *pgx.Batch, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) {
	sql, args := sqlNextDue, []any{targetsOf(p.StartParams)}
	if p.Owner != "" || len(p.Kinds) > 0 {
		sql, args = sqlNextDueWanted, append(args, clean(p.Owner), texts(p.Kinds))
	}
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
		var at pgtype.Timestamptz
		err := row.Scan(&at)
		r.NextDue = timeOf(at)
		return err
	})
}
