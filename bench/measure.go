package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// measure has callers do jobs in a closed loop for d.
func measure(ctx context.Context, c contestant, e entrant, s *services, d time.Duration, prefix string) (figures, error) {
	before, err := s.spent(ctx, c.ground)
	if err != nil {
		return figures{}, err
	}
	l := loop{entrant: e, prefix: prefix, until: time.Now().Add(d)}
	began := time.Now()
	took, err := l.run(ctx, c.callers)
	elapsed := time.Since(began)
	if err != nil {
		return figures{}, err
	}
	after, err := s.spent(ctx, c.ground)
	if err != nil {
		return figures{}, err
	}
	if len(took) == 0 {
		return figures{}, errors.New("not one job was done")
	}
	jobs := len(took)
	if b, ok := e.(batcher); ok {
		jobs *= b.batch()
	}
	slices.Sort(took)
	each := func(total float64) float64 { return total / float64(jobs) }
	return figures{
		Jobs: jobs, PerSec: float64(jobs) / elapsed.Seconds(),
		P50: took[len(took)/2], P99: took[len(took)*99/100],
		Client:   each(float64((after.client - before.client).Microseconds())),
		Database: each(float64((after.database - before.database).Microseconds())),
		WAL:      each(float64(after.wal - before.wal)),
	}, nil
}

// loop is a number of callers, each doing one job after another.
type loop struct {
	entrant
	prefix string
	until  time.Time
	next   atomic.Int64
}

func (l *loop) run(ctx context.Context, callers int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	times := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var err error
			if times[i], err = l.caller(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.Concat(times...), nil
}

func (l *loop) caller(ctx context.Context) (took []time.Duration, err error) {
	for time.Now().Before(l.until) && ctx.Err() == nil {
		key := fmt.Sprintf("%s-%d", l.prefix, l.next.Add(1))
		began := time.Now()
		if b, ok := l.entrant.(batcher); ok {
			err = b.liveBatch(ctx, key)
		} else {
			err = l.live(ctx, key)
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
