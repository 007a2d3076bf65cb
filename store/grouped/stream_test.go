package grouped_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
)

// A piece that is said to be kept counts as shown.
func TestWithoutStreamsNoPieceIsKept(t *testing.T) {
	t.Parallel()
	s := open(t, &slowStore{}, grouped.Options{})
	results, err := s.ChunkAppend(t.Context(), []onejob.ChunkAppendParams{{Body: []byte("one")}})
	if err != nil || len(results) != 1 || results[0].Err == nil {
		t.Errorf("ChunkAppend answered %+v, %v; want that the piece is not kept", results, err)
	}
}
