package loadgen_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob/internal/loadgen"
)

func TestQuantilesAreThoseOfTheDurationsToAFewPercent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h loadgen.Histogram
		took := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "ns") >> rapid.IntRange(0, 40).Draw(t, "shift"))
		}), 1, 200).Draw(t, "took")
		for _, d := range took {
			h.Add(d)
		}
		slices.Sort(took)
		q := h.Quantiles()
		if q.Count != int64(len(took)) || q.Max != took[len(took)-1] {
			t.Fatalf("count %d, max %s; want %d, %s", q.Count, q.Max, len(took), took[len(took)-1])
		}
		for share, got := range map[float64]time.Duration{0.5: q.P50, 0.9: q.P90, 0.99: q.P99} {
			rank := int(share*float64(len(took)) + 0.999999)
			want := took[max(rank, 1)-1]
			if got < want-time.Microsecond || got > want+want/60+time.Microsecond {
				t.Errorf("the %g quantile is %s, want %s", share, got, want)
			}
		}
		var counted int64
		for _, b := range h.Bars() {
			counted += b.Count
		}
		if counted != q.Count {
			t.Errorf("the bars count %d of %d", counted, q.Count)
		}
	})
}

func TestBarsGoInRoundSteps(t *testing.T) {
	t.Parallel()
	var h loadgen.Histogram
	if bars := h.Bars(); len(bars) != 0 {
		t.Errorf("nothing has bars: %v", bars)
	}
	for _, d := range []time.Duration{900 * time.Microsecond, 2900 * time.Microsecond, 2900 * time.Microsecond} {
		h.Add(d)
	}
	want := []loadgen.Bar{{UpTo: time.Millisecond, Count: 1}, {UpTo: 1500 * time.Microsecond}, {UpTo: 2 * time.Millisecond}, {UpTo: 3 * time.Millisecond, Count: 2}}
	if got := h.Bars(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
