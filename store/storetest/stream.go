package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

func streaming() []promise {
	return []promise{
		{name: "Chunk/InTheirOrderAndToTheEnd", test: testChunksInOrder, handles: 2},
		{name: "Chunk/ARepeatChangesNothing", test: testChunkRepeated},
		{name: "Chunk/NeverWithAGap", test: testChunkGap},
		{name: "Chunk/OnlyUnderTheClaim", test: testChunkClaim},
		{name: "Chunk/OfAnUnknownAttemptToo", test: testChunkUnknown},
		{name: "Chunk/NeverOfTwoAttempts", test: testChunkTaken},
		{name: "Chunk/NeverAfterTheAnswer", test: testChunkLate},
		{name: "Chunk/EachRowOfABatchIsJudgedByItself", test: testChunkBatch},
		{name: "Chunk/DroppedOnceTheResultHasThem", test: testChunkDrop},
		{name: "Chunk/ManyAreForgottenAtOnce", test: testChunkDropMany},
		{name: "Chunk/GoneWithThePayload", test: testChunkPurge},
		{name: "Chunk/TheDatabaseTakesNoOtherAttempts", test: testChunkConstraint},
		{name: "Concurrent/OneAttemptIsShown", test: testRaceChunks, handles: 3},
	}
}

// streams returns a handle's streams, or skips.
func (f *fixture) streams(s onejob.Store) onejob.StreamStore {
	f.Helper()
	streams, ok := s.(onejob.StreamStore)
	if !ok {
		f.Skip("the store keeps no pieces of answers")
	}
	return streams
}

func chunkOf(a onejob.Attempt, number int, body string) onejob.ChunkAppendParams {
	return onejob.ChunkAppendParams{Ref: refOf(a), ClaimToken: a.ClaimToken, Number: number, Body: []byte(body)}
}

func (f *fixture) tryChunk(p onejob.ChunkAppendParams) onejob.ChunkAppendResult {
	f.Helper()
	results, err := f.streams(f.s).ChunkAppend(f.Context(), []onejob.ChunkAppendParams{p})
	f.noError(err)
	return results[0]
}

func (f *fixture) chunk(a onejob.Attempt, number int, body string) {
	f.Helper()
	f.noError(f.tryChunk(chunkOf(a, number, body)).Err)
}

// wantChunks checks what is shown of a job from a number on.
func (f *fixture) wantChunks(a onejob.Attempt, from int, want ...string) {
	f.Helper()
	for i, s := range f.Stores {
		list, err := f.streams(s).ChunkList(f.Context(), onejob.ChunkListParams{Job: onejob.JobRef{Part: a.Part, ID: a.JobID}, From: from})
		f.noError(err)
		if got := fmt.Sprintf("%s", list.Bodies); got != fmt.Sprintf("%s", want) {
			f.Errorf("handle %d shows %s from %d on; want %s", i, got, from, want)
		}
		if len(want) > 0 && list.Attempt != a.Number {
			f.Errorf("handle %d shows attempt %d; want %d", i, list.Attempt, a.Number)
		}
	}
}

func testChunksInOrder(f *fixture) {
	a, other := f.running("k1"), f.running("k2")
	f.wantChunks(a, 0)
	f.chunk(a, 0, "one")
	f.chunk(other, 0, "other")
	f.chunk(a, 1, "two")
	f.wantChunks(a, 0, "one", "two")
	f.wantChunks(a, 1, "two")
	f.wantChunks(a, 2)
	for i := range onejob.MaxChunksListed {
		f.chunk(a, i+2, "more")
	}
	list, err := f.streams(f.s).ChunkList(f.Context(), onejob.ChunkListParams{Job: onejob.JobRef{Part: a.Part, ID: a.JobID}})
	f.noError(err)
	if len(list.Bodies) != onejob.MaxChunksListed {
		f.Errorf("%d pieces were read at once; want %d", len(list.Bodies), onejob.MaxChunksListed)
	}
	f.wantChunks(a, onejob.MaxChunksListed, "more", "more")
	f.chunk(a, onejob.MaxChunksListed+2, string(bytes.Repeat([]byte{0, 0xff}, onejob.MaxChunkBytes/2)))
}

func testChunkRepeated(f *fixture) {
	a := f.running("k1")
	f.chunk(a, 0, "one")
	f.chunk(a, 0, "one")
	f.chunk(a, 1, "two")
	f.chunk(a, 0, "not that")
	f.wantChunks(a, 0, "one", "two")
}

