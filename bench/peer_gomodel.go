package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// goModel is the gateway of that name, which listens on every address. It is measured
// where its program is installed: its module has no name by which it could be fetched.
func goModel(c contestant) contestant {
	c.needs, c.alone = append(c.needs, "gomodel"), true
	return c
}

// startGoModel starts the gateway without what calls other hosts, and with its audit
// log and counting of tokens on or off.
func startGoModel(audit bool) startDoor {
	return func(ctx context.Context, s *services, provider string) (*door, error) {
		on := strconv.FormatBool(audit)
		return s.startGoModel(ctx, "OPENAI_API_KEY=sk-bench", "OPENAI_BASE_URL="+provider+"/v1", "FEATURE_FALLBACK_MODE=off",
			"LOGGING_ENABLED="+on, "USAGE_ENABLED="+on)
	}
}

func (s *services) startGoModel(ctx context.Context, env ...string) (*door, error) {
	dir, err := os.MkdirTemp(s.dir, "gomodel-")
	if err != nil {
		return nil, err
	}
	const port = "8080" // nobody else is in its network
	cmd := exec.CommandContext(ctx, "gomodel")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "PORT="+port, "LOG_LEVEL=error", "MODEL_LIST_URL=", "ADMIN_ENDPOINTS_ENABLED=false", "ADMIN_UI_ENABLED=false", "SWAGGER_ENABLED=false")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &door{cmd: cmd, calls: calls{URL: "http://127.0.0.1:" + port + "/v1/chat/completions", Model: model}}
	if err := untilReady(ctx, "http://127.0.0.1:"+port+"/health"); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// startGoModelWithBackup leaves retries as they are by default.
func startGoModelWithBackup(ctx context.Context, s *services, primary, backup string) (*door, error) {
	rules := filepath.Join(s.dir, "gomodel-fallback.json")
	text := fmt.Sprintf(`{"%[1]s": ["openai-backup/%[1]s"], "openai/%[1]s": ["openai-backup/%[1]s"]}`, model)
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		return nil, err
	}
	d, err := s.startGoModel(ctx, "OPENAI_API_KEY=sk-bench", "OPENAI_BASE_URL="+primary+"/v1", "OPENAI_BACKUP_API_KEY=sk-bench", "OPENAI_BACKUP_BASE_URL="+backup+"/v1",
		"FEATURE_FALLBACK_MODE=manual", "FALLBACK_MANUAL_RULES_PATH="+rules, "HTTP_TIMEOUT=1")
	if err == nil {
		d.Model = "openai/" + model
	}
	return d, err
}
