package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/postgres"
)

// Where a job stands on its way from the call that creates it to its provider, in
// microseconds since the place before. All but flushRows are medians of jobs.
const (
	stagePrepare  figure = "prepare_us"     // checked, canonical, fingerprinted
	stageGather   figure = "gather_us"      // in a flush's batch
	stageCommit   figure = "commit_us"      // the statement with its commit
	stageTell     figure = "tell_us"        // its creator has the answer
	stageProvider figure = "provider_us"    // the provider is called
	stageAll      figure = "to_provider_us" // all of it
	flushRows     figure = "rows_a_flush"   // on average
)

// stages shows what the contest start consists of, beside what one durable statement
// of raw SQL takes at the same pace.
func stages() contest {
	return contest{
		name: "stages", title: "What lies between a job's creation and its provider",
		about: fmt.Sprintf("%d jobs a second on PostgreSQL, as in the contest above, in microseconds (medians): how long a job is prepared, waits for a flush, is written by one statement with its commit, "+
			"and until its provider is called. Raw SQL is the statement of “raw SQL, grouped” with one row, from one goroutine.", startRate),
		columns: []column{
			{stagePrepare, "prepared", "%.0f"},
			{stageGather, "in a flush", "%.0f"},
			{stageCommit, "committed", "%.0f"},
			{stageTell, "told", "%.0f"},
			{stageProvider, "provider called", "%.0f"},
			{stageAll, "together", "%.0f"},
			{flushRows, "rows a flush", "%.2f"},
		},
		entries: func(settings) []contestant {
			return []contestant{
				{name: "onejob", on: onPostgres, turn: stagesOf(openNoted)},
				{name: "raw SQL", on: onPostgres, turn: stagesOf(openNotedRaw)},
			}
		},
	}
}

// place is a place on the way.
type place int

const (
	called place = iota
	prepared
	gathered
	committed
	answered
	begun
	places
)

// journeys notes when each job was at each place.
type journeys struct {
	mu      sync.Mutex
	at      map[string]*[places]time.Time
	flushes int
	rows    int
}

func (j *journeys) note(key string, p place) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at[key] == nil {
		j.at[key] = &[places]time.Time{}
	}
	j.at[key][p] = now
}

// forget begins anew, after a warm-up.
func (j *journeys) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.at)
	j.flushes, j.rows = 0, 0
}

func (j *journeys) sample() sample {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := sample{flushRows: float64(j.rows) / float64(max(1, j.flushes))}
	between := func(f figure, from, to place) {
		var took []time.Duration
		for _, at := range j.at {
			took = append(took, at[to].Sub(at[from]))
		}
		slices.Sort(took)
		if len(took) > 0 {
			s[f] = float64(took[len(took)/2]) / float64(time.Microsecond)
		}
	}
	between(stagePrepare, called, prepared)
	between(stageGather, prepared, gathered)
	between(stageCommit, gathered, committed)
	between(stageTell, committed, answered)
	between(stageProvider, answered, begun)
	between(stageAll, called, begun)
	return s
}

// gathering is a store under the flushes, which notes when one begins and ends.
type gathering struct {
	*postgres.Store
	*journeys
}

// Hasty implements grouped.Hasty: it is what the flushes use.
func (g *gathering) Hasty() onejob.Store {
	hasty, _ := g.Store.Hasty().(*postgres.Store)
	return &gathering{hasty, g.journeys}
}

func (g *gathering) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	g.noteAll(params, gathered)
	results, err := g.Store.JobCreate(ctx, params)
	g.noteAll(params, committed)
	g.flushed(len(params))
	return results, err
}

// asked is a store above the flushes, which notes when a creator comes and leaves.
type asked struct {
	*grouped.Store
	*journeys
}

func (a *asked) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	a.noteAll(params, prepared)
	results, err := a.Store.JobCreate(ctx, params)
	a.noteAll(params, answered)
	return results, err
}

func (j *journeys) noteAll(params []onejob.JobCreateParams, p place) {
	for i := range params {
		j.note(keyIn(params[i].Input), p)
	}
}

func (j *journeys) flushed(rows int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flushes++
	j.rows += rows
}

// noted is a submitter whose jobs are noted when they are submitted.
type noted struct {
	submitter
	*journeys
}

func (n *noted) submit(ctx context.Context, key string) error {
	n.note(key, called)
	return n.submitter.submit(ctx, key)
}

// stagesOf measures a submitter at the pace of the contest start.
func stagesOf(open func(ctx context.Context, s *services, j *journeys, begun func([]byte)) (submitter, error)) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, d time.Duration) (_ sample, err error) {
		j := &journeys{at: map[string]*[places]time.Time{}}
		b := &beginnings{created: map[string]time.Time{}}
		sub, err := open(ctx, s, j, func(input []byte) {
			j.note(keyIn(input), begun)
			b.begun(input)
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sub.close()) }()
		if err := b.pace(ctx, &noted{sub, j}, d/5, "warm"); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
		j.forget()
		if err := b.pace(ctx, &noted{sub, j}, d, "run"); err != nil {
			return nil, err
		}
		return j.sample(), nil
	}
}

func openNoted(ctx context.Context, s *services, j *journeys, begun func([]byte)) (submitter, error) {
	store, err := s.newPostgresStore(ctx)
	if err != nil {
		return nil, err
	}
	shared, err := grouped.New(&gathering{store, j}, grouped.Options{})
	if err != nil {
		return nil, err
	}
	return newLibraryOn(ctx, shared, &asked{shared, j}, instant{begun})
}

// rawSubmitter creates each job by the statement of [rawGrouped], and its work is
// begun by whoever created it.
type rawSubmitter struct {
	*rawGrouped
	*journeys
	begun func([]byte)
}

func openNotedRaw(ctx context.Context, s *services, j *journeys, begun func([]byte)) (submitter, error) {
	pool, err := newRawPool(ctx, s, 8)
	return &rawSubmitter{&rawGrouped{pool: pool}, j, begun}, err
}

func (r *rawSubmitter) submit(ctx context.Context, key string) error {
	hash := sha256.Sum256([]byte(key))
	job := rawJob{id: r.ids.next(), key: key, hash: hash[:]}
	r.note(key, prepared)
	r.note(key, gathered)
	if err := r.createAll(ctx, []rawJob{job}); err != nil {
		return err
	}
	r.note(key, committed)
	r.note(key, answered)
	r.flushed(1)
	r.begun(inputWith(key))
	return nil
}
