package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/wire"
)

// Kinds returns the kinds as a client takes them.
func (c *Config) Kinds() map[string]onejob.Kind {
	kinds := make(map[string]onejob.Kind, len(c.File.Kinds))
	for name, k := range c.File.Kinds {
		kinds[name] = onejob.Kind{Policy: k.policy()}
	}
	return kinds
}

// Targets makes the targets, in the order of their names. Nothing is called.
func (c *Config) Targets() ([]onejob.Target, error) {
	targets := make([]onejob.Target, 0, len(c.File.Targets))
	for _, name := range sortedKeys(c.File.Targets) {
		t := c.File.Targets[name]
		provider, err := t.provider()
		if err != nil {
			return nil, fmt.Errorf("targets.%s: %w", name, err)
		}
		targets = append(targets, onejob.Target{
			Name: name, Provider: provider, Digest: t.Digest(), MaxExecution: t.maxExecution(),
		})
	}
	return targets, nil
}

func (t *Target) provider() (onejob.Provider, error) {
	switch {
	case t.HTTP != nil:
		return httpcall.New(t.HTTP.options())
	}
	return nil, fmt.Errorf("no provider is configured")
}

func (t *Target) maxExecution() time.Duration {
	switch {
	case t.HTTP != nil:
		return time.Duration(t.HTTP.MaxExecution)
	case t.OpenAI != nil:
		return time.Duration(t.OpenAI.MaxExecution)
	case t.Anthropic != nil:
		return time.Duration(t.Anthropic.MaxExecution)
	}
	return 0
}

// URL returns where the target's requests go.
func (t *Target) URL() string {
	switch {
	case t.HTTP != nil:
		return t.HTTP.Request.URL
	case t.OpenAI != nil:
		return t.OpenAI.BaseURL
	case t.Anthropic != nil:
		return t.Anthropic.BaseURL
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
		StreamsBody: t.StreamsBody, HTTP2: t.HTTP2,
	}
	for name, value := range t.Request.Headers {
		if hidesValue(name, value) {
			o.SecretHeaders[name] = value.Value
		} else {
			o.Headers[name] = value.Value.Reveal()
		}
	}
	for _, rule := range t.Outcomes {
		o.Outcomes = append(o.Outcomes, wire.Rule{When: rule.When, Class: onejob.Outcome(rule.Class), TargetFault: rule.TargetFault})
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

// Digest addresses the target by its content, secrets left out: two targets with
// the same digest do the same to the same input.
func (t *Target) Digest() string {
	content, err := json.Marshal(t.content())
	if err != nil { // strings, numbers and booleans always encode
		return ""
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// content is what decides what the target does. Of secrets only their names are
// in it. encoding/json sorts the keys of maps.
func (t *Target) content() any {
	switch {
	case t.HTTP != nil:
		h := *t.HTTP
		headers := map[string]string{}
		for name, value := range h.Request.Headers {
			headers[textproto.CanonicalMIMEHeaderKey(name)] = ""
			if !hidesValue(name, value) {
				headers[textproto.CanonicalMIMEHeaderKey(name)] = value.Value.Reveal()
			}
		}
		h.Request.Headers = nil
		return []any{"http", h, headers}
	case t.OpenAI != nil:
		o := *t.OpenAI
		o.APIKey = Secret{}
		return []any{"openai", o}
	case t.Anthropic != nil:
		a := *t.Anthropic
		a.APIKey = Secret{}
		return []any{"anthropic", a}
	}
	return nil
}
