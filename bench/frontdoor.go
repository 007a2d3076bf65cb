package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// startFrontDoor starts onejob serve, with one target.
func startFrontDoor(g ground) startDoor {
	return func(ctx context.Context, s *services, provider string) (*door, error) {
		at, err := s.newSite(ctx, g, fmt.Sprintf(`targets: {gpt: {provider: openai, base_url: "%s/v1", model: %s}}
kinds: {chat: {effect: none, targets: [gpt]}}
`, provider, model))
		if err != nil {
			return nil, err
		}
		return at.frontDoor(ctx)
	}
}

// frontDoor serves a site with a kind chat.
func (at *site) frontDoor(ctx context.Context) (*door, error) {
	n, err := at.serve(ctx)
	if err != nil {
		return nil, err
	}
	return &door{cmd: n.cmd, calls: calls{
		URL: n.url + "/openai/v1/chat/completions", Model: "chat", Header: map[string]string{"Authorization": "Bearer " + at.key},
	}}, nil
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

// certifiedPair has two targets for the kind chat, and the contract.
const certifiedPair = `targets:
  primary: {provider: openai, base_url: "PRIMARY/v1", model: MODEL, sandbox: SANDBOX}
  backup:  {provider: openai, base_url: "BACKUP/v1", model: MODEL, sandbox: SANDBOX}
kinds: {chat: {effect: EFFECT, contract: chat.yaml, targets: [primary, backup], timeout: 1s, RULESmax_attempts: 5}}
`

// frontDoorWith starts onejob serve with a fallback that is certified.
func frontDoorWith(effect, rules string) startPair {
	return func(ctx context.Context, s *services, primary, backup string) (*door, error) {
		mode, sandbox := "live", "false"
		if effect != "none" { // a certificate for an effect is had where nothing is real
			mode, sandbox = "sandbox", "true"
		}
		fill := strings.NewReplacer("PRIMARY", primary, "BACKUP", backup, "MODEL", model, "MODE", mode, "SANDBOX", sandbox, "EFFECT", effect, "RULES", rules)
		at, err := s.newSite(ctx, onSQLite, fill.Replace(certifiedPair))
		if err != nil {
			return nil, err
		}
		if err := at.certify(ctx, fill.Replace(chatContract)); err != nil {
			return nil, err
		}
		d, err := at.frontDoor(ctx)
		if err == nil {
			d.Header["Prefer"] = "wait=5"
		}
		return d, err
	}
}

// certify verifies the target backup by a contract for the kind chat.
func (at *site) certify(ctx context.Context, contract string) error {
	var cases strings.Builder
	for i := range 29 {
		tags := "[]"
		if i == 0 {
			tags = `["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id":"c-%d","input":{"model":"chat","messages":[{"role":"user","content":"case %d"}],"max_tokens":100,"temperature":0},"tags":%s}`+"\n", i, i, tags)
	}
	for name, text := range map[string]string{"chat.yaml": contract, "cases.jsonl": cases.String()} {
		if err := os.WriteFile(filepath.Join(at.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, err := at.command(ctx, "contract", "verify", "chat", "--target", "backup", "--config", at.config(), "--store", at.store)
	return err
}
