package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// stores opens a store of each kind.
var stores = []struct {
	name string
	open func(b *testing.B) onejob.Store
}{
	{"SQLite", func(b *testing.B) onejob.Store {
		s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "onejob.db"), sqlite.Options{})
		return opened(b, s, err)
	}},
	{"PostgreSQL", func(b *testing.B) onejob.Store {
		s, err := postgres.Open(b.Context(), pgtest.URL(b), postgres.Options{Migrate: true, MaxConns: 16})
		return opened(b, s, err)
	}},
}

func opened(b *testing.B, s onejob.Store, err error) onejob.Store {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// input is about a kilobyte, as requests to models are.
var input = fmt.Appendf(nil, `{"prompt":%q}`, strings.Repeat("a picture of a cat ", 50))

const kind = "k"

var policy = onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"t"}}

// BenchmarkLife is one caller's view: submit, wait for the result.
//
// Step is the same life with one transaction a step (create, claim, mark, finish)
// and no sharing, which is what a careful first version would do.
func BenchmarkLife(b *testing.B) {
	for _, s := range stores {
		for _, callers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/callers=%d/onejob", s.name, callers), func(b *testing.B) {
				shared, err := grouped.New(s.open(b), grouped.Options{})
				if err != nil {
					b.Fatal(err)
				}
				measure(b, callers, newOnejob(b, shared).live)
			})
			b.Run(fmt.Sprintf("%s/callers=%d/step", s.name, callers), func(b *testing.B) {
				measure(b, callers, (&steps{store: s.open(b)}).live)
			})
		}
	}
}

// instant is a provider that answers at once.
type instant struct{}

func (instant) Call(_ context.Context, r onejob.Request) (onejob.Answer, error) {
	r.Sent()
	return onejob.Answer{Body: []byte(`{"ok":true}`), ContentType: "application/json"}, nil
}

// whole is the library as an application uses it.
type whole struct{ client *onejob.Client }

func newOnejob(b *testing.B, store onejob.Store) *whole {
	b.Helper()
	signals := &onejob.Signals{}
	e, err := engine.New(store, []onejob.Target{{Name: "t", Provider: instant{}}}, engine.Options{Slots: 512, Signals: signals})
	if err != nil {
		b.Fatal(err)
	}
	client, err := onejob.New(store, onejob.Options{
		Secret: []byte("a secret for the benchmark"), Kinds: map[string]onejob.Kind{kind: {Policy: policy}},
		Signals: signals, Starter: e,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var done sync.WaitGroup
	done.Go(func() { _ = e.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return &whole{client}
}

func (w *whole) live(ctx context.Context, key string) error {
	_, _, watch, err := w.client.SubmitWatched(ctx, onejob.SubmitParams{Owner: "o", Key: key, Kind: kind, Input: input})
	if err != nil {
		return err
	}
	defer watch.Stop()
	job, err := watch.Until(ctx, func(j *onejob.Job) bool { return j.State.Terminal() })
	if err == nil && job.State != onejob.JobSucceeded {
		err = fmt.Errorf("job %s is %s", job.ID, job.State)
	}
	return err
}

// steps lives one transaction a step.
type steps struct {
	store onejob.Store
}

func (s *steps) live(ctx context.Context, key string) error {
	part := onejob.PartOf("o", key)
	full, err := policy.WithDefaults()
	if err != nil {
		return err
	}
	created, err := s.store.JobCreate(ctx, []onejob.JobCreateParams{{
		ID: onejob.NewJobID(part, time.Now()), Owner: "o", Part: part, KeyHash: onejob.HashKey(key), KeyPrefix: "k",
		Fingerprint: onejob.HashKey(key), FingerprintVersion: 1, Token: onejob.NewToken(),
		Kind: kind, Input: input, Policy: full,
	}})
	if err != nil || created[0].Err != nil {
		return fmt.Errorf("create: %w", firstError(err, created[0].Err))
	}
	claimed, err := s.claim(ctx)
	if err != nil {
		return err
	}
	a := claimed.Attempt
	ref := onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
	marked, err := s.store.AttemptMark(ctx, []onejob.AttemptMarkParams{{Ref: ref, ClaimToken: a.ClaimToken, Lease: time.Minute, SendWithin: time.Minute}})
	if err != nil || marked[0].Err != nil {
		return fmt.Errorf("mark: %w", firstError(err, marked[0].Err))
	}
	finished, err := s.store.AttemptFinish(ctx, []onejob.AttemptFinishParams{{
		Ref: ref, ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeSucceeded, Phase: onejob.PhaseAnswered,
		Result: &onejob.Result{Body: []byte(`{"ok":true}`), ContentType: "application/json"},
	}})
	if err != nil || finished[0].Err != nil {
		return fmt.Errorf("finish: %w", firstError(err, finished[0].Err))
	}
	return nil
}

// claim takes one due job. Each caller has just made one due, so there is one for
// everybody, though SKIP LOCKED may show none for a moment.
func (s *steps) claim(ctx context.Context) (onejob.Claimed, error) {
	for ctx.Err() == nil {
		r, err := s.store.AttemptClaim(ctx, onejob.AttemptClaimParams{
			StartParams: onejob.StartParams{Worker: "step", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"t": {}}}, Max: 1,
		})
		if err != nil {
			return onejob.Claimed{}, fmt.Errorf("claim: %w", err)
		}
		if len(r.Claimed) == 1 {
			return r.Claimed[0], nil
		}
	}
	return onejob.Claimed{}, ctx.Err()
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
