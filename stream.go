package onejob

import (
	"context"
	"errors"
)

// StreamStore keeps what has come of answers that arrive in pieces, so that whoever
// asks for one meanwhile, or again, is shown it from its first byte and then follows.
// A store may do without: then an answer is shown when it is whole.
//
// The pieces that a job keeps are those of one attempt, the first that had any. They
// go once the job has succeeded, whose result has them all, and otherwise with its
// payload.
type StreamStore interface {
	// ChunkAppend adds pieces to answers of open jobs, each under its attempt's claim
	// token while that is running or unknown. A repeat of one that is there changes nothing.
	ChunkAppend(ctx context.Context, params []ChunkAppendParams) ([]ChunkAppendResult, error)
	// ChunkList reads pieces of one job's answer in their order: at most [MaxChunksListed].
	ChunkList(ctx context.Context, params ChunkListParams) (Chunks, error)
	// ChunkDrop forgets the pieces of jobs that have succeeded, and of no others.
	ChunkDrop(ctx context.Context, refs []JobRef) error
}

// Bounds of pieces.
const (
	// MaxChunkBytes is the most that one piece holds.
	MaxChunkBytes = 64 << 10
	// MaxChunksListed is the most pieces that are read at once.
	MaxChunksListed = 64
)

// ChunkAppendParams adds one piece.
type ChunkAppendParams struct {
	Ref        AttemptRef
	ClaimToken string
	Number     int // of the piece: 0 for the first, then without gaps
	Body       []byte
}

// ChunkAppendResult says what became of one piece. Err is nil if it is kept,
// [ErrClaimLost] if the attempt is not held under the token any more, and
// [ErrStreamTaken] if the job keeps another attempt's pieces, which is then in state Leader,
// or has another's answer.
type ChunkAppendResult struct {
	Err    error
	Leader AttemptState
}

// ErrStreamTaken : the job keeps the pieces of another attempt's answer.
var ErrStreamTaken = errors.New("the job shows another attempt's answer")

// ChunkListParams asks for the pieces of a job from number From on.
type ChunkListParams struct {
	Job  JobRef
	From int
}

// Chunks are pieces of one attempt's answer, in their order and without gaps.
type Chunks struct {
	Attempt int // its number; zero: there are none
	Bodies  [][]byte
}

// JudgeChunk says why a piece of an attempt of a job in that state was not added. leader is the attempt whose pieces the
// job keeps, nil for none, and kept says that the piece is there already.
func JudgeChunk(p *ChunkAppendParams, job JobState, a, leader *Attempt, kept bool) ChunkAppendResult {
	switch {
	case a != nil && job == JobSucceeded && a.State.InDoubt():
		return ChunkAppendResult{Err: ErrStreamTaken, Leader: AttemptSucceeded}
	case job.Terminal() || a == nil || a.ClaimToken != p.ClaimToken || a.State != AttemptRunning && a.State != AttemptUnknown:
		return ChunkAppendResult{Err: ErrorOfLostClaim(p.Ref)}
	case leader != nil && leader.Number != a.Number:
		return ChunkAppendResult{Err: ErrStreamTaken, Leader: leader.State}
	case kept:
		return ChunkAppendResult{}
	}
	return ChunkAppendResult{Err: &Error{
		Code: CodeInvalidArgument, JobID: p.Ref.JobID, AttemptID: p.Ref.ID, Message: "the pieces of an answer have 1 to 65,536 bytes and come one after the other",
	}}
}
