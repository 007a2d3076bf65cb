package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

const smallDisk = "ONEJOB_TEST_SMALL_DISK"

// TestSmallDisk is the process that TestARealFullDiskIsNeverAcknowledged starts,
// in a namespace of its own where it may mount a disk of three megabytes.
func TestSmallDisk(t *testing.T) {
	folder := os.Getenv(smallDisk)
	if folder == "" {
		t.Skip("only as another test's process")
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	ballast, path := filepath.Join(folder, "ballast"), filepath.Join(folder, "onejob.db")
	must(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	s := open(t, path, sqlite.Options{})
	acknowledged, refusals := map[string]bool{}, 0
	for i := 0; refusals < 20 && i < 10_000; i++ {
		p := startedIntent(t, fmt.Sprint("k", i))
		results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{p})
		switch {
		case err == nil && results[0].Err == nil:
			acknowledged[p.ID] = true
		case errors.Is(err, onejob.ErrStoreUnavailable):
			refusals++
		default:
			t.Fatalf("a full disk answered %v, %v; want store-unavailable", err, results)
		}
	}
	wantJobs(t, s, acknowledged) // reading goes on
	if err := s.Check(t.Context()); err == nil {
		t.Log("Check found room for its own row")
	}
	if refusals == 0 {
		t.Error("the disk never filled up")
	}
	must(t, os.Remove(ballast))
	acknowledged[mustCreate(t, s, startedIntent(t, "after")).Job.ID] = true
	must(t, s.Check(t.Context()))
	must(t, s.Close())
	wantJobs(t, open(t, path, sqlite.Options{}), acknowledged)
	fmt.Printf("filled after %d jobs\n", len(acknowledged))
}

func TestARealFullDiskIsNeverAcknowledged(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSmallDisk$", "-test.v")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case len(out) == 0 && err != nil:
		t.Skipf("no namespaces here: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("no small disk here: %s", out)
	case err != nil || !strings.Contains(string(out), "filled after"):
		t.Errorf("on a full disk: %v\n%s", err, out)
	}
}
