package main

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

const (
	requestsPerSecond figure = "requests_per_s"
	serverCPU         figure = "server_cpu_us_per_request"
	storeCPU          figure = "database_cpu_us_per_request"
	requestCPU        figure = "cpu_us_per_request"
)

// postConnections and postBytes are those of the goal.
const (
	postConnections = 64
	postBytes       = 2048
)

// post is about what an acknowledged POST /v1/jobs costs beside one that keeps
// nothing. Nobody takes the jobs: they are recorded, and not tried.
func post() contest {
	return contest{
		name: "post", title: "POST /v1/jobs",
		about: "`onejob serve` beside a server that decodes the same body of two kilobytes and answers; 64 connections, closed loop. " +
			"CPU is that of the server and the database; the load comes from another process and is not counted.",
		columns: []column{
			{requestsPerSecond, "requests/s", "%.0f"},
			{p50, "p50 ms", "%.1f"},
			{p99, "p99 ms", "%.1f"},
			{serverCPU, "CPU µs a request: server", "%.0f"},
			{storeCPU, "database", "%.0f"},
			{requestCPU, "together", "%.0f"},
		},
		entries: func(settings) []contestant {
			return []contestant{
				{name: "echo", callers: postConnections, durable: "nothing is kept", turn: postEcho},
				{name: "onejob", on: onSQLite, callers: postConnections, turn: postOn(onSQLite)},
				{name: "onejob", on: onPostgres, callers: postConnections, turn: postOn(onPostgres)},
			}
		},
	}
}

// untaken is a kind whose attempts wait for a worker that never comes.
const untaken = "targets: {nobody: {provider: worker}}\nkinds: {" + kind + ": {effect: none, targets: [nobody]}}\n"

func postEcho(ctx context.Context, s *services, d time.Duration) (sample, error) {
	server, url, err := startEcho(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(server)
	return s.posted(ctx, onNothing, server, load{URLs: []string{url}}, d)
}

func postOn(g ground) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, d time.Duration) (sample, error) {
		at, err := s.newSite(ctx, g, untaken)
		if err != nil {
			return nil, err
		}
		n, err := at.serve(ctx)
		if err != nil {
			return nil, err
		}
		defer n.close()
		return s.posted(ctx, g, n.cmd, load{URLs: []string{n.url}, Key: at.key}, d)
	}
}

// posted loads a server and says what its process and its database spent.
func (s *services) posted(ctx context.Context, g ground, server *exec.Cmd, l load, d time.Duration) (sample, error) {
	l.Connections, l.Bytes = postConnections, postBytes
	l.Prefix, l.For = "warm", d/5
	if _, err := l.apart(ctx); err != nil {
		return nil, err
	}
	l.Prefix, l.For = "run", d
	own, database := timeOf(server.Process.Pid), s.databaseTime(g)
	done, err := l.apart(ctx)
	if err != nil {
		return nil, err
	}
	if done.Requests == 0 {
		return nil, errors.New("not one request was answered")
	}
	each := func(spent time.Duration) float64 { return float64(spent.Microseconds()) / float64(done.Requests) }
	f := sample{
		requestsPerSecond: float64(done.Requests) / done.Elapsed.Seconds(), p50: done.P50, p99: done.P99,
		serverCPU: each(timeOf(server.Process.Pid) - own),
	}
	f[requestCPU] = f[serverCPU]
	if g == onPostgres {
		f[storeCPU] = each(s.databaseTime(g) - database)
		f[requestCPU] += f[storeCPU]
	}
	return f, nil
}
