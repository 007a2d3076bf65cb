package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

const (
	callsPerSecond figure = "calls_per_s"
	gatewayCPU     figure = "gateway_cpu_us_per_call"
	callStoreCPU   figure = "database_cpu_us_per_call"
	callCPU        figure = "cpu_us_per_call"
	pacedCPU       figure = "paced_cpu_us_per_call"
	pacedP50       figure = "paced_p50_ms"
	pacedP99       figure = "paced_p99_ms"
	addedP50       figure = "added_p50_ms"
	addedP99       figure = "added_p99_ms"
)

// Of the contest: who call at the same time, and calls a second and the time of the
// provider where what is added to it is measured.
const (
	gatewayConnections = 50
	gatewayRate        = 200
	providerTakes      = 50 * time.Millisecond
)

const bareProvider = "bare provider"

// gateways is about what it costs to call a model through something.
func gateways() contest {
	return contest{
		name: "gateways", title: "A call through a front door",
		about: fmt.Sprintf("`POST …/chat/completions` of a kilobyte, with a key. At first %d connections in a closed loop, at a provider that answers at once: calls/s, and CPU of the gateway's process and its database. "+
			"Then %d calls a second, come what may, at a provider that takes %d ms: what the same round's calls to the bare provider are quicker by. Load and provider are processes of their own and are not counted.",
			gatewayConnections, gatewayRate, providerTakes.Milliseconds()),
		columns: []column{
			{callsPerSecond, "calls/s", "%.0f"},
			{gatewayCPU, "CPU µs a call: gateway", "%.0f"},
			{callStoreCPU, "database", "%.0f"},
			{callCPU, "together", "%.0f"},
			{pacedCPU, fmt.Sprintf("at %d calls/s: CPU µs a call", gatewayRate), "%.0f"},
			{pacedP50, "p50 ms", "%.2f"},
			{pacedP99, "p99 ms", "%.2f"},
			{addedP50, "added p50 ms", "%.2f"},
			{addedP99, "added p99 ms", "%.2f"},
			{resident, "MiB", "%.0f"},
		},
		entries: func(settings) []contestant {
			const nothing = "nothing is kept"
			return []contestant{
				through(contestant{name: bareProvider, durable: nothing}, startBare),
				through(contestant{name: "Go reverse proxy", durable: nothing}, startProxy),
				through(contestant{name: "Go reverse proxy, two flushes", durable: "both bodies in a file, which is never read"}, startKeepingProxy),
				through(contestant{name: "onejob", on: onSQLite}, startFrontDoor(onSQLite)),
				through(contestant{name: "onejob", on: onPostgres}, startFrontDoor(onPostgres)),
				through(bifrost(contestant{name: "Bifrost core", durable: nothing}), startBifrost),
				through(portkey(contestant{name: "Portkey", durable: nothing}), startPortkey),
				through(goModel(contestant{name: "GoModel, audit off", durable: nothing}), startGoModel(false)),
				through(goModel(contestant{name: "GoModel, audit on", durable: "a log, up to 5 s after the answer"}), startGoModel(true)),
			}
		},
		after: besideBare,
	}
}

// door is something that chat completions are sent to.
type door struct {
	calls           // URL, headers and model
	cmd   *exec.Cmd // nil: there is nothing between the caller and the provider
}

func (d *door) close() {
	if d.cmd != nil {
		stop(d.cmd)
	}
}

// startDoor starts one that calls a provider.
type startDoor func(ctx context.Context, s *services, provider string) (*door, error)

// through measures calls through a door.
func through(c contestant, start startDoor) contestant {
	c.callers = gatewayConnections
	c.turn = func(ctx context.Context, s *services, d time.Duration) (sample, error) {
		p, err := startProvider(ctx)
		if err != nil {
			return nil, err
		}
		defer stop(p.cmd)
		at, err := start(ctx, s, p.url)
		if err != nil {
			return nil, err
		}
		defer at.close()
		return at.measure(ctx, s, c.on, p, d)
	}
	return c
}

func (d *door) measure(ctx context.Context, s *services, g ground, p *provider, length time.Duration) (sample, error) {
	crowd, paced := d.calls, d.calls
	crowd.Connections, paced.Rate = gatewayConnections, gatewayRate
	f, err := d.spend(ctx, s, g, crowd, length)
	if err != nil {
		return nil, err
	}
	if err := p.take(ctx, providerTakes); err != nil {
		return nil, err
	}
	slow, err := d.spend(ctx, s, g, paced, length)
	if err != nil {
		return nil, err
	}
	f[pacedP50], f[pacedP99] = slow[pacedP50], slow[pacedP99]
	if cpu, ok := slow[callCPU]; ok {
		f[pacedCPU] = cpu
		f[resident], err = residentOf(d.cmd.Process.Pid)
	}
	return f, err
}

// spend makes calls, after a few that do not count, and says what they took and cost.
func (d *door) spend(ctx context.Context, s *services, g ground, c calls, length time.Duration) (sample, error) {
	c.Prefix, c.For = fmt.Sprintf("warm-%d", c.Rate), length/5
	if _, err := c.apart(ctx); err != nil {
		return nil, err
	}
	c.Prefix, c.For = fmt.Sprintf("run-%d", c.Rate), length
	own, database := d.time(), s.databaseTime(g)
	done, err := c.apart(ctx)
	if err != nil {
		return nil, err
	}
	f := sample{callsPerSecond: float64(done.Requests) / done.Elapsed.Seconds(), pacedP50: done.P50, pacedP99: done.P99}
	if d.cmd == nil {
		return f, nil
	}
	each := func(spent time.Duration) float64 { return float64(spent.Microseconds()) / float64(done.Requests) }
	f[gatewayCPU] = each(d.time() - own)
	f[callCPU] = f[gatewayCPU]
	if g == onPostgres {
		f[callStoreCPU] = each(s.databaseTime(g) - database)
		f[callCPU] += f[callStoreCPU]
	}
	return f, nil
}

func (d *door) time() time.Duration {
	if d.cmd == nil {
		return 0
	}
	return timeOf(d.cmd.Process.Pid)
}

// besideBare says, round by round, what the bare provider is quicker by.
func besideBare(rows []row) {
	var bare []sample
	for _, r := range rows {
		if r.Name == bareProvider {
			bare = r.Rounds
		}
	}
	for i := range rows {
		for n, round := range rows[i].Rounds {
			if n < len(bare) && rows[i].Name != bareProvider {
				round[addedP50] = round[pacedP50] - bare[n][pacedP50]
				round[addedP99] = round[pacedP99] - bare[n][pacedP99]
			}
		}
		rows[i].Figures = medians(rows[i].Rounds)
	}
}

func startBare(_ context.Context, _ *services, provider string) (*door, error) {
	return &door{calls: calls{URL: provider + "/v1/chat/completions", Model: model}}, nil
}
