package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is a bound on a figure, or on the ratio between two of one run.
type goal struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

func (g goal) verdict() string {
	if g.Met {
		return "met"
	}
	return "missed"
}

// judge collects goals on what was measured. A goal whose figures are missing is
// left out.
type judge struct {
	contests []held
	goals    []goal
}

func goalsOf(contests []held) []goal {
	j := &judge{contests: contests}
	j.lives()
	j.post()
	j.start()
	j.gateways()
	j.growth()
	j.memory()
	j.nodes()
	return j.goals
}

func (j *judge) lives() {
	at := func(name string, g ground, callers int) ref { return ref{"lives", name, g, callers} }
	one, many, light := at("onejob", onPostgres, 64), at("onejob", onPostgres, 256), at("onejob", onSQLite, 64)
	j.ratio("G1 PostgreSQL, 64 callers: jobs/s beside raw SQL, grouped", one, at("raw SQL, grouped", onPostgres, 64), perSecond, least(0.9))
	j.ratio("G1 PostgreSQL, 64 callers: jobs/s beside raw SQL, a transaction a step", one, at("raw SQL, a transaction a step", onPostgres, 64), perSecond, least(4.5))
	j.ratio("G1 PostgreSQL, 64 callers: jobs/s beside River, closed loop", one, at("River", onPostgres, 64), perSecond, least(25))
	j.ratio("G1 PostgreSQL, 64 callers: CPU a job beside River's batches", one, at("River, batches of 2,000", onPostgres, 1), livesCPU, below(0.5))
	j.ratio("G2 PostgreSQL, 256 callers: jobs/s beside raw SQL, grouped", many, at("raw SQL, grouped", onPostgres, 256), perSecond, least(0.93))
	j.value("G2 PostgreSQL, 256 callers: p99 in ms", many, p99, below(60))
	j.ratio("G3 SQLite, 64 callers: jobs/s beside raw SQL, grouped", light, at("raw SQL, grouped", onSQLite, 64), perSecond, least(0.85))
	j.ratio("G3 SQLite, 64 callers: jobs/s beside goqite", light, at("goqite", onSQLite, 64), perSecond, least(6))
	j.value("G5 PostgreSQL, 64 callers: create to visible result, p50 in ms", one, p50, most(10))
	j.value("G7 WAL of a life at a kilobyte of input, in bytes", one, wal, most(3*1024))
}

func (j *judge) post() {
	echo := ref{"post", "echo", onNothing, postConnections}
	j.ratio("G4 POST /v1/jobs on SQLite: CPU beside the echo server", ref{"post", "onejob", onSQLite, postConnections}, echo, requestCPU, most(1.7))
	j.ratio("G4 POST /v1/jobs on PostgreSQL: CPU beside the echo server", ref{"post", "onejob", onPostgres, postConnections}, echo, requestCPU, most(2.8))
}

func (j *judge) start() {
	onejob := ref{"start", "onejob", onPostgres, 0}
	j.value("G5 PostgreSQL: create to the provider, p50 in ms", onejob, p50, most(1.5))
	j.value("G5 PostgreSQL: create to the provider, p99 in ms", onejob, p99, most(10))
}

func (j *judge) gateways() {
	at := func(name string, g ground) ref { return ref{"gateways", name, g, gatewayConnections} }
	light, large, proxy := at("onejob", onSQLite), at("onejob", onPostgres), at("Go reverse proxy", onNothing)
	j.ratio("G6 front door on SQLite: calls/s beside a plain proxy", light, proxy, callsPerSecond, least(0.45))
	j.ratio("G6 front door on PostgreSQL: calls/s beside a plain proxy", large, proxy, callsPerSecond, least(0.28))
	j.ratio("G6 front door on SQLite: calls/s beside Bifrost's core", light, at("Bifrost core", onNothing), callsPerSecond, least(0.6))
	j.ratio("G6 front door on SQLite: calls/s beside GoModel with audit", light, at("GoModel, audit on", onNothing), callsPerSecond, least(2))
	j.ratio("G6 front door on SQLite: calls/s beside Portkey", light, at("Portkey", onNothing), callsPerSecond, least(8))
	for _, on := range []ref{light, large} {
		what := "G6 front door on " + string(on.on) + ": "
		j.value(what+"added p50 in ms", on, addedP50, most(1.2))
		j.value(what+"added p99 in ms", on, addedP99, most(12))
		j.value(what+"CPU µs a call", on, callCPU, most(330))
	}
}

