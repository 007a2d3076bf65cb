// Command bench measures onejob beside other ways of getting jobs done durably, and
// says which of its goals it met.
//
// The contestants of a contest share one throw-away PostgreSQL (and Redis, where it
// is installed) and take turns, round by round, so that what disturbs one disturbs
// all. docs/benchmarks.md says what each row is and how each peer is tuned.
//
// It is a module of its own, so that what it measures never reaches who uses onejob.
// `make bench-peers` and `make bench-growth` run it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// headroom is memory that this process asks for and never touches, as onejob serve does,
// for all contestants in it alike: a heap of a few megabytes would be collected dozens
// of times a second.
const headroom = 32 << 20

// settings are what the command line asks for.
type settings struct {
	contests []string
	only     []string // parts of the names of contestants; none: all
	runs     int      // of everything
	rounds   int
	length   time.Duration // of one turn
	list     bool
	json     string // a file for this run's figures
	write    string // a page whose table is replaced

	finished, queued int // jobs that the growth contest ends with
	curves           string
	idle, overload   time.Duration
	lives            int // jobs that the disk contest does at a time
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	contests := flags.String("contest", "lives,post,start,batches,nodes,idle", "comma-separated contests; -list names them")
	only := flags.String("only", "", "comma-separated parts of the names of contestants")
	flags.IntVar(&s.runs, "runs", 1, "how many times everything is done, with new servers each time; the tables then have the medians of the runs")
	flags.IntVar(&s.rounds, "rounds", 3, "how many times each contestant has its turn")
	flags.DurationVar(&s.length, "for", 5*time.Second, "length of one turn")
	flags.BoolVar(&s.list, "list", false, "list contests and contestants, and measure nothing")
	flags.StringVar(&s.json, "json", "", "also write the figures to this `file`")
	flags.StringVar(&s.write, "write", "", "also replace the table in this `page`; figures of other contests are kept beside it")
	flags.IntVar(&s.finished, "finished", 10_000_000, "growth: finished jobs at the end")
	flags.IntVar(&s.queued, "queued", 1_000_000, "growth: queued jobs at the end")
	flags.StringVar(&s.curves, "svg", "", "growth: also draw the curves to this `file`")
	flags.DurationVar(&s.idle, "idle", time.Minute, "memory: how long a server is left alone before it is looked at")
	flags.DurationVar(&s.overload, "overload", time.Minute, "memory: how long three times too much is offered")
	flags.IntVar(&s.lives, "lives", 50_000, "disk: jobs to do at a time")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.contests = strings.Split(*contests, ",")
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	for _, name := range s.contests {
		if !slices.ContainsFunc(allContests(), func(c contest) bool { return c.name == name }) {
			return s, fmt.Errorf("there is no contest %q; -list names them", name)
		}
	}
	if s.runs < 1 || s.rounds < 1 || s.length <= 0 || s.finished < 1 || s.queued < 1 || s.lives < 1 || s.idle < 0 || s.overload <= 0 || flags.NArg() > 0 {
		return s, errors.New("-runs, -rounds, -for, -finished, -queued, -lives and -overload are above zero, -idle is not below, and there are no arguments")
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if act := roleOf(args[0]); act != nil {
			return act(ctx, args[1:])
		}
	}
	chosen, err := parse(args)
	if err != nil {
		return err
	}
	if chosen.list {
		return list(os.Stdout, chosen)
	}
	untouched := make([]byte, headroom)
	r, err := measureRuns(ctx, chosen)
	runtime.KeepAlive(untouched)
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	r.print(&tables)
	fmt.Print(tables.String())
	if chosen.json != "" {
		err = r.save(chosen.json)
	}
	if chosen.write != "" {
		err = errors.Join(err, r.write(chosen.write))
	}
	return err
}

// allContests lists every question, in the order of the tables.
func allContests() []contest {
	return []contest{lives(), post(), start(), stages(), batches(), gateways(), timeouts(), nodes(), idling(), memory(), disk(), growth()}
}

// list prints who would take part.
func list(w io.Writer, s settings) error {
	for _, c := range allContests() {
		_, err := fmt.Fprintf(w, "%s: %s\n", c.name, c.title)
		if err != nil {
			return err
		}
		for _, one := range chosen(c, s) {
			_, _ = fmt.Fprintf(w, "    %s\n", one.label())
		}
	}
	return nil
}

// chosen are the contestants that -only leaves.
func chosen(c contest, s settings) []contestant {
	return slices.DeleteFunc(c.entries(s), func(one contestant) bool { return !s.takes(one) })
}

func (s settings) takes(c contestant) bool {
	return len(s.only) == 0 || slices.ContainsFunc(s.only, func(part string) bool { return strings.Contains(c.label(), part) })
}