func testChunkGap(f *fixture) {
	a := f.running("k1")
	f.streams(f.s)
	f.wantCode(f.tryChunk(chunkOf(a, 1, "two")).Err, onejob.CodeInvalidArgument)
	f.chunk(a, 0, "one")
	f.wantCode(f.tryChunk(chunkOf(a, 2, "three")).Err, onejob.CodeInvalidArgument)
	f.wantChunks(a, 0, "one")
}

func testChunkClaim(f *fixture) {
	a, starting := f.running("k1"), f.starting("k2")
	f.streams(f.s)
	stolen := chunkOf(a, 0, "one")
	stolen.ClaimToken = "stolen"
	f.wantCode(f.tryChunk(stolen).Err, onejob.CodeClaimLost)
	f.wantCode(f.tryChunk(chunkOf(starting, 0, "one")).Err, onejob.CodeClaimLost)
	nobodys := chunkOf(a, 0, "one")
	nobodys.Ref.JobID, nobodys.Ref.ID = onejob.NewJobID(a.Part, time.UnixMilli(0)), "att_none"
	f.wantCode(f.tryChunk(nobodys).Err, onejob.CodeClaimLost)
	f.chunk(a, 0, "one")
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantCode(f.tryChunk(chunkOf(a, 1, "two")).Err, onejob.CodeClaimLost)
	f.wantChunks(a, 0, "one")
}

func testChunkUnknown(f *fixture) {
	a := f.running("k1")
	f.chunk(a, 0, "one")
	f.finish(a, onejob.OutcomeUnknown)
	f.chunk(a, 1, "two")
	f.wantChunks(a, 0, "one", "two")
}

// Two answers to one question are never shown as one.
func testChunkTaken(f *fixture) {
	f.streams(f.s)
	first := f.running("k1", racing(2, "a", "b"))
	second := f.mark(f.start(onejob.AttemptStartParams{JobID: first.JobID, Lane: 1, StartParams: claimer()}))
	f.chunk(second, 0, "one")
	for _, number := range []int{0, 1} {
		r := f.tryChunk(chunkOf(first, number, "uno"))
		if !errors.Is(r.Err, onejob.ErrStreamTaken) || r.Leader != onejob.AttemptRunning {
			f.Errorf("piece %d of the other attempt was answered %v, %q; want that a running attempt is shown", number, r.Err, r.Leader)
		}
	}
	f.chunk(second, 1, "two")
	f.finish(second, onejob.OutcomeResultLost)
	if r := f.tryChunk(chunkOf(first, 2, "tres")); !errors.Is(r.Err, onejob.ErrStreamTaken) || r.Leader != onejob.AttemptUnknown {
		f.Errorf("after the end of the shown one it was answered %v, %q; want that an unknown attempt is shown", r.Err, r.Leader)
	}
	f.wantChunks(second, 0, "one", "two")
}

// What is late is not shown after the winner's pieces are gone.
func testChunkLate(f *fixture) {
	f.streams(f.s)
	first := f.running("k1", racing(2, "a", "b"))
	second := f.mark(f.start(onejob.AttemptStartParams{JobID: first.JobID, Lane: 1, StartParams: claimer()}))
	f.finish(second, onejob.OutcomeSucceeded)
	if r := f.tryChunk(chunkOf(first, 0, "uno")); !errors.Is(r.Err, onejob.ErrStreamTaken) || r.Leader != onejob.AttemptSucceeded {
		f.Errorf("a piece of a job that has succeeded was answered %v, %q; want that another has answered", r.Err, r.Leader)
	}
	f.wantChunks(first, 0)
}

func testChunkBatch(f *fixture) {
	a, b := f.running("k1"), f.running("k2")
	stolen := chunkOf(b, 0, "no")
	stolen.ClaimToken = "stolen"
	results, err := f.streams(f.s).ChunkAppend(f.Context(), []onejob.ChunkAppendParams{
		chunkOf(b, 0, "one"), stolen, chunkOf(a, 0, "one"), chunkOf(b, 1, "two"), chunkOf(a, 2, "three"), chunkOf(a, 1, ""),
	})
	f.noError(err)
	var good []bool
	for _, r := range results {
		good = append(good, r.Err == nil)
	}
	if fmt.Sprint(good) != "[true false true true false false]" {
		f.Errorf("the batch was answered %v; want [true false true true false false]", good)
	}
	f.wantChunks(a, 0, "one")
	f.wantChunks(b, 0, "one", "two")
}

