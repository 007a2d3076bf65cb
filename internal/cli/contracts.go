package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/production"
	"github.com/onejob-dev/onejob/internal/tokenizer"
	"github.com/onejob-dev/onejob/verification"
)

// useContracts has the store know the contracts and targets that there are, and what
// the gate goes by. It comes before any job is taken: what a job pins is kept.
func useContracts(ctx context.Context, cfg *config.Config, store onejob.CertificateStore, targets []onejob.Target) error {
	if len(cfg.Contracts) == 0 {
		return nil
	}
	digests := make(map[string]string, len(targets))
	for i := range targets {
		t := &targets[i]
		digests[t.Name] = t.Digest
		if err := store.TargetPut(ctx, onejob.TargetVersion{Digest: t.Digest, Name: t.Name, Body: cfg.TargetBody(t.Name)}); err != nil {
			return fmt.Errorf("target %s cannot be kept: %w", t.Name, err)
		}
	}
	for kind, c := range cfg.Contracts {
		body, err := c.Body()
		if err == nil {
			err = store.ContractPut(ctx, onejob.ContractVersion{Digest: c.Checker.Digest(), Kind: kind, Body: body})
		}
		if err != nil {
			return fmt.Errorf("the contract of %s cannot be kept: %w", kind, err)
		}
	}
	store.UseGate(onejob.GateTerms{Environment: cfg.Environment, Targets: digests})
	return nil
}

// newLine holds production to the configured contracts. Nil: there is none.
func newLine(cfg *config.Config, targets []onejob.Target, opts production.Options) (*production.Line, error) {
	if len(cfg.Contracts) == 0 {
		return nil, nil
	}
	opts.Contracts, opts.Environment = map[string]*contract.Contract{}, cfg.Environment
	for kind, c := range cfg.Contracts {
		opts.Contracts[kind] = c.Contract
	}
	for i := range targets {
		t := production.Target{Target: targets[i]}
		settings := cfg.File.Targets[t.Name]
		if m := settings.Model(); m != nil {
			t.ContextTokens = m.ContextTokens
		}
		opts.Targets = append(opts.Targets, t)
	}
	return production.New(opts)
}

// newOffice knows of the configured contracts. Nil: there is none.
func newOffice(cfg *config.Config, targets []onejob.Target, opts certify.Options) (*certify.Office, error) {
	if len(cfg.Contracts) == 0 {
		return nil, nil
	}
	opts.Environment, opts.Tool = cfg.Environment, buildOf().Version
	opts.Kinds, opts.Targets, opts.Digests = map[string]certify.Kind{}, map[string]verification.Target{}, map[string]string{}
	kinds := cfg.Kinds()
	for name, c := range cfg.Contracts {
		opts.Kinds[name] = certify.Kind{Policy: kinds[name].Policy, Contract: c.Contract}
	}
	for i := range targets {
		opts.Digests[targets[i].Name] = targets[i].Digest
		if !targets[i].Pulled {
			t, err := verifiable(cfg, targets[i])
			if err != nil {
				return nil, fmt.Errorf("targets.%s.tokenizer: %w", targets[i].Name, err)
			}
			opts.Targets[targets[i].Name] = t
		}
	}
	return certify.New(opts), nil
}

// verifiable is a target as a verification sees it.
func verifiable(cfg *config.Config, target onejob.Target) (verification.Target, error) {
	settings := cfg.File.Targets[target.Name]
	t := verification.Target{Target: target, Protocol: settings.Protocol()}
	if m := settings.Model(); m != nil {
		t.Model, t.Pinned, t.SelfHosted, t.ContextTokens, t.Upstream = m.Name, m.Pinned, m.SelfHosted, m.ContextTokens, strings.Join(m.Upstream, ",")
		t.PriceFunc = m.PriceFunc()
		if err := readTokenizer(&t, cfg.Tokenizer(m)); err != nil {
			return t, err
		}
	}
	return t, nil
}

// readTokenizer finds what is known here of how a target reads a prompt.
func readTokenizer(t *verification.Target, setting string) error {
	local, err := tokenizer.Open(setting, os.ReadFile)
	if err != nil || local == nil {
		return err
	}
	t.Tokens = local.Tokens
	if local.Chat != nil {
		t.ChatFunc = func(messages []byte, today time.Time) (string, error) { return local.Chat.Render(messages, nil, today) }
	}
	return nil
}
