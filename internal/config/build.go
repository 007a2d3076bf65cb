package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/anthropic"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/wire"
)

// Kinds returns the kinds as a client takes them: those that are configured, and one
// for each target that is a model, under its name unless a kind has it.
func (c *Config) Kinds() map[string]onejob.Kind {
	kinds := make(map[string]onejob.Kind, len(c.File.Kinds))
	for name, t := range c.File.Targets {
		if t.api() != "" {
			kinds[name] = kindOfTarget(name)
		}
	}
	for name, k := range c.File.Kinds {
		kind := onejob.Kind{Policy: k.policy()}
		if contract := c.Contracts[name]; contract != nil {
			kind.Policy.Contract, kind.CheckFunc = contract.terms(), contract.checkInput
		}
		kinds[name] = kind
	}
	return kinds
}

// Targets makes the targets, in the order of their names. Nothing is called. The
// secret is the instance's, which callback URLs are made with.
func (c *Config) Targets(secret onejob.Secret) ([]onejob.Target, error) {
	targets := make([]onejob.Target, 0, len(c.File.Targets))
	for _, name := range sortedKeys(c.File.Targets) {
		t := c.File.Targets[name]
		if t.Worker != nil {
			targets = append(targets, onejob.Target{
				Name: name, Pulled: true, Digest: wire.Digest("worker", t.maxExecution()), MaxExecution: t.maxExecution(),
			})
			continue
		}
		own, err := c.provider(&t, c.callbackURL(name, secret))
		if err != nil {
			return nil, fmt.Errorf("targets.%s: %w", name, err)
		}
		provider, digest := c.translated(name, own)
		targets = append(targets, onejob.Target{
			Name: name, Provider: provider, Digest: digest, MaxExecution: t.maxExecution(), Reconcile: t.reconcile(),
		})
	}
	return targets, nil
}

// callbackURL returns what makes the URL where a target reports an attempt.
func (c *Config) callbackURL(target string, secret onejob.Secret) func(onejob.Request) string {
	return func(r onejob.Request) string {
		return strings.TrimSuffix(c.PublicURL, "/") + "/v1/callbacks/" + target + "/" + onejob.CallbackToken(secret, target, r.AttemptID)
	}
}

// digester is a provider that addresses its configuration by content, secrets
// left out.
type digester interface {
	onejob.Provider
	Digest() string
}

func (c *Config) provider(t *Target, callbackURL func(onejob.Request) string) (digester, error) {
	switch {
	case t.HTTP != nil:
		o := t.HTTP.options()
		o.CallbackURLFunc = callbackURL
		return httpcall.New(o)
	case t.OpenAI != nil:
		o := t.OpenAI.options()
		o.Tokenizer = c.Tokenizer(t.Model())
		return openai.New(o)
	case t.Anthropic != nil:
		o := t.Anthropic.options()
		o.Tokenizer = c.Tokenizer(t.Model())
		return anthropic.New(o)
	}
	return nil, errors.New("no provider is configured")
}

func (t *OpenAITarget) options() openai.Options {
	return openai.Options{
		BaseURL: t.BaseURL, Model: t.Model, APIKey: t.APIKey.Value, Organization: t.Organization, Project: t.Project,
		API: openai.API(t.API), Background: t.Background,
		Map: t.Map, MinTemperature: t.MinTemperature, Pinned: t.Pinned, SelfHosted: t.SelfHosted,
		ContextTokens: t.ContextTokens, Upstream: t.Upstream.Only,
		Price: wire.TokenPrice(t.Price), Outcomes: rulesOf(t.Outcomes),
		MaxResponseBytes: t.MaxResponseBytes, DialTimeout: time.Duration(t.DialTimeout),
	}
}

func (t *AnthropicTarget) options() anthropic.Options {
	return anthropic.Options{
		BaseURL: t.BaseURL, Version: t.Version, Model: t.Model, APIKey: t.APIKey.Value, MaxTokens: t.MaxTokens,
		Map: t.Map, MinTemperature: t.MinTemperature, Pinned: t.Pinned, SelfHosted: t.SelfHosted,
		ContextTokens: t.ContextTokens, Upstream: t.Upstream.Only,
		Price: wire.TokenPrice(t.Price), Outcomes: rulesOf(t.Outcomes),
		MaxResponseBytes: t.MaxResponseBytes, DialTimeout: time.Duration(t.DialTimeout),
	}
}

func rulesOf(outcomes []OutcomeRule) []wire.Rule {
	var rules []wire.Rule
	for _, o := range outcomes {
		rules = append(rules, wire.Rule{When: o.When, Class: onejob.Outcome(o.Class), TargetFault: o.TargetFault})
	}
	return rules
}

func (t *Target) maxExecution() time.Duration {
	switch {
	case t.HTTP != nil:
		return time.Duration(t.HTTP.MaxExecution)
	case t.OpenAI != nil:
		return time.Duration(t.OpenAI.MaxExecution)
	case t.Anthropic != nil:
		return time.Duration(t.Anthropic.MaxExecution)
	case t.Worker != nil:
		return time.Duration(t.Worker.MaxExecution)
	}
	return 0
}

// URL returns where the target's requests go. Empty: workers come for them.
func (t *Target) URL() string {
	switch {
	case t.HTTP != nil:
		return t.HTTP.Request.URL
	case t.OpenAI != nil:
		return cmp.Or(t.OpenAI.BaseURL, openai.DefaultBaseURL)
	case t.Anthropic != nil:
		return cmp.Or(t.Anthropic.BaseURL, anthropic.DefaultBaseURL)
	}
	return ""
}

func (t *HTTPTarget) options() httpcall.Options {
	o := httpcall.Options{
		Method: t.Request.Method, URL: t.Request.URL, Body: t.Request.Body,
		Headers: map[string]string{}, SecretHeaders: map[string]onejob.Secret{},
		IdempotencyHeader: t.IdempotencyHeader, ResultType: t.ResultType,
		Cost: t.Cost, Currency: t.Currency, Usage: t.Usage,
		MaxResponseBytes: t.MaxResponseBytes, DialTimeout: time.Duration(t.DialTimeout),
		StreamsBody: t.StreamsBody, Outcomes: rulesOf(t.Outcomes),
	}
	t.asynchronous(&o)
	for name, value := range t.Request.Headers {
		if hidesValue(name, value) {
			o.SecretHeaders[name] = value.Value
		} else {
			o.Headers[name] = value.Value.Reveal()
		}
	}
	return o
}

// plainHeaders are known to carry no credential. A header of any other name is
// treated as a secret.
var plainHeaders = []string{
	"Accept", "Accept-Language", "Content-Type", "User-Agent", "Prefer", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta",
}

func hidesValue(name string, value Secret) bool {
	return strings.Contains(value.Written.Reveal(), "${") || !slices.Contains(plainHeaders, textproto.CanonicalMIMEHeaderKey(name))
}
