package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/pgtest"
)

// grown is a generator with a store of a size, on a cluster of the test's own.
func grown(t *testing.T, z size) *generator {
	t.Helper()
	s := &services{dir: t.TempDir()}
	if err := s.startPostgres(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.cluster == nil {
		t.Skip(pgtest.ErrNoPrograms)
	}
	t.Cleanup(func() { _ = s.stop() })
	g := &generator{services: s}
	if err := g.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.close() })
	if err := g.grow(t.Context(), z, &progress{}); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGeneratedJobsAreAsTheStoreMakesThem(t *testing.T) {
	t.Parallel()

	g := grown(t, size{finished: 300, queued: 90})
	jobs, err := g.store.JobList(t.Context(), onejob.JobListParams{States: []onejob.JobState{onejob.JobSucceeded}, Limit: 200})
	if err != nil || len(jobs.Jobs) != 200 {
		t.Fatalf("listed %d finished jobs, %v", len(jobs.Jobs), err)
	}
	owners := map[string]bool{}
	for _, job := range jobs.Jobs {
		owners[job.Owner] = true
		if part, ok := onejob.PartOfID(job.ID); !ok || part != job.Part {
			t.Fatalf("job %s lies in part %d", job.ID, job.Part)
		}
	}
	if len(owners) < 100 || time.Since(jobs.Jobs[199].CreatedAt) < 24*time.Hour {
		t.Errorf("%d owners, since %s; want many, over days", len(owners), jobs.Jobs[199].CreatedAt)
	}
	one := jobs.Jobs[10]
	if bytes.Equal(one.Fingerprint, jobs.Jobs[11].Fingerprint) {
		t.Error("two jobs have one fingerprint")
	}
	got, err := g.store.JobGet(t.Context(), []onejob.JobGetParams{{ID: one.ID, Owner: one.Owner}})
	if err != nil || got[0].Err != nil || got[0].Job.Result == nil || string(got[0].Job.Result.Body) != string(result) || len(got[0].Job.Attempts) != 1 {
		t.Errorf("JobGet = %+v, %v; want a job with its result and its attempt", got, err)
	}
	if err := repeat(t.Context(), g, one); err != nil {
		t.Error(err)
	}
	stats, err := g.store.Stats(t.Context())
	if err != nil || stats.Jobs[onejob.JobQueued] != 91 { // the template is one of them
		t.Errorf("%d jobs are queued, %v; want 91", stats.Jobs[onejob.JobQueued], err)
	}
}

// repeat submits a generated job's key again and expects the job.
func repeat(ctx context.Context, g *generator, job *onejob.Job) error {
	params, err := g.intents(1)
	if err != nil {
		return err
	}
	p := params[0]
	p.Owner, p.Part, p.KeyHash, p.Fingerprint = job.Owner, job.Part, job.KeyHash, job.Fingerprint
	p.ID = onejob.NewJobID(p.Part, time.Now())
	r, err := g.store.JobCreate(ctx, []onejob.JobCreateParams{p})
	if err == nil && (r[0].Err != nil || !r[0].Existed || r[0].Job.ID != job.ID) {
		err = errors.Join(errors.New("a generated job does not answer for its key"), r[0].Err)
	}
	return err
}

func TestGeneratedQueuesAreClaimed(t *testing.T) {
	t.Parallel()

	g := grown(t, size{finished: 10, queued: 100})
	n, err := g.claim(t.Context())
	if err != nil || n != measureBatch {
		t.Fatalf("claimed %d, %v; want %d", n, err, measureBatch)
	}
	if err := g.finishClaimed(t.Context()); err != nil {
		t.Error(err)
	}
}
