package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// BenchmarkLife is a job created with its first attempt marked, and finished: two
// commits for each batch. What is written a life is the steadiest of its figures,
// CPU the next, jobs a second the least.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1, 10, 64} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) { benchmarkLife(b, size) })
	}
}

func benchmarkLife(b *testing.B, size int) {
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "onejob.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	key, from := 0, spentSoFar(b)
	for b.Loop() {
		params := make([]onejob.JobCreateParams, size)
		for i := range params {
			key++
			params[i] = startedIntent(b, fmt.Sprint(key))
		}
		created, err := s.JobCreate(b.Context(), params)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.AttemptFinish(b.Context(), finishes(created)); err != nil {
			b.Fatal(err)
		}
	}
	to, lives := spentSoFar(b), float64(b.N*size)
	b.ReportMetric(lives/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((to.cpu-from.cpu).Microseconds())/lives, "cpu-µs/life")
	b.ReportMetric(float64(to.written-from.written)/1024/lives, "KB/life")
}

// spent is what this process has used up.
type spent struct {
	cpu     time.Duration
	written int64 // bytes handed to the kernel: the log, and checkpoints
}

func spentSoFar(tb testing.TB) (so spent) {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	so.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(io)) {
		_, _ = fmt.Sscanf(line, "wchar: %d", &so.written) // of the one line that says so
	}
	return so
}
