package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownTime is the CPU time of this process so far.
func ownTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for no process that lives
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is the unit of /proc's times on Linux.
const clockTick = 10 * time.Millisecond

// Fields of /proc/PID/stat, counted from after the name (proc_pid_stat(5)).
const (
	statParent    = 1
	statTimesFrom = 11 // utime, stime, and those of children that have ended
	statTimesTo   = 15
)

// timeOf is the CPU time so far of a process and its children, those that have
// ended included. Other processes of the same name are not counted.
func timeOf(pid int) (total time.Duration) {
	own := strconv.Itoa(pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		fields := statOf(path)
		if fields == nil || (fields[statParent] != own && filepath.Base(filepath.Dir(path)) != own) {
			continue
		}
		for _, f := range fields[statTimesFrom:statTimesTo] {
			n, _ := strconv.ParseInt(f, 10, 64)
			total += time.Duration(n) * clockTick
		}
	}
	return total
}

// exactTimeOf is [timeOf] of processes of one thread each, to the nanosecond: what a
// database spends on being idle is less than a tick of each of its processes. Those
// that have ended count by ticks.
func exactTimeOf(pid int) (total time.Duration) {
	own := strconv.Itoa(pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		fields := statOf(path)
		if fields == nil || (fields[statParent] != own && filepath.Base(filepath.Dir(path)) != own) {
			continue
		}
		for i, f := range fields[statTimesFrom:statTimesTo] {
			if n, _ := strconv.ParseInt(f, 10, 64); i >= 2 {
				total += time.Duration(n) * clockTick
			}
		}
		var ran int64
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "schedstat")); err == nil {
			_, _ = fmt.Sscan(string(text), &ran)
		}
		total += time.Duration(ran)
	}
	return total
}

// parentOf is the parent of a process; zero if there is no such process.
func parentOf(pid int) int {
	fields := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	if fields == nil {
		return 0
	}
	parent, _ := strconv.Atoi(fields[statParent])
	return parent
}

// statOf reads the fields after the name, which may hold spaces. Nil: the process
// has ended.
func statOf(path string) []string {
	stat, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < statTimesTo {
		return nil
	}
	return fields
}
