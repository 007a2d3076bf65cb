package generation_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/generation"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/store/storetest"
)

// A watched store keeps every promise of the store behind it.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, handles int) storetest.Opened {
		t.Helper()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := memory.Open(memory.Options{NowFunc: func() time.Time { return now }})
		opened := storetest.Opened{Advance: func(d time.Duration) { now = now.Add(d) }}
		watched := watch(t, s, generation.Options{})
		for range handles {
			opened.Stores = append(opened.Stores, whole{watched, s})
		}
		return opened
	})
}

// whole shows what the suite asks a store for beside [onejob.Store].
type whole struct {
	*generation.Store
	memory *memory.Store
}

func (w whole) Generation(ctx context.Context) (onejob.Generation, error) {
	return w.memory.Generation(ctx)
}

func (w whole) GenerationAdvance(ctx context.Context) (onejob.Generation, error) {
	return w.memory.GenerationAdvance(ctx)
}

func (w whole) RestoreDeclare(ctx context.Context, p onejob.RestoreDeclareParams) (onejob.Generation, error) {
	return w.memory.RestoreDeclare(ctx, p)
}

func (w whole) RestoreHold(ctx context.Context, limit int) (onejob.RestoreHeld, error) {
	return w.memory.RestoreHold(ctx, limit)
}

func (w whole) RestoreConfirm(ctx context.Context, actor string) (onejob.Generation, error) {
	return w.memory.RestoreConfirm(ctx, actor)
}

func (w whole) JobEvents(ctx context.Context, ref onejob.JobRef) ([]onejob.JobEvent, error) {
	return w.memory.JobEvents(ctx, ref)
}

func (w whole) KeyCreate(ctx context.Context, k onejob.KeyCreateParams) error {
	return w.memory.KeyCreate(ctx, k)
}

func (w whole) KeyList(ctx context.Context) ([]onejob.APIKey, error) { return w.memory.KeyList(ctx) }

func (w whole) KeyRevoke(ctx context.Context, p onejob.KeyRevokeParams) error {
	return w.memory.KeyRevoke(ctx, p)
}

func watch(t *testing.T, s *memory.Store, o generation.Options) *generation.Store {
	t.Helper()
	watched, err := generation.New(t.Context(), s, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return watched
}

func number(t *testing.T, s *memory.Store) onejob.Generation {
	t.Helper()
	g, err := s.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mark(t *testing.T, path string) int64 {
	t.Helper()
	n, err := generation.ReadMark(path)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func intent(t *testing.T, key string) []onejob.JobCreateParams {
	t.Helper()
	policy, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return []onejob.JobCreateParams{{
		ID: onejob.NewJobID(0, time.Now()), Owner: "alice", KeyHash: []byte(key), Fingerprint: []byte("f"),
		Token: onejob.NewToken(), Kind: "charge", Input: []byte("{}"), Policy: policy,
	}}
}

func create(t *testing.T, s onejob.Store, key string) onejob.JobCreateResult {
	t.Helper()
	results, err := s.JobCreate(t.Context(), intent(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func TestWorkIsCountedAtMostOnceASecondAndAnIdleStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "generation")
		s := memory.Open(memory.Options{})
		watched := watch(t, s, generation.Options{Path: path})
		first := number(t, s).Number
		if first < 2 || mark(t, path) != first {
			t.Fatalf("at the start the store is at %d and the file at %d; want both moved", first, mark(t, path))
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { watched.Run(ctx); close(ended) }()

		time.Sleep(time.Hour)
		if got := number(t, s).Number; got != first {
			t.Errorf("after an idle hour the store is at %d; want %d", got, first)
		}
		for i := range 40 {
			create(t, watched, string(rune('a'+i)))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		got := number(t, s).Number
		if got < first+4 || got > first+6 {
			t.Errorf("after 4 s of work the store is at %d; want about %d", got, first+5)
		}
		if mark(t, path) != got {
			t.Errorf("the file is at %d; want %d", mark(t, path), got)
		}
		create(t, watched, "the last")
		stop()
		<-ended
		if mark(t, path) != got+1 || number(t, s).Number != got+1 {
			t.Errorf("at the end the file is at %d and the store at %d; want the last work counted", mark(t, path), number(t, s).Number)
		}
	})
}

// A copy that was made before a job was cancelled has it open. It must be told from
// what follows it, or the job would run after all.
func TestACancelledJobIsNotForgottenWithAnOldCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Options{})
		watched := watch(t, s, generation.Options{})
		running(t, watched)
		job := create(t, watched, "k").Job
		time.Sleep(time.Minute)
		before := number(t, s).Number
		results, err := watched.JobCancel(t.Context(), []onejob.JobCancelParams{{ID: job.ID, Actor: "olga"}})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		time.Sleep(time.Minute)
		if got := number(t, s).Number; got <= before {
			t.Errorf("after the cancellation the store is at %d, as it was before; want it moved on", got)
		}
	})
}

// running runs what watches until the test ends.
func running(t *testing.T, watched *generation.Store) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { watched.Run(ctx) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})
}