func testChunkDrop(f *fixture) {
	a, b := f.running("k1"), f.running("k2")
	f.chunk(a, 0, "one")
	f.chunk(a, 1, "two")
	f.chunk(b, 0, "one")
	f.finish(a, onejob.OutcomeSucceeded)
	f.finish(b, onejob.OutcomeResultLost)
	refs := []onejob.JobRef{{Part: a.Part, ID: a.JobID}, {Part: b.Part, ID: b.JobID}, {Part: 1, ID: onejob.NewJobID(1, time.UnixMilli(0))}}
	f.noError(f.streams(f.s).ChunkDrop(f.Context(), refs))
	f.wantChunks(a, 0)
	f.wantChunks(b, 0, "one")
}

// A long answer has thousands of pieces.
func testChunkDropMany(f *fixture) {
	const pieces = 3000
	a := f.running("k1")
	params := make([]onejob.ChunkAppendParams, pieces)
	for i := range params {
		params[i] = chunkOf(a, i, "word")
	}
	results, err := f.streams(f.s).ChunkAppend(f.Context(), params)
	f.noError(err)
	f.noError(results[pieces-1].Err)
	f.finish(a, onejob.OutcomeSucceeded)
	f.noError(f.streams(f.s).ChunkDrop(f.Context(), []onejob.JobRef{{Part: a.Part, ID: a.JobID}}))
	f.wantChunks(a, 0)
	f.wantChunks(a, pieces-1)
}

func testChunkPurge(f *fixture) {
	a := f.running("k1")
	f.chunk(a, 0, "one")
	f.chunk(a, 1, "two")
	f.finish(a, onejob.OutcomeExecutedFailed, withNext(onejob.NextNowhere))
	f.purgeAll()
	f.wantChunks(a, 0)
	f.shrinkAll()
}

func testChunkConstraint(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	f.streams(f.s)
	first := f.running("k1", racing(2, "a", "b"))
	f.mark(f.start(onejob.AttemptStartParams{JobID: first.JobID, Lane: 1, StartParams: claimer()}))
	f.chunk(first, 0, "one")
	f.chunk(first, 1, "two")
	for name, statement := range map[string]string{
		"a piece of the other attempt":    "UPDATE chunks SET attempt = 2 WHERE number = 1",
		"a piece of an attempt of nobody": "UPDATE chunks SET attempt = 3",
		"a gap":                           "DELETE FROM chunks WHERE number = 0",
		"a piece that follows nothing":    "UPDATE chunks SET number = 2, previous = NULL WHERE number = 1",
		"a piece that skips one":          "UPDATE chunks SET number = 2 WHERE number = 1",
		"an empty piece":                  "UPDATE chunks SET body = substr(body, 1, 0) WHERE number = 1",
		"two pieces of one number":        "UPDATE chunks SET number = 0, previous = NULL WHERE number = 1",
	} {
		if err := f.Exec(statement); err == nil {
			f.Errorf("the database took %s", name)
		}
	}
	f.wantChunks(first, 0, "one", "two")
}

func testRaceChunks(f *fixture) {
	for round := range rounds() {
		first := f.running(fmt.Sprintf("k%d", round), racing(2, "a", "b"))
		second := f.mark(f.start(onejob.AttemptStartParams{JobID: first.JobID, Lane: 1, StartParams: claimer()}))
		lanes := []onejob.Attempt{first, second}
		shown := make([]bool, len(lanes))
		f.race(len(lanes), func(ctx context.Context, i int, s onejob.Store) error {
			for number := range 3 {
				results, err := f.streams(s).ChunkAppend(ctx, []onejob.ChunkAppendParams{chunkOf(lanes[i], number, lanes[i].ID)})
				if err != nil {
					return err
				}
				switch err := results[0].Err; {
				case err == nil:
					shown[i] = true
				case !errors.Is(err, onejob.ErrStreamTaken):
					return err
				}
			}
			return nil
		})
		if shown[0] == shown[1] {
			f.Fatalf("round %d: pieces of the lanes were kept: %v; want those of one", round, shown)
		}
		winner := lanes[0]
		if shown[1] {
			winner = lanes[1]
		}
		f.wantChunks(winner, 0, winner.ID, winner.ID, winner.ID)
		for _, a := range lanes {
			f.finish(a, onejob.OutcomeSucceeded)
		}
	}
}
