package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// chunks are what has come of an answer: all of one attempt.
type chunks struct {
	attempt int // its number
	bodies  [][]byte
}

// ChunkAppend adds pieces to answers.
func (s *Store) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	return each(ctx, s, params, func(p *onejob.ChunkAppendParams, _ time.Time) onejob.ChunkAppendResult {
		r := s.jobs[p.Ref.JobID]
		if r == nil {
			return onejob.JudgeChunk(p, "", nil, nil, false)
		}
		a := onejob.AttemptOf(&r.job, p.Ref.ID)
		has := s.chunks[p.Ref.JobID]
		var leader *onejob.Attempt
		if has != nil {
			leader = &r.job.Attempts[has.attempt-1]
		}
		kept := has != nil && p.Number >= 0 && p.Number < len(has.bodies)
		if judged := onejob.JudgeChunk(p, r.job.State, a, leader, true); judged.Err != nil || kept {
			return judged
		}
		switch {
		case len(p.Body) == 0 || len(p.Body) > onejob.MaxChunkBytes:
			return onejob.JudgeChunk(p, r.job.State, a, leader, false)
		case has == nil && p.Number == 0:
			s.chunks[p.Ref.JobID] = &chunks{attempt: a.Number, bodies: [][]byte{bytes.Clone(p.Body)}}
		case has != nil && p.Number == len(has.bodies):
			has.bodies = append(has.bodies, bytes.Clone(p.Body))
		default:
			return onejob.JudgeChunk(p, r.job.State, a, leader, false)
		}
		return onejob.ChunkAppendResult{}
	})
}

// ChunkList reads pieces of one job's answer.
func (s *Store) ChunkList(ctx context.Context, p onejob.ChunkListParams) (onejob.Chunks, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Chunks{}, err
	}
	defer end()
	has := s.chunks[p.Job.ID]
	if has == nil || p.From < 0 || p.From >= len(has.bodies) {
		return onejob.Chunks{}, nil
	}
	list := onejob.Chunks{Attempt: has.attempt}
	for _, body := range has.bodies[p.From:min(len(has.bodies), p.From+onejob.MaxChunksListed)] {
		list.Bodies = append(list.Bodies, bytes.Clone(body))
	}
	return list, nil
}

// ChunkDrop forgets the pieces of jobs that have succeeded.
func (s *Store) ChunkDrop(ctx context.Context, refs []onejob.JobRef) error {
	_, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, ref := range refs {
		if r := s.jobs[ref.ID]; r != nil && r.job.State == onejob.JobSucceeded {
			delete(s.chunks, ref.ID)
		}
	}
	return nil
}
