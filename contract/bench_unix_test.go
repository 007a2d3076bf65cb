//go:build unix

package contract_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is spent on an output of 4 KB: less than a millisecond of CPU is promised. Wall
// time says little on a busy machine, so that CPU time is reported beside it.
func BenchmarkValidate(b *testing.B) {
	text := edit(b, small, "maxLength: 100}", "maxLength: 5000}", "maxItems: 5,", "maxItems: 500,")
	k := checker(b, parse(b, text, smallCases))
	steps := strings.TrimSuffix(strings.Repeat("12345,", 200), ",")
	raw := []byte(edit(b, goodSmall, "null", `"`+strings.Repeat("word ", 560)+`"`, "1,2", steps))
	if found := k.Validate(raw, []byte(smallInput)); len(raw) < 4000 || len(found) > 0 {
		b.Fatalf("%d bytes: %v", len(raw), found)
	}
	b.SetBytes(int64(len(raw)))
	before := spent(b)
	for b.Loop() {
		k.Validate(raw, []byte(smallInput))
	}
	b.ReportMetric(float64((spent(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// spent returns the CPU time of the process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
