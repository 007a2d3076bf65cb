package cli

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/production"
)

// useContracts has the store know the contracts and targets that there are, and what
// the gate goes by. It comes before any job is taken: what a job pins is kept.
func useContracts(ctx context.Context, cfg *config.Config, store onejob.CertificateStore, targets []onejob.Target) error {
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
