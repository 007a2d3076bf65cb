package loadgen

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
)

// maxKnown bounds the jobs that are remembered, to be repeated and looked for.
const maxKnown = 200_000

// intent is a key and the job that answered it first.
type intent struct{ key, jobID string }

// known are the acknowledged jobs.
type known struct {
	all  []intent
	more int64 // acknowledged and not remembered
}

func (k *known) any() *intent {
	if len(k.all) == 0 {
		return nil
	}
	found := k.all[rand.N(len(k.all))]
	return &found
}

// learn remembers a new job, and reports whether a repeat was answered with another.
func (k *known) learn(key string, again *intent, jobID string) (otherwise bool) {
	switch {
	case again != nil:
		return again.jobID != jobID
	case len(k.all) < maxKnown:
		k.all = append(k.all, intent{key, jobID})
	default:
		k.more++
	}
	return false
}

// Search is what came of looking for acknowledged jobs.
type Search struct {
	Asked int64
	Lost  int64  // not there
	Error string // why not all could be asked for; empty: they were
	Spare int64  // acknowledged beyond the number that is remembered, and not asked for
}

// Look asks for every acknowledged job that is remembered. told hears how many were
// asked for.
func (l *Load) Look(ctx context.Context, told func(asked int64)) Search {
	l.mu.Lock()
	all, s := l.known.all, Search{Spare: l.known.more}
	l.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	next := 0
	take := func() (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) || ctx.Err() != nil {
			return "", false
		}
		next++
		return all[next-1].jobID, true
	}
	note := func(lost bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			s.Error = causeOf(err)
			stop()
		case lost:
			s.Lost++
			s.Asked++
		default:
			s.Asked++
		}
		told(s.Asked)
	}
	var callers sync.WaitGroup
	for range min(l.plan.Callers, lookAtOnce) {
		callers.Go(func() {
			for id, ok := take(); ok; id, ok = take() {
				note(l.isLost(ctx, id))
			}
		})
	}
	callers.Wait()
	return s
}

// lookAtOnce bounds how many jobs are asked for at once.
const lookAtOnce = 32

// Remembered is how many jobs [Load.Look] asks for.
func (l *Load) Remembered() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.known.all))
}

func (l *Load) isLost(ctx context.Context, id string) (lost bool, err error) {
	for ctx.Err() == nil {
		got, err := l.plan.get(ctx, id, 0)
		switch {
		case err != nil:
			return false, err
		case got.status == http.StatusOK:
			return false, nil
		case got.status == http.StatusNotFound:
			return true, nil
		case got.status != http.StatusTooManyRequests && got.status != http.StatusServiceUnavailable:
			return false, &Refusal{Status: got.status, Body: got.body}
		}
		pause(ctx, max(got.retry, 0))
	}
	return false, ctx.Err()
}

// causeOf takes off what repeats method and URL.
func causeOf(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err.Error()
	}
	return err.Error()
}

func clone[K comparable](m map[K]int64) map[K]int64 { return maps.Clone(m) }