func TestAStoreBehindTheFileTakesNoWorkUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "generation")
		if err := os.WriteFile(path, []byte("41\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := memory.Open(memory.Options{})
		known := intent(t, "known")
		if results, err := s.JobCreate(t.Context(), known); err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		time.Sleep(time.Second)
		watched := watch(t, s, generation.Options{Path: path})
		running(t, watched)

		if g := number(t, s); !g.Unconfirmed() || g.Number != onejob.GenerationBeyond(41) {
			t.Fatalf("the store is %+v; want it restored, ahead of the file", g)
		}
		if err := watched.Check(t.Context()); onejob.CodeOf(err) != onejob.CodeRestoreUnconfirmed {
			t.Errorf("Check: %v; want that it is not ready", err)
		}
		if r := create(t, watched, "fresh"); onejob.CodeOf(r.Err) != onejob.CodeRestoreUnconfirmed {
			t.Errorf("a new job was answered %+v", r)
		}
		known[0].Token = onejob.NewToken()
		if results, err := watched.JobCreate(t.Context(), known); err != nil || !results[0].Existed {
			t.Errorf("a known key was answered %+v, %v; want its job", results, err)
		}
		if _, err := watched.AttemptClaim(t.Context(), onejob.AttemptClaimParams{Max: 1}); onejob.CodeOf(err) != onejob.CodeRestoreUnconfirmed {
			t.Errorf("a claim was answered %v", err)
		}
		// All was held before New returned.
		if g, err := s.RestoreConfirm(t.Context(), "olga"); err != nil || g.Unconfirmed() {
			t.Fatalf("confirming answered %+v, %v", g, err)
		}
		time.Sleep(3 * time.Second)
		if r := create(t, watched, "fresh"); r.Err != nil || r.Existed {
			t.Errorf("seconds after the confirmation a new job was answered %+v", r)
		}
	})
}

func TestAStoreThatFallsBehindWhileItIsInUseIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, s := memory.Open(memory.Options{}), &replaced{}
		s.now.Store(first)
		watched, err := generation.New(t.Context(), first, s, generation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		running(t, watched)
		for i := range 5 {
			create(t, watched, string(rune('a'+i)))
			time.Sleep(2 * time.Second)
		}
		s.now.Store(memory.Open(memory.Options{})) // an old copy, at number 1
		time.Sleep(11 * time.Second)
		if g := number(t, s.now.Load()); !g.Unconfirmed() {
			t.Errorf("the copy is %+v; want it found", g)
		}
	})
}

// replaced is a store whose database somebody can put another in place of.
type replaced struct{ now atomic.Pointer[memory.Store] }

func (r *replaced) Generation(ctx context.Context) (onejob.Generation, error) {
	return r.now.Load().Generation(ctx)
}

func (r *replaced) GenerationAdvance(ctx context.Context) (onejob.Generation, error) {
	return r.now.Load().GenerationAdvance(ctx)
}

func (r *replaced) RestoreDeclare(ctx context.Context, p onejob.RestoreDeclareParams) (onejob.Generation, error) {
	return r.now.Load().RestoreDeclare(ctx, p)
}

func (r *replaced) RestoreHold(ctx context.Context, limit int) (onejob.RestoreHeld, error) {
	return r.now.Load().RestoreHold(ctx, limit)
}

func (r *replaced) RestoreConfirm(ctx context.Context, actor string) (onejob.Generation, error) {
	return r.now.Load().RestoreConfirm(ctx, actor)
}

func TestAStoreThatAnotherNodeFoundRestoredIsLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Options{})
		watched := watch(t, s, generation.Options{LookEvery: time.Hour})
		running(t, watched)
		time.Sleep(2 * time.Second)
		if _, err := s.RestoreDeclare(t.Context(), onejob.RestoreDeclareParams{Seen: 99}); err != nil {
			t.Fatal(err)
		}
		if r := create(t, watched, "fresh"); onejob.CodeOf(r.Err) != onejob.CodeRestoreUnconfirmed {
			t.Fatalf("a new job was answered %+v", r)
		}
		time.Sleep(2 * time.Second)
		if _, err := watched.AttemptClaim(t.Context(), onejob.AttemptClaimParams{Max: 1}); onejob.CodeOf(err) != onejob.CodeRestoreUnconfirmed {
			t.Errorf("a claim was answered %v; want that this node knows", err)
		}
	})
}

func TestAMarkThatCannotBeUnderstoodStopsTheStart(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "one", "-1", "12 13", "9223372036854775807"} {
		path := filepath.Join(t.TempDir(), "generation")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := memory.Open(memory.Options{})
		if _, err := generation.New(t.Context(), s, s, generation.Options{Path: path}); err == nil {
			t.Errorf("a file that says %q was taken", text)
		}
	}
	s := memory.Open(memory.Options{})
	if _, err := generation.New(t.Context(), s, s, generation.Options{Path: filepath.Join(t.TempDir(), "no", "such", "folder")}); err == nil {
		t.Error("a file that cannot be written was taken")
	}
	if _, err := generation.New(t.Context(), s, s, generation.Options{Every: -1}); onejob.CodeOf(err) != onejob.CodeInvalidArgument {
		t.Errorf("a negative option was answered %v", err)
	}
}

func TestAFileThatAnotherProcessMovedAheadStaysAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "generation")
	s := memory.Open(memory.Options{})
	_ = watch(t, s, generation.Options{Path: path})
	if err := os.WriteFile(path, []byte("1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := s.RestoreDeclare(t.Context(), onejob.RestoreDeclareParams{Seen: 1000})
	if err != nil || !g.Unconfirmed() {
		t.Fatal(g, err)
	}
	_ = watch(t, s, generation.Options{Path: path})
	if got := mark(t, path); got != onejob.GenerationBeyond(1000) {
		t.Errorf("the file is at %d; want it where the store is", got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want the file alone", entries, err)
	}
}

// Whoever asks whether the store is ready looks as well, and keeps the mark.
func TestTheFileNeverGoesBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "generation")
	s := memory.Open(memory.Options{})
	watched := watch(t, s, generation.Options{Path: path})
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for range 100 {
				g, err := s.GenerationAdvance(t.Context())
				if err != nil {
					t.Error(err)
				}
				if err := watched.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if kept, err := generation.ReadMark(path); err != nil || kept < g.Number {
					t.Errorf("the file is at %d, %v; want at least %d, which was seen before", kept, err, g.Number)
				}
			}
		})
	}
	looking.Wait()
}
