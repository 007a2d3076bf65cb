package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	atPrimary  figure = "executions_at_primary"
	atBackup   figure = "executions_at_backup"
	executions figure = "executions"
	givenCode  figure = "status"
	answeredMS figure = "answered_ms"
)

// primaryTakes is how long the primary works; it is given a second.
const primaryTakes = 2500 * time.Millisecond

// timeouts is about how often the work of one call is done when its provider is slow.
func timeouts() contest {
	return contest{
		name: "timeouts", title: "One call, whose provider is slow", once: true,
		about: fmt.Sprintf("One call, with a key. The primary answers after %s, the time for a call is a second, and another provider would answer at once. "+
			"Counted is how often the providers did the work, once everything has come to rest: a provider finishes what it has begun.", primaryTakes),
		columns: []column{
			{executions, "executions", "%.0f"},
			{atPrimary, "at the primary", "%.0f"},
			{atBackup, "at the other", "%.0f"},
			{givenCode, "the caller got", "%.0f"},
			{answeredMS, "after ms", "%.0f"},
		},
		entries: func(settings) []contestant {
			fallback := portkeyConfig{Timeout: 1000, Strategy: portkeyStrategy{"fallback"}}
			retries := fallback
			retries.Retry = &portkeyRetry{Attempts: 2, On: []int{408, 429, 500, 502, 503, 504}}
			return []contestant{
				slowly(contestant{name: "onejob, effect external", on: onSQLite}, frontDoorWith("external", "")),
				slowly(contestant{name: "onejob, effect external, not waiting for late answers", on: onSQLite}, frontDoorWith("external", "linger: 200ms, ")),
				slowly(contestant{name: "onejob, effect none, a race after 500 ms", on: onSQLite}, frontDoorWith("none", "race: {after: 500ms, lanes: 2}, ")),
				slowly(contestant{name: "Bifrost core, 2 retries and a fallback"}, bifrostWith("-timeout", "1", "-retries", "2")),
				slowly(portkey(contestant{name: "Portkey, a fallback"}), portkeyWith(fallback)),
				slowly(portkey(contestant{name: "Portkey, 2 retries and a fallback"}), portkeyWith(retries)),
				slowly(goModel(contestant{name: "GoModel, 3 retries and a fallback"}), startGoModelWithBackup),
			}
		},
	}
}

// startPair starts a door with a primary and a backup.
type startPair func(ctx context.Context, s *services, primary, backup string) (*door, error)

func slowly(c contestant, start startPair) contestant {
	c.turn = func(ctx context.Context, s *services, _ time.Duration) (sample, error) {
		primary, err := startProvider(ctx)
		if err != nil {
			return nil, err
		}
		defer stop(primary.cmd)
		backup, err := startProvider(ctx)
		if err != nil {
			return nil, err
		}
		defer stop(backup.cmd)
		at, err := start(ctx, s, primary.url, backup.url)
		if err != nil {
			return nil, err
		}
		defer at.close()
		if err := primary.take(ctx, primaryTakes); err != nil {
			return nil, err
		}
		return at.callOnce(ctx, primary, backup)
	}
	return c
}

// callOnce makes one call and counts what the providers did for it.
func (d *door) callOnce(ctx context.Context, primary, backup *provider) (sample, error) {
	before, err := backup.executions(ctx) // what it was tried with
	if err != nil {
		return nil, err
	}
	d.Prefix = "once"
	began := time.Now()
	status, _, err := d.send(ctx, &http.Client{Timeout: time.Minute}, 1, d.body())
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	first, err := primary.executions(ctx)
	second, alsoErr := backup.executions(ctx)
	return sample{
		executions: float64(first + second - before), atPrimary: float64(first), atBackup: float64(second - before),
		givenCode: float64(status), answeredMS: milliseconds(took),
	}, errors.Join(err, alsoErr)
}

// chatContract takes chat completions as callers make them.
const chatContract = `apiVersion: onejob/contract.v1
kind: chat
input_schema:
  type: object
  additionalProperties: false
  required: [model, messages, max_tokens, temperature]
  properties:
    model: {type: string, maxLength: 20}
    messages:
      type: array
      maxItems: 10
      items:
        type: object
        additionalProperties: false
        required: [role, content]
        properties: {role: {type: string, maxLength: 10}, content: {type: string, maxLength: 2000}}
    max_tokens: {type: integer}
    temperature: {type: number}
output: {media: text}
cases: {files: [cases.jsonl], min_distinct: 29}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.90, max_failures: 0}}
side_effects: EFFECT
verify: {mode: MODE}
failover: {automatic: true}
`

// frontDoorWith starts onejob serve with a fallback that is certified.
func frontDoorWith(effect, rules string) startPair {
	return func(ctx context.Context, s *services, primary, backup string) (*door, error) {
		mode, sandbox := "live", "false"
		if effect != "none" { // a certificate for an effect is had where nothing is real
			mode, sandbox = "sandbox", "true"
		}
		at, err := s.newSite(ctx, onSQLite, strings.NewReplacer("PRIMARY", primary, "BACKUP", backup, "MODEL", model, "EFFECT", effect, "RULES", rules, "SANDBOX", sandbox).Replace(`targets:
  primary: {provider: openai, base_url: "PRIMARY/v1", model: MODEL, sandbox: SANDBOX}
  backup:  {provider: openai, base_url: "BACKUP/v1", model: MODEL, sandbox: SANDBOX}
kinds: {chat: {effect: EFFECT, contract: chat.yaml, targets: [primary, backup], timeout: 1s, RULESmax_attempts: 5}}
`))
		if err != nil {
			return nil, err
		}
		var cases strings.Builder
		for i := range 29 {
			tags := "[]"
			if i == 0 {
				tags = `["hostile"]`
			}
			fmt.Fprintf(&cases, `{"id":"c-%d","input":{"model":"chat","messages":[{"role":"user","content":"case %d"}],"max_tokens":100,"temperature":0},"tags":%s}`+"\n", i, i, tags)
		}
		contract := strings.NewReplacer("EFFECT", effect, "MODE", mode).Replace(chatContract)
		for name, text := range map[string]string{"chat.yaml": contract, "cases.jsonl": cases.String()} {
			if err := os.WriteFile(filepath.Join(at.dir, name), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		if _, err := at.command(ctx, "contract", "verify", "chat", "--target", "backup", "--config", at.config(), "--store", at.store); err != nil {
			return nil, err
		}
		d, err := at.frontDoor(ctx)
		if err == nil {
			d.Header["Prefer"] = "wait=5"
		}
		return d, err
	}
}

func bifrostWith(args ...string) startPair {
	return func(ctx context.Context, s *services, primary, backup string) (*door, error) {
		return s.startBifrost(ctx, append(args, "-provider", primary, "-fallback", backup)...)
	}
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
