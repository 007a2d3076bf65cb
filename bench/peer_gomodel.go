package main

import (
	"context"
	"os"
	"os/exec"
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
