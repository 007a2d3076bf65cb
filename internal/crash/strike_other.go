//go:build !linux

package main

import "os"

// dieHere ends the process as hard as the system can.
func dieHere() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// stopHere ends it too: only Linux has a thread stop at a point. The tests that need
// it then fail, and say so.
func stopHere() { dieHere() }
