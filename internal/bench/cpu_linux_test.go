package bench_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is the CPU time spent so far by this process and by every PostgreSQL
// that it started.
func cpuTime() time.Duration {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self)
	total := time.Duration(self.Utime.Nano() + self.Stime.Nano())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		total += postgresTime(path)
	}
	return total
}

// clockTick is the unit of /proc's times on Linux.
const clockTick = 10 * time.Millisecond

// postgresTime reads the CPU time of one process, children that have ended
// included, if it is a postgres (proc_pid_stat(5): fields 14 to 17).
func postgresTime(path string) time.Duration {
	stat, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(stat, []byte("(postgres)")) {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:15] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
