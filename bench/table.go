package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine is where the figures are from.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Date  string `json:"date"`
}

func thisMachine() machine {
	m := machine{CPU: "unknown", Cores: runtime.NumCPU(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly)}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// goal is a ratio between two rows of one run.
type goal struct {
	What string  `json:"what"`
	Want string  `json:"want"`
	Got  float64 `json:"got"`
	Met  bool    `json:"met"`
}

func goalsOf(rows []row) (goals []goal) {
	find := func(name string, g ground, callers int) *row {
		for i := range rows {
			if rows[i].Name == name && rows[i].Ground == g && rows[i].Callers == callers {
				return &rows[i]
			}
		}
		return nil
	}
	atLeast := func(what string, want float64, a, b *row) {
		if a != nil && b != nil {
			got := a.PerSec / b.PerSec
			goals = append(goals, goal{What: what, Want: fmt.Sprintf("≥ %.2f", want), Got: got, Met: got >= want})
		}
	}
	one, many := find("onejob", onPostgres, 64), find("onejob", onPostgres, 256)
	atLeast("PostgreSQL, 64 callers: jobs/s beside raw SQL, grouped", 0.9, one, find("raw SQL, grouped", onPostgres, 64))
	atLeast("PostgreSQL, 64 callers: jobs/s beside raw SQL, a transaction a step", 4.5, one, find("raw SQL, a transaction a step", onPostgres, 64))
	atLeast("PostgreSQL, 64 callers: jobs/s beside River, closed loop", 25, one, find("River", onPostgres, 64))
	if batches := find("River, batches of 2,000", onPostgres, 1); one != nil && batches != nil {
		got := one.cpu() / batches.cpu()
		goals = append(goals, goal{What: "PostgreSQL, 64 callers: CPU a job beside River's batches", Want: "< 0.50", Got: got, Met: got < 0.5})
	}
	atLeast("PostgreSQL, 256 callers: jobs/s beside raw SQL, grouped", 0.93, many, find("raw SQL, grouped", onPostgres, 256))
	if many != nil {
		ms := float64(many.P99) / float64(time.Millisecond)
		goals = append(goals, goal{What: "PostgreSQL, 256 callers: p99 in ms", Want: "< 60", Got: ms, Met: ms < 60})
	}
	light := find("onejob", onSQLite, 64)
	atLeast("SQLite, 64 callers: jobs/s beside raw SQL, grouped", 0.85, light, find("raw SQL, grouped", onSQLite, 64))
	atLeast("SQLite, 64 callers: jobs/s beside goqite", 6, light, find("goqite", onSQLite, 64))
	return goals
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, %s, %s; medians\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Go, r.Machine.Date)
	fmt.Fprintln(w, "| on | what | callers | jobs/s | p50 ms | p99 ms | CPU µs a job: client | database | WAL bytes a job | |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|---:|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "| %s | %s | %d | %.0f | %.1f | %.1f | %.0f | %s | %s | %s |\n", row.Ground, row.Name, row.Callers, row.PerSec,
			float64(row.P50)/1e6, float64(row.P99)/1e6, row.Client, orDash(row.Database), orDash(row.WAL), row.Durable)
	}
	fmt.Fprintln(w, "\n| goal | wanted | got | |\n|---|---|---:|---|")
	for _, g := range r.Goals {
		verdict := "missed"
		if g.Met {
			verdict = "met"
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %s |\n", g.What, g.Want, g.Got, verdict)
	}
}

func orDash(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", v)
}
