//go:build !linux

package pgtest

import (
	"os/exec"
	"syscall"
)

// owner is not needed elsewhere: tests do not run as root there.
type owner struct{ uid, gid int }

func findOwner() (*owner, error) { return nil, nil }

func (*owner) attributes() *syscall.SysProcAttr { return nil }

func supervise(cmd *exec.Cmd, started chan<- error, exited chan<- struct{}) {
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait() // how it ended shows in what the test sees
	}
	close(exited)
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
