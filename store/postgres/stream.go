package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// A missing row: the attempt is not held, another one's pieces are kept, or the piece is
// there. Of two attempts that come first at one time the one waits for the other's commit.
const (
	sqlChunkAppend = `
INSERT INTO chunks (part, job_id, number, attempt, previous, body)
SELECT a.part, a.job_id, u.number, a.number, CASE u.number WHEN 0 THEN NULL ELSE u.number - 1 END, u.body
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bytea[]) AS u (part, job_id, id, token, number, body)
  JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.claim_token = u.token AND a.state IN ('running', 'unknown')
  JOIN job_states s ON s.part = a.part AND s.job_id = a.job_id AND s.finished_at IS NULL
 WHERE u.number = 0
    OR EXISTS (SELECT FROM chunks c WHERE c.part = a.part AND c.job_id = a.job_id AND c.attempt = a.number AND c.number = u.number - 1)
ON CONFLICT (part, job_id, number) DO NOTHING
RETURNING job_id`

	sqlChunkLeader = `
SELECT s.state, a.number, a.state, a.claim_token, l.number, l.state,
       EXISTS (SELECT FROM chunks c WHERE c.part = a.part AND c.job_id = a.job_id AND c.number = $4)
  FROM attempts a
  JOIN job_states s ON s.part = a.part AND s.job_id = a.job_id
  LEFT JOIN chunks f ON f.part = a.part AND f.job_id = a.job_id AND f.number = 0
  LEFT JOIN attempts l ON l.part = f.part AND l.job_id = f.job_id AND l.number = f.attempt
 WHERE a.part = $1 AND a.job_id = $2 AND a.id = $3`

	sqlChunkList = `
SELECT attempt, body FROM chunks WHERE part = $1 AND job_id = $2 AND number >= $3 ORDER BY number LIMIT $4`

	sqlChunkDrop = `
DELETE FROM chunks c USING unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE c.part = u.part AND c.job_id = u.job_id
   AND EXISTS (SELECT FROM job_states s WHERE s.part = u.part AND s.job_id = u.job_id AND s.state = 'succeeded')`
)

// ChunkAppend implements [onejob.StreamStore], in one round trip.
func (s *Store) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	results := make([]onejob.ChunkAppendResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.ChunkAppendResult{Err: err} }
	added := make([]bool, len(params))
	act := func(ctx context.Context, t *txn, rows []int) error {
		rows = slices.SortedFunc(slices.Values(rows), func(a, b int) int { return compareRefs(jobOf(params[a].Ref), jobOf(params[b].Ref)) })
		some := column(rows, func(row int) *onejob.ChunkAppendParams { return &params[row] })
		refs := attemptRefs(column(some, func(p *onejob.ChunkAppendParams) onejob.AttemptRef { return p.Ref }))
		jobs := map[string]bool{}
		b := t.batch()
		b.Queue(sqlChunkAppend, refs.parts, refs.jobs, refs.ids,
			column(some, func(p *onejob.ChunkAppendParams) string { return clean(p.ClaimToken) }),
			column(some, func(p *onejob.ChunkAppendParams) int32 { return int32(p.Number) }),
			column(some, func(p *onejob.ChunkAppendParams) []byte { return p.Body }),
		).Query(idsInto(jobs))
		if err := t.commit(ctx, b); err != nil {
			return err
		}
		for _, row := range rows {
			added[row] = jobs[clean(params[row].Ref.JobID)]
		}
		return nil
	}
	if err := s.inWaves(ctx, len(params), func(row int) string { return params[row].Ref.JobID }, act, fail); err != nil {
		return nil, err
	}
	for row := range params {
		if added[row] || results[row].Err != nil {
			continue
		}
		var err error
		if results[row], err = s.refuseChunk(ctx, &params[row]); err != nil {
			return nil, onejob.Unavailable(err)
		}
	}
	return results, nil
}

// refuseChunk says why a piece was not added.
func (s *Store) refuseChunk(ctx context.Context, p *onejob.ChunkAppendParams) (onejob.ChunkAppendResult, error) {
	var job onejob.JobState
	var own onejob.Attempt
	var number pgtype.Int4
	var state pgtype.Text
	var kept bool
	err := s.pool.QueryRow(ctx, sqlChunkLeader, int16(p.Ref.Part), clean(p.Ref.JobID), clean(p.Ref.ID), int32(p.Number)).
		Scan(&job, &own.Number, &own.State, &own.ClaimToken, &number, &state, &kept)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return onejob.JudgeChunk(p, "", nil, nil, false), nil
	case err != nil:
		return onejob.ChunkAppendResult{}, err
	}
	var leader *onejob.Attempt
	if number.Valid {
		leader = &onejob.Attempt{Number: int(number.Int32), State: onejob.AttemptState(state.String)}
	}
	return onejob.JudgeChunk(p, job, &own, leader, kept), nil
}

// ChunkList implements [onejob.StreamStore].
func (s *Store) ChunkList(ctx context.Context, p onejob.ChunkListParams) (list onejob.Chunks, err error) {
	rows, err := s.pool.Query(ctx, sqlChunkList, int16(p.Job.Part), clean(p.Job.ID), int32(p.From), onejob.MaxChunksListed)
	if err != nil {
		return list, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		var body []byte
		err := row.Scan(&list.Attempt, &body)
		list.Bodies = append(list.Bodies, body)
		return err
	})
	return list, onejob.Unavailable(err)
}

// ChunkDrop implements [onejob.StreamStore].
func (s *Store) ChunkDrop(ctx context.Context, refs []onejob.JobRef) error {
	parts, ids := refColumns(distinct(refs))
	_, err := s.pool.Exec(ctx, sqlChunkDrop, parts, ids)
	return onejob.Unavailable(err)
}
