package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

// portkey is the gateway of that name, which listens on every address.
func portkey(c contestant) contestant {
	c = installed(c, "portkey")
	c.alone = true
	return c
}

// portkeyTarget is what a configuration of Portkey's says of a provider.
type portkeyTarget struct {
	Provider   string `json:"provider"`
	APIKey     string `json:"api_key"`
	CustomHost string `json:"custom_host"`
}

func portkeyAt(provider string) portkeyTarget {
	return portkeyTarget{Provider: "openai", APIKey: "sk-bench", CustomHost: provider + "/v1"}
}

func startPortkey(ctx context.Context, s *services, provider string) (*door, error) {
	return s.startPortkey(ctx, portkeyAt(provider))
}

// startPortkey starts the gateway. Its configuration comes with each call.
func (s *services) startPortkey(ctx context.Context, config any) (*door, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	dir, err := s.installNodeJS(ctx, "portkey")
	if err != nil {
		return nil, err
	}
	const port = "8787" // nobody else is in its network
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "node_modules/@portkey-ai/gateway/build/start-server.js"), "--port="+port, "--headless")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &door{cmd: cmd, calls: calls{
		URL: "http://127.0.0.1:" + port + "/v1/chat/completions", Model: model, Header: map[string]string{"X-Portkey-Config": string(text)},
	}}
	if err := untilReady(ctx, "http://127.0.0.1:"+port+"/"); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// portkeyConfig is a configuration of Portkey's, in its own words.
type portkeyConfig struct {
	Strategy portkeyStrategy `json:"strategy"`
	Timeout  int             `json:"request_timeout"` // ms
	Retry    *portkeyRetry   `json:"retry,omitempty"`
	Targets  []portkeyTarget `json:"targets"`
}

type portkeyStrategy struct {
	Mode string `json:"mode"`
}

type portkeyRetry struct {
	Attempts int   `json:"attempts"`
	On       []int `json:"on_status_codes"`
}

func portkeyWith(c portkeyConfig) startPair {
	return func(ctx context.Context, s *services, primary, backup string) (*door, error) {
		c.Targets = []portkeyTarget{portkeyAt(primary), portkeyAt(backup)}
		return s.startPortkey(ctx, c)
	}
}
