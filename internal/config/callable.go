package config

import (
	"cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
)

// Callable is what a client of a provider's API may name as one.
type Callable struct {
	Kind   string
	Target string // empty: the kind's first
	First  string // the target that is called first
	// API of its first target, which the others have or are translated to: chat,
	// responses, embeddings, images or messages. Empty: they differ.
	API string
	FrontDoor
}

// Callables returns what clients may name as a model: every kind whose targets are
// models, and every such target by itself, unless a kind has its name. A kind whose
// contract has a prompt is none: its input is not a request.
func (c *Config) Callables() map[string]Callable {
	models := map[string]Callable{}
	for name, t := range c.File.Targets {
		if api := t.api(); api != "" {
			models[name] = Callable{Kind: name, First: name, API: api}
		}
	}
	for name, k := range c.File.Kinds {
		if api, isModel := c.apiOf(k.Targets); isModel && !c.prompts(name) {
			models[name] = Callable{Kind: name, First: k.Targets[0], API: api, FrontDoor: k.FrontDoor}
		} else {
			delete(models, name)
		}
	}
	return models
}

// prompts reports whether a kind's contract makes the request from its input.
func (c *Config) prompts(kind string) bool {
	contract := c.Contracts[kind]
	return contract != nil && contract.Contract.Prompt != nil
}

// apiOf returns the API of the first of targets. Empty: another has one that requests
// are not translated to. It reports false when one is no model.
func (c *Config) apiOf(targets []string) (api string, isModel bool) {
	for i, name := range targets {
		t := c.File.Targets[name]
		switch each := t.api(); {
		case each == "":
			return "", false
		case i == 0:
			api = each
		case each != api && !translates(api, each):
			api = ""
		}
	}
	return api, true
}

// api is the API that the target has. Empty: it is no model.
func (t *Target) api() string {
	switch {
	case t.OpenAI != nil && t.OpenAI.Background:
		return string(openai.APIResponses)
	case t.OpenAI != nil:
		return cmp.Or(t.OpenAI.API, string(openai.APIChat))
	case t.Anthropic != nil:
		return apiMessages
	}
	return ""
}

// kindOfTarget is the kind of a target that is called by its own name: nothing takes
// over, and a duplicate costs money only.
func kindOfTarget(name string) onejob.Kind {
	return onejob.Kind{Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{name}, Failover: onejob.FailoverNever}}
}
