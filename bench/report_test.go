package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func heldLives(rate float64) held {
	return held{Name: "lives", Title: "Whole lives of jobs", Rounds: 3, Rows: []row{
		{Name: "onejob", On: onPostgres, Callers: 64, Figures: sample{perSecond: rate, p50: 9}},
		{Name: "raw SQL, grouped", On: onPostgres, Callers: 64, Figures: sample{perSecond: 1000, p50: 8}},
	}}
}

func TestAPageKeepsTheContestsThatWereNotRun(t *testing.T) {
	t.Parallel()

	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+pageBegin+"stale\n"+pageEnd+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	idle := held{Name: "idle", Title: "Idle nodes", Rows: []row{{Name: "10 idle nodes", On: onPostgres, Figures: sample{idleDatabase: 0.5}}}}
	for _, r := range []report{{Contests: []held{heldLives(850), idle}}, {Contests: []held{heldLives(950)}}} {
		if err := r.write(page); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, want := range []string{"before\n", "after\n", "| 950 |", "### Idle nodes", "| ≥ 0.9 | 0.95 | met |", "| < 1 | 0.5 | met |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "stale") || strings.Contains(got, "| 850 |") {
		t.Errorf("the page keeps what was replaced:\n%s", got)
	}
}

func TestAPageWithoutMarkersIsLeftAsItIs(t *testing.T) {
	t.Parallel()

	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("words\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (report{Contests: []held{heldLives(1)}}).write(page); err == nil || !strings.Contains(err.Error(), "bench: begin") {
		t.Errorf("write = %v; want an error that names the markers", err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != "words\n" {
		t.Errorf("the page is %q, %v", text, err)
	}
}

func TestAGoalIsMissedByALittle(t *testing.T) {
	t.Parallel()

	for rate, want := range map[float64]string{899: "missed", 900: "met"} {
		goals := goalsOf([]held{heldLives(rate)})
		if len(goals) == 0 || goals[0].verdict() != want {
			t.Errorf("at %v of 1000 jobs/s: %+v; want the first %s", rate, goals, want)
		}
	}
}

func TestAGoalWithoutItsFiguresIsLeftOut(t *testing.T) {
	t.Parallel()

	for _, g := range goalsOf([]held{heldLives(900)}) {
		if strings.Contains(g.What, "River") || strings.Contains(g.What, "SQLite") || strings.HasPrefix(g.What, "G8") {
			t.Errorf("there is a goal on what was not measured: %+v", g)
		}
	}
}

func TestWhatIsMissingIsListed(t *testing.T) {
	t.Parallel()

	var b bytes.Buffer
	h := heldLives(1)
	h.LeftOut = []leftOut{{Name: "BullMQ on Redis", Missing: "redis-server is not installed"}}
	h.print(&b)
	if want := "Left out: BullMQ on Redis, since redis-server is not installed."; !strings.Contains(b.String(), want) {
		t.Errorf("printed\n%s\nwithout %q", b.String(), want)
	}
}

func TestMediansAreTakenFigureByFigure(t *testing.T) {
	t.Parallel()

	got := medians([]sample{{p50: 1, p99: 90}, {p50: 3, p99: 10}, {p50: 2, p99: 20}})
	if got[p50] != 2 || got[p99] != 20 {
		t.Errorf("medians = %v; want 2 and 20", got)
	}
}

func TestThePercentilesAreThoseOfSortedTimes(t *testing.T) {
	t.Parallel()

	var took []time.Duration
	for n := 100; n > 0; n-- {
		took = append(took, time.Duration(n)*time.Millisecond)
	}
	if half, most := quantiles(took); half != 51 || most != 100 {
		t.Errorf("quantiles = %v, %v; want 51 and 100", half, most)
	}
}

func TestAnInputTellsItsKey(t *testing.T) {
	t.Parallel()

	if got := keyIn(inputWith("run-7")); got != "run-7" {
		t.Errorf("keyIn = %q, want run-7", got)
	}
}

func TestTheCurvesAreOnePictureOfAllSizes(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "growth.svg")
	rows := []row{
		{Name: "empty", Figures: sample{createRatio: 1.01, claimRatio: 0.99}},
		{Name: size{100_000, 10_000}.String(), Figures: sample{createRatio: 1.1, claimRatio: 1.3}},
	}
	if err := drawGrowth(path, rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	circles := 0
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 4 {
		t.Errorf("%d points, want two curves of two", circles)
	}
	for _, want := range []string{"100,000 finished", "10,000 queued", "1.30", "goal: at most 1.2"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestSettingsThatMeasureNothingAreRefused(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"-contest", "speed"}, {"-rounds", "0"}, {"-for", "-1s"}, {"-finished", "0"}, {"lives"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
