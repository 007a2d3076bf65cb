package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// measureRuns holds the contests several times, each time with new servers, and
// takes the medians. What is one long turn is held in the first run alone.
func measureRuns(ctx context.Context, s settings) (report, error) {
	var all []report
	for n := range s.runs {
		r, err := measureAll(ctx, s)
		if err != nil {
			return report{}, fmt.Errorf("run %d: %w", n+1, err)
		}
		all = append(all, r)
		s.contests = slices.DeleteFunc(slices.Clone(s.contests), isOnce)
		if s.runs > 1 {
			fmt.Fprintf(os.Stderr, "run %d of %d is over\n", n+1, s.runs)
		}
	}
	return medianOf(all), nil
}

func isOnce(name string) bool {
	return slices.ContainsFunc(allContests(), func(c contest) bool { return c.name == name && c.once })
}

// medianOf takes the median of every figure over the runs, each of which is a median
// of its rounds. A contest or row that a run has not is left out of it there.
func medianOf(runs []report) report {
	if len(runs) == 1 {
		return runs[0]
	}
	var r report
	for _, h := range runs[0].Contests {
		same := []held{h}
		for _, other := range runs[1:] {
			if i := slices.IndexFunc(other.Contests, func(o held) bool { return o.Name == h.Name }); i >= 0 {
				same = append(same, other.Contests[i])
			}
		}
		r.Contests = append(r.Contests, medianOfContest(same))
	}
	r.Goals = goalsOf(r.Contests)
	return r
}

func medianOfContest(runs []held) held {
	h := runs[0]
	h.Runs, h.Rows = len(runs), slices.Clone(h.Rows)
	for i, row := range h.Rows {
		var figures, rounds []sample
		for _, run := range runs {
			for _, other := range run.Rows {
				if other.Name == row.Name && other.On == row.On && other.Callers == row.Callers {
					figures, rounds = append(figures, other.Figures), append(rounds, other.Rounds...)
				}
			}
		}
		h.Rows[i].Figures, h.Rows[i].Rounds = medians(figures), rounds
	}
	return h
}
