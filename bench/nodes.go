package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// nodesCPU is what all nodes together spend.
const nodesCPU figure = "nodes_cpu_us_per_job"

// idleDatabase is what the database spends on nodes that have nothing to do.
const idleDatabase figure = "database_percent_of_a_core"

const idleNodes = 10

// nodes is about several nodes on one PostgreSQL.
func nodes() contest {
	return contest{
		name: "nodes", title: "Nodes on one PostgreSQL",
		about: "Lives of jobs through `onejob serve`: 64 connections, spread over the nodes, whose requests wait for the end of the job. CPU is that of the nodes and the database; load and provider come from other processes.",
		columns: []column{
			{perSecond, "jobs/s", "%.0f"},
			{p50, "p50 ms", "%.1f"},
			{p99, "p99 ms", "%.1f"},
			{nodesCPU, "CPU µs a job: nodes", "%.0f"},
			{databaseCPU, "database", "%.0f"},
		},
		entries: func(settings) []contestant {
			return []contestant{
				{name: "one node", on: onPostgres, callers: 64, turn: busy(1)},
				{name: "two nodes", on: onPostgres, callers: 64, turn: busy(2)},
			}
		},
	}
}

// idling is about what nodes cost their database that have nothing to do.
func idling() contest {
	return contest{
		name: "idle", title: "Idle nodes on one PostgreSQL", once: true,
		about:   "What the database spends by itself, and while ten nodes of `onejob serve` have nothing to do: a provider that they call, questions that they could ask it, and webhooks.",
		columns: []column{{idleDatabase, "database, % of a core", "%.2f"}},
		entries: func(settings) []contestant {
			return []contestant{
				{name: "no node", on: onPostgres, turn: idle(0)},
				{name: fmt.Sprintf("%d idle nodes", idleNodes), on: onPostgres, turn: idle(idleNodes)},
			}
		},
	}
}

// unoccupied is a configuration with everything that a node might look for.
const unoccupied = `targets: {acme: {provider: http, request: {url: "http://127.0.0.1:9/v1/charges"}, idempotency_header: Idempotency-Key, replay: {safe: true, for: 24h}}}
kinds: {` + kind + `: {effect: external, targets: [acme]}}
webhooks: {allow: [127.0.0.0/8], endpoints: [{url: "http://127.0.0.1:9/hook", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]}
`

// serveAll starts nodes on one store.
func (at *site) serveAll(ctx context.Context, count int) (nodes []*node, err error) {
	for range count {
		n, err := at.serve(ctx)
		if err != nil {
			closeAll(nodes)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func closeAll(nodes []*node) {
	for _, n := range nodes {
		n.close()
	}
}

// calling is a kind whose target is at a URL, with so many slots a node.
func calling(url string, slots int) string {
	return fmt.Sprintf(`targets: {acme: {provider: http, request: {url: "%s/v1/charges"}, idempotency_header: Idempotency-Key}}
kinds: {%s: {effect: external, targets: [acme], timeout: 5m}}
workers: {slots: %d}
`, url, kind, slots)
}

func busy(count int) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, d time.Duration) (_ sample, err error) {
		provider, err := sim.Start("", sim.Options{MaxEntries: 1})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, provider.Close()) }()
		at, err := s.newSite(ctx, onPostgres, calling(provider.URL(), 64))
		if err != nil {
			return nil, err
		}
		serving, err := at.serveAll(ctx, count)
		if err != nil {
			return nil, err
		}
		defer closeAll(serving)
		l := load{Key: at.key, Connections: 64, Bytes: 1024, Wait: true, Prefix: "warm", For: d / 5}
		for _, n := range serving {
			l.URLs = append(l.URLs, n.url)
		}
		if _, err := l.apart(ctx); err != nil {
			return nil, err
		}
		l.Prefix, l.For = "run", d
		own, database := timeOfAll(serving), s.databaseTime(onPostgres)
		done, err := l.apart(ctx)
		if err != nil {
			return nil, err
		}
		each := func(spent time.Duration) float64 {
			return float64(spent.Microseconds()) / float64(max(done.Requests, 1))
		}
		return sample{
			perSecond: float64(done.Requests) / done.Elapsed.Seconds(), p50: done.P50, p99: done.P99,
			nodesCPU: each(timeOfAll(serving) - own), databaseCPU: each(s.databaseTime(onPostgres) - database),
		}, nil
	}
}

func timeOfAll(nodes []*node) (total time.Duration) {
	for _, n := range nodes {
		total += timeOf(n.cmd.Process.Pid)
	}
	return total
}

const (
	// leastIdle is how long the database is watched at least: whoever is idle looks
	// every few seconds.
	leastIdle = 30 * time.Second
	// untilIdle is how long it takes until what is done once is done, and nodes that find
	// nothing have slowed down.
	untilIdle = 8 * time.Second
)

func idle(count int) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, d time.Duration) (sample, error) {
		at, err := s.newSite(ctx, onPostgres, unoccupied)
		if err != nil {
			return nil, err
		}
		serving, err := at.serveAll(ctx, count)
		if err != nil {
			return nil, err
		}
		defer closeAll(serving)
		if err := pause(ctx, untilIdle); err != nil {
			return nil, err
		}
		began, before := time.Now(), exactTimeOf(s.postgres)
		if err := pause(ctx, max(d, leastIdle)); err != nil {
			return nil, err
		}
		spent := exactTimeOf(s.postgres) - before
		return sample{idleDatabase: 100 * spent.Seconds() / time.Since(began).Seconds()}, nil
	}
}

// pause waits, unless the program is to end.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
