package main

import (
	"context"
	"fmt"

	"github.com/maximhq/bifrost/core/schemas"
)

// backup is the custom provider that is called after the primary.
const backup schemas.ModelProvider = "backup"

// account tells Bifrost of one provider or two. Concurrency, buffers and pools are the
// library's defaults, which its page on performance gives for up to 5,000 calls/s.
type account struct {
	primary, fallback string // URLs; no fallback: empty
	network           schemas.NetworkConfig
}

func (a *account) fallbacks() []schemas.Fallback {
	if a.fallback == "" {
		return nil
	}
	return []schemas.Fallback{{Provider: backup, Model: "gpt-bench"}}
}

// GetConfiguredProviders is asked at the start.
func (a *account) GetConfiguredProviders() ([]schemas.ModelProvider, error) {
	if a.fallback == "" {
		return []schemas.ModelProvider{schemas.OpenAI}, nil
	}
	return []schemas.ModelProvider{schemas.OpenAI, backup}, nil
}

// GetKeysForProvider is asked for each call.
func (a *account) GetKeysForProvider(*context.Context, schemas.ModelProvider) ([]schemas.Key, error) {
	return []schemas.Key{{ID: "bench", Value: "sk-bench", Weight: 1}}, nil
}

// GetConfigForProvider says where a provider is, and what is done when it fails.
func (a *account) GetConfigForProvider(p schemas.ModelProvider) (*schemas.ProviderConfig, error) {
	c := &schemas.ProviderConfig{NetworkConfig: a.network, ConcurrencyAndBufferSize: schemas.DefaultConcurrencyAndBufferSize}
	switch p {
	case schemas.OpenAI:
		c.NetworkConfig.BaseURL = a.primary
	case backup:
		c.NetworkConfig.BaseURL = a.fallback
		c.CustomProviderConfig = &schemas.CustomProviderConfig{BaseProviderType: schemas.OpenAI}
	default:
		return nil, fmt.Errorf("no provider %q", p)
	}
	return c, nil
}
