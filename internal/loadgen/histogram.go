package loadgen

import (
	"math/bits"
	"sync"
	"time"
)

// Histogram counts durations in cells that are at most 1.6 % wide, so that it takes
// the same room for a thousand and for a billion.
type Histogram struct {
	mu    sync.Mutex
	cells [cellCount]int64
	count int64
	max   time.Duration
}

const (
	stepBits  = 6 // cells per doubling, as a power of two
	steps     = 1 << stepBits
	cellCount = (40 - stepBits + 1) * steps // up to 2^40 µs, which is 12 days
)

// Add counts one.
func (h *Histogram) Add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cells[cellOf(d)]++
	h.count++
	h.max = max(h.max, d)
}

// cellOf: below 64 µs a cell is a microsecond, and above each doubling has 64.
func cellOf(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	if us < steps {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - stepBits
	return min((shift+1)*steps+int(us>>shift)-steps, cellCount-1)
}

// upperEnd is the longest duration that a cell counts, and a microsecond.
func upperEnd(cell int) time.Duration {
	if cell < steps {
		return time.Duration(cell+1) * time.Microsecond
	}
	shift := cell/steps - 1
	return time.Duration(uint64(cell%steps+steps+1)<<shift) * time.Microsecond
}

// Quantiles are the lengths that a share of the durations does not exceed, to 1.6 %.
type Quantiles struct {
	Count              int64
	P50, P90, P99, Max time.Duration
}

// Quantiles sums up.
func (h *Histogram) Quantiles() Quantiles {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Quantiles{Count: h.count, P50: h.quantile(0.5), P90: h.quantile(0.9), P99: h.quantile(0.99), Max: h.max}
}

func (h *Histogram) quantile(share float64) time.Duration {
	var below int64
	for cell, n := range h.cells {
		if below += n; n > 0 && float64(below) >= share*float64(h.count) {
			return min(upperEnd(cell), h.max)
		}
	}
	return h.max
}

// Bar is how many durations lie between the bar before and its own end.
type Bar struct {
	UpTo  time.Duration
	Count int64
}

// ends of bars within one power of ten.
var ends = []float64{1, 1.5, 2, 3, 4, 5, 7}

// Bars sums up in round steps, from the first that counts something to the last.
// Without durations there are none.
func (h *Histogram) Bars() []Bar {
	h.mu.Lock()
	defer h.mu.Unlock()
	var bars []Bar
	cell := 0
	for decade := time.Microsecond; cell < cellCount; decade *= 10 {
		for _, end := range ends {
			bar := Bar{UpTo: time.Duration(end * float64(decade))}
			for ; cell < cellCount && upperEnd(cell) <= bar.UpTo+bar.UpTo/128; cell++ {
				bar.Count += h.cells[cell]
			}
			bars = append(bars, bar)
		}
		if decade > 1000*time.Hour {
			break
		}
	}
	return trim(bars)
}

func trim(bars []Bar) []Bar {
	for len(bars) > 0 && bars[0].Count == 0 {
		bars = bars[1:]
	}
	for len(bars) > 0 && bars[len(bars)-1].Count == 0 {
		bars = bars[:len(bars)-1]
	}
	return bars
}
