package grouped

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob"
)

// ChunkAppend implements [onejob.StreamStore]. The pieces of many answers that come at
// one time share a commit; those of one job follow each other.
func (s *Store) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	return s.chunks.do(ctx, params)
}

// streamsOf returns a store's own streams.
func streamsOf(store onejob.Store) onejob.StreamStore {
	if s, ok := store.(onejob.StreamStore); ok {
		return s
	}
	return noStreams{}
}

// noStreams stands in for a store that keeps no pieces: answers are shown whole.
type noStreams struct{}

func (noStreams) ChunkAppend(_ context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	results := make([]onejob.ChunkAppendResult, len(params))
	for i := range results {
		results[i].Err = errors.ErrUnsupported
	}
	return results, nil
}

func (noStreams) ChunkList(context.Context, onejob.ChunkListParams) (onejob.Chunks, error) {
	return onejob.Chunks{}, nil
}

func (noStreams) ChunkDrop(context.Context, []onejob.JobRef) error { return nil }
