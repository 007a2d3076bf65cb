package sqlite

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
)

// ChunkAppend adds pieces to answers.
func (s *Store) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	return batch(ctx, s, params, (*tx).appendChunk, func(err error) onejob.ChunkAppendResult {
		return onejob.ChunkAppendResult{Err: err}
	})
}

func (x *tx) appendChunk(p *onejob.ChunkAppendParams) (onejob.ChunkAppendResult, error) {
	n, err := x.exec(`
		INSERT INTO chunks (seq, number, attempt, previous, body)
		SELECT a.seq, ?1, a.number, CASE ?1 WHEN 0 THEN NULL ELSE ?1 - 1 END, ?2 FROM attempts a JOIN job_states s ON s.seq = a.seq AND s.finished_at IS NULL
		WHERE a.seq = (SELECT seq FROM jobs WHERE part = ?3 AND id = ?4) AND a.id = ?5 AND a.claim_token = ?6 AND a.state IN ('running', 'unknown')
			AND (?1 = 0 OR EXISTS (SELECT 1 FROM chunks c WHERE c.seq = a.seq AND c.attempt = a.number AND c.number = ?1 - 1))
		ON CONFLICT (seq, number) DO NOTHING`,
		p.Number, p.Body, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, p.ClaimToken)
	if err != nil || n == 1 {
		return onejob.ChunkAppendResult{}, err
	}
	return x.refuseChunk(p)
}

// refuseChunk says why a piece was not added.
func (x *tx) refuseChunk(p *onejob.ChunkAppendParams) (onejob.ChunkAppendResult, error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(p.Ref.Part), p.Ref.JobID)
	if err != nil || j == nil {
		return onejob.JudgeChunk(p, "", nil, nil, false), err
	}
	var leader *onejob.Attempt
	kept := false
	err = x.query(`SELECT number, attempt FROM chunks WHERE seq = `+seqOfJob+` AND number IN (0, ?)`, func(r *row) error {
		number, attempt := int(r.Int64()), int(r.Int64())
		leader = attemptNumbered(&j.Job, attempt)
		kept = kept || number == p.Number
		return nil
	}, int(p.Ref.Part), p.Ref.JobID, p.Number)
	return onejob.JudgeChunk(p, j.State, onejob.AttemptOf(&j.Job, p.Ref.ID), leader, kept), err
}

func attemptNumbered(j *onejob.Job, number int) *onejob.Attempt {
	for i := range j.Attempts {
		if j.Attempts[i].Number == number {
			return &j.Attempts[i]
		}
	}
	return nil
}

// ChunkList reads pieces of one job's answer.
func (s *Store) ChunkList(ctx context.Context, p onejob.ChunkListParams) (list onejob.Chunks, err error) {
	err = s.read(ctx, func(x *tx) error {
		list = onejob.Chunks{}
		return x.query(`
			SELECT attempt, body FROM chunks WHERE seq = `+seqOfJob+` AND number >= ?
			ORDER BY number LIMIT `+fmt.Sprint(onejob.MaxChunksListed), func(r *row) error {
			list.Attempt = int(r.Int64())
			list.Bodies = append(list.Bodies, r.Bytes())
			return nil
		}, int(p.Job.Part), p.Job.ID, p.From)
	})
	return list, err
}

// ChunkDrop forgets the pieces of jobs that have succeeded.
func (s *Store) ChunkDrop(ctx context.Context, refs []onejob.JobRef) error {
	return s.write(ctx, func(x *tx) error {
		for _, ref := range refs {
			_, err := x.exec(`
				DELETE FROM chunks WHERE seq = (SELECT s.seq FROM job_states s WHERE s.seq = `+seqOfJob+` AND s.state = 'succeeded')`,
				int(ref.Part), ref.ID)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
