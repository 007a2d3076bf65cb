package main

import (
	"os"
	"runtime"
	"syscall"
)

// dieHere is SIGKILL, which nothing comes after.
func dieHere() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// stopHere is SIGSTOP to the very thread that calls: one to the process is taken by
// whichever thread gets to run, and the caller could go on for a while.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
}
