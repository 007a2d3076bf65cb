package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

const (
	resident      figure = "rss_mib"
	residentEarly figure = "rss_first_third_mib"
	acceptedRate  figure = "accepted_per_s"
	unadvised     figure = "refused_without_retry_after"
	lostOrTwice   figure = "lost_or_twice"
)

// inFlight is how many jobs are at their provider at the same time.
const inFlight = 1000

// memory is about what a server needs: alone, with many jobs at their provider, and
// while it is offered three times what it can do.
func memory() contest {
	return contest{
		name: "memory", title: "Memory of onejob serve", once: true,
		about: "Resident memory: left alone; with 1,000 jobs at a provider that does not answer; and under three times what the provider can do, " +
			"the medians of the first and of the last third.",
		columns: []column{
			{resident, "MiB", "%.1f"},
			{residentEarly, "MiB at first", "%.1f"},
			{acceptedRate, "accepted/s", "%.0f"},
			{p99, "acknowledged after, p99 ms", "%.1f"},
			{unadvised, "refused without Retry-After", "%.0f"},
			{lostOrTwice, "lost or done twice", "%.0f"},
		},
		entries: func(s settings) (all []contestant) {
			for _, g := range []ground{onSQLite, onPostgres} {
				all = append(all,
					contestant{name: fmt.Sprintf("idle for %s", s.idle), on: g, turn: leftAlone(g, s.idle)},
					contestant{name: fmt.Sprintf("%d jobs in flight", inFlight), on: g, turn: crowded(g)},
					contestant{name: fmt.Sprintf("%s of overload", s.overload), on: g, turn: overloaded(g, s.overload)},
				)
			}
			return all
		},
	}
}

func leftAlone(g ground, length time.Duration) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, _ time.Duration) (sample, error) {
		at, err := s.newSite(ctx, g, untaken)
		if err != nil {
			return nil, err
		}
		n, err := at.serve(ctx)
		if err != nil {
			return nil, err
		}
		defer n.close()
		if err := pause(ctx, length); err != nil {
			return nil, err
		}
		mib, err := n.memory()
		return sample{resident: mib}, err
	}
}

func crowded(g ground) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, _ time.Duration) (_ sample, err error) {
		provider, err := sim.Start("", sim.Options{Default: sim.MustParse("hold")[0]})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, provider.Close()) }()
		at, err := s.newSite(ctx, g, calling(provider.URL(), inFlight))
		if err != nil {
			return nil, err
		}
		n, err := at.serve(ctx)
		if err != nil {
			return nil, err
		}
		defer n.close()
		defer provider.Release() // or the server would wait for them
		asks := load{URLs: []string{n.url}, Key: at.key, Connections: 16, For: time.Minute, Count: inFlight, Bytes: 1024, Prefix: "held"}
		if _, err := asks.run(ctx); err != nil {
			return nil, err
		}
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := provider.Wait(waiting, func() bool { return provider.Requests() >= inFlight }); err != nil {
			return nil, fmt.Errorf("%d of %d jobs reached the provider: %w", provider.Requests(), inFlight, err)
		}
		mib, err := n.memory()
		return sample{resident: mib}, err
	}
}
