package llama

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed node
var program embed.FS

// Server is a process that serves a model. It ends with Close.
type Server struct {
	URL     string // http://127.0.0.1:…
	dir     string
	process *exec.Cmd
}

// Start installs the server's packages, writes a model and serves it. It takes half a
// minute where nothing is cached.
func Start(ctx context.Context, seed uint64) (_ *Server, err error) {
	s := &Server{}
	if s.dir, err = os.MkdirTemp("", "onejob-llama-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	files, err := fs.Sub(program, "node")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(s.dir, files); err != nil {
		return nil, err
	}
	model, err := s.writeModel(seed)
	if err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, "npm", "install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = s.dir
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install: %w: %s", err, out)
	}
	return s, s.serve(ctx, model)
}

func (s *Server) writeModel(seed uint64) (path string, err error) {
	path = filepath.Join(s.dir, "model.gguf")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(WriteModel(f, seed), f.Close())
}

// serve starts the process and waits for its port.
func (s *Server) serve(ctx context.Context, model string) error {
	s.process = exec.CommandContext(ctx, "node", "server.mjs", model)
	s.process.Dir, s.process.Stderr = s.dir, os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the model was not served: %w", err)
	}
	s.URL = "http://127.0.0.1:" + strings.TrimSpace(port)
	return nil
}

// Close ends the process and removes what was installed.
func (s *Server) Close() error {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
	return os.RemoveAll(s.dir)
}