func (j *judge) growth() {
	h := j.contest("growth")
	if h == nil || len(ofSizes(h.Rows)) == 0 {
		return
	}
	sizes := ofSizes(h.Rows)
	full := sizes[len(sizes)-1]
	j.say("G7 "+full.Name+": create beside an empty store", full.Figures[createRatio], most(1.2))
	j.say("G7 "+full.Name+": claim beside an empty store", full.Figures[claimRatio], most(1.2))
}

func (j *judge) memory() {
	h := j.contest("memory")
	if h == nil {
		return
	}
	for _, r := range h.Rows {
		mib, on := r.Figures[resident], string(r.On)+": "
		early, overload := r.Figures[residentEarly]
		switch {
		case overload:
			j.say("G8 "+on+r.Name+": memory at the end beside that at first", mib/early, most(1.1))
			j.say("G8 "+on+r.Name+": jobs lost or done twice", r.Figures[lostOrTwice], most(0))
		case strings.HasPrefix(r.Name, "idle"):
			j.say("G8 "+on+r.Name+", MiB", mib, most(40))
		default:
			j.say("G8 "+on+r.Name+", MiB", mib, most(150))
		}
	}
}

func (j *judge) nodes() {
	j.ratio("G9 two nodes: jobs/s beside one", ref{"nodes", "two nodes", onPostgres, 64}, ref{"nodes", "one node", onPostgres, 64}, perSecond, least(1))
	name := fmt.Sprintf("%d idle nodes", idleNodes)
	j.value("G9 "+name+": database, % of a core", ref{"idle", name, onPostgres, 0}, idleDatabase, below(1))
}

// livesCPU is client and database together; no row has it as it is.
const livesCPU figure = "cpu_us_per_job_together"

// ref names a row.
type ref struct {
	contest, name string
	on            ground
	callers       int
}

func (j *judge) contest(name string) *held {
	i := slices.IndexFunc(j.contests, func(h held) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &j.contests[i]
}

func (j *judge) find(at ref, f figure) (float64, bool) {
	h := j.contest(at.contest)
	if h == nil {
		return 0, false
	}
	for _, r := range h.Rows {
		if r.Name != at.name || r.On != at.on || r.Callers != at.callers {
			continue
		}
		if f == livesCPU {
			return r.Figures[clientCPU] + r.Figures[databaseCPU], true
		}
		v, ok := r.Figures[f]
		return v, ok
	}
	return 0, false
}

func (j *judge) value(what string, at ref, f figure, b bound) {
	if v, ok := j.find(at, f); ok {
		j.say(what, v, b)
	}
}

func (j *judge) ratio(what string, a, beside ref, f figure, b bound) {
	v, found := j.find(a, f)
	w, alsoFound := j.find(beside, f)
	if found && alsoFound {
		j.say(what, v/w, b)
	}
}

func (j *judge) say(what string, got float64, b bound) {
	j.goals = append(j.goals, goal{What: what, Want: b.says, Got: fmt.Sprintf("%.4g", got), Met: b.met(got)})
}

// bound is what a figure must keep.
type bound struct {
	says string
	met  func(got float64) bool
}

func least(want float64) bound {
	return bound{fmt.Sprintf("≥ %g", want), func(got float64) bool { return got >= want }}
}

func most(want float64) bound {
	return bound{fmt.Sprintf("≤ %g", want), func(got float64) bool { return got <= want }}
}

func below(want float64) bound {
	return bound{fmt.Sprintf("< %g", want), func(got float64) bool { return got < want }}
}
