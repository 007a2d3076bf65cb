package bench_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// measure does op b.N times from the given number of callers, closed loop, and
// reports operations a second, their latency, and the CPU time of this process
// and of the database for each.
func measure(b *testing.B, callers int, op func(ctx context.Context, key string) error) {
	b.Helper()
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	b.ResetTimer()
	began, cpu := time.Now(), cpuTime()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for failed.Load() == nil {
				i := next.Add(1) - 1
				if i >= int64(b.N) {
					return
				}
				start := time.Now()
				if err := op(b.Context(), fmt.Sprintf("key-%d", i)); err != nil {
					failed.Store(&err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	elapsed, spent := time.Since(began), cpuTime()-cpu
	b.StopTimer()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // one operation's share of the elapsed time says nothing here
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "jobs/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-us/job")
}
