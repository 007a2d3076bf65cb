// Command bench measures whole lives of jobs beside other ways of getting jobs done
// durably, and prints one table.
//
// The contestants share one throw-away PostgreSQL (and Redis, where it is
// installed) and take turns, round by round, so that what disturbs one disturbs all.
// "raw" rows are the limit: the fewest statements that keep one key to one job and
// one result, without a library.
//
// It is a module of its own, so that what it measures never reaches who uses onejob.
// `make bench-peers` runs it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what was measured, for machines.
type report struct {
	Machine machine `json:"machine"`
	Rows    []row   `json:"rows"`
	Goals   []goal  `json:"goals"`
}

// row is the medians of one contestant's rounds.
type row struct {
	Name    string `json:"name"`
	Ground  ground `json:"ground"`
	Callers int    `json:"callers"`
	Durable string `json:"durable,omitempty"`
	figures
	Rounds []figures `json:"rounds"`
}

func run(ctx context.Context) error {
	rounds := flag.Int("rounds", 3, "how many times each contestant has its turn")
	length := flag.Duration("for", 5*time.Second, "length of one turn")
	only := flag.String("only", "", "comma-separated parts of the names of contestants")
	asJSON := flag.String("json", "", "also write the figures to this file")
	flag.Parse()
	s, err := startServices(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }() // they are thrown away
	chosen := choose(*only, s)
	measured := map[string][]figures{}
	for n := range *rounds {
		for i, c := range chosen {
			fmt.Fprintf(os.Stderr, "\rround %d of %d, %d of %d: %-50s", n+1, *rounds, i+1, len(chosen), label(c))
			f, err := round(ctx, c, s, *length)
			if err != nil {
				return err
			}
			measured[label(c)] = append(measured[label(c)], f)
		}
	}
	fmt.Fprintf(os.Stderr, "\r%80s\r", "")
	r := report{Machine: thisMachine()}
	for _, c := range chosen {
		r.Rows = append(r.Rows, rowOf(c, measured[label(c)]))
	}
	r.Goals = goalsOf(r.Rows)
	r.print(os.Stdout)
	if *asJSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*asJSON, append(text, '\n'), 0o644)
}

func label(c contestant) string {
	return fmt.Sprintf("%s on %s, %d callers", c.name, c.ground, c.callers)
}

func choose(only string, s *services) (chosen []contestant) {
	for _, c := range contestants() {
		wanted := only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool {
			return strings.Contains(label(c), part)
		})
		if wanted && s.has(c.ground) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// contestants lists everybody, in the order of the table.
func contestants() []contestant {
	return []contestant{
		{name: "raw SQL, a transaction a step", ground: onPostgres, callers: 64, open: openNaive},
		{name: "raw SQL, grouped", ground: onPostgres, callers: 64, open: openRawGrouped},
		{name: "onejob", ground: onPostgres, callers: 64, open: openOnPostgres},
		{name: "River", ground: onPostgres, callers: 64, open: openRiver},
		{name: "DBOS", ground: onPostgres, callers: 64, open: openDBOS},
		{name: "raw SQL, grouped", ground: onPostgres, callers: 256, open: openRawGrouped},
		{name: "onejob", ground: onPostgres, callers: 256, open: openOnPostgres},
		{name: "River", ground: onPostgres, callers: 256, open: openRiver},
		{name: "River, batches of 2,000", ground: onPostgres, callers: 1, open: openRiverBatch, durable: "nobody waits for one job"},
		{name: "raw SQL, grouped", ground: onSQLite, callers: 64, open: openRawSQLite},
		{name: "onejob", ground: onSQLite, callers: 64, open: openOnSQLite},
		{name: "goqite", ground: onSQLite, callers: 64, open: openGoqite, durable: "no key, no result kept"},
		{name: "Asynq", ground: onRedis, callers: 64, open: openAsynq, durable: "told before the end is on disk"},
	}
}

// rowOf takes the median of every figure by itself.
func rowOf(c contestant, rounds []figures) row {
	median := func(field func(figures) float64) float64 {
		sorted := slices.SortedFunc(slices.Values(rounds), func(a, b figures) int { return cmp.Compare(field(a), field(b)) })
		return field(sorted[len(sorted)/2])
	}
	return row{
		Name: c.name, Ground: c.ground, Callers: c.callers, Durable: c.durable, Rounds: rounds,
		figures: figures{
			Jobs:     int(median(func(f figures) float64 { return float64(f.Jobs) })),
			PerSec:   median(func(f figures) float64 { return f.PerSec }),
			P50:      time.Duration(median(func(f figures) float64 { return float64(f.P50) })),
			P99:      time.Duration(median(func(f figures) float64 { return float64(f.P99) })),
			Client:   median(func(f figures) float64 { return f.Client }),
			Database: median(func(f figures) float64 { return f.Database }),
			WAL:      median(func(f figures) float64 { return f.WAL }),
		},
	}
}
