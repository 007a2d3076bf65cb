package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed nodejs/package.json nodejs/*.mjs portkey/package.json
var drivers embed.FS

// nodeJS is a peer written for Node.js, driven by a small program of its own.
func nodeJS(c contestant, driver string) contestant {
	c = installed(c, "nodejs")
	c.turn = func(ctx context.Context, s *services, d time.Duration) (sample, error) {
		dir, err := s.installNodeJS(ctx, "nodejs")
		if err != nil {
			return nil, err
		}
		at := s.redisAt
		if c.on == onPostgres {
			if at, err = s.newDatabase(ctx); err != nil {
				return nil, err
			}
		}
		jobs := jobsFor(d)
		cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, driver), at, strconv.Itoa(jobs))
		cmd.Dir = dir
		return s.drive(cmd, c.on, jobs)
	}
	return c
}

// installed needs the peers of a folder for Node.js.
func installed(c contestant, folder string) contestant {
	c.needs = append(c.needs, "node", "npm")
	c.prepare = func(ctx context.Context, s *services) error {
		_, err := s.installNodeJS(ctx, folder)
		return err
	}
	return c
}

// installNodeJS installs the pinned peers of a folder once a run, in the one that is
// thrown away. Their install scripts are not run.
func (s *services) installNodeJS(ctx context.Context, folder string) (string, error) {
	dir := filepath.Join(s.dir, folder)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if lacking := s.lacking[dir]; lacking != nil {
		return "", lacking
	}
	files, err := fs.Sub(drivers, folder)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		failed := s.lacks(dir, &unobtainable{what: "its packages cannot be installed", out: string(out), err: err})
		return "", errors.Join(failed, os.RemoveAll(dir)) // it would count as installed
	}
	return dir, nil
}

// told is what a driver says at both ends of a phase. It goes on when it is answered.
type told struct {
	Phase string `json:"phase"`
	Took  int64  `json:"took_ns"` // zero at the beginning
	CPU   int64  `json:"cpu_us"`
}

// drive has a driver add and drain jobs, and reads the database's CPU time between
// the phases.
func (s *services) drive(cmd *exec.Cmd, g ground, jobs int) (sample, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	replies, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	says, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	phases, heard := s.listen(says, replies, g, jobs)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, complaint.Bytes())
	}
	if heard != nil || phases["add"] == nil || phases["drain"] == nil {
		return nil, fmt.Errorf("the driver did not tell of both phases: %w", heard)
	}
	return both(phases["add"], phases["drain"]), nil
}

func (s *services) listen(says io.Reader, replies io.Writer, g ground, jobs int) (map[string]sample, error) {
	phases, before := map[string]sample{}, time.Duration(0)
	lines := bufio.NewScanner(says)
	for lines.Scan() {
		var t told
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return phases, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if t.Took == 0 {
			before = s.databaseTime(g)
		} else {
			cpu := float64(t.CPU + (s.databaseTime(g) - before).Microseconds())
			phases[t.Phase] = sample{
				perSecond: float64(jobs) / time.Duration(t.Took).Seconds(),
				totalCPU:  cpu / float64(jobs),
			}
		}
		if _, err := io.WriteString(replies, "\n"); err != nil {
			return phases, err
		}
	}
	return phases, lines.Err()
}
