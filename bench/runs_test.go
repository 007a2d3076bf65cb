package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRunsAreToldByTheirMedianAndGoalsAreJudgedByIt(t *testing.T) {
	t.Parallel()

	once := held{Name: "memory", Title: "Memory", Rounds: 1, Rows: []row{{Name: "idle for 1m0s", On: onSQLite, Figures: sample{resident: 30}}}}
	r := medianOf([]report{
		{Contests: []held{heldLives(700), once}}, {Contests: []held{heldLives(980)}}, {Contests: []held{heldLives(920)}},
	})
	var text bytes.Buffer
	r.print(&text)
	for _, want := range []string{
		"medians of 3 runs of 3 rounds", "| 920 |", "| ≥ 0.9 | 0.92 | met |", "one turn each", "| ≤ 40 | 30 | met |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, text.String())
		}
	}
}
