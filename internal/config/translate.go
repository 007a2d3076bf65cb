package config

import (
	"slices"

	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/translate"
)

// apiMessages is the API of Anthropic's messages.
const apiMessages = "messages"

// translatable are the APIs whose requests are translated into one another.
var translatable = []string{string(openai.APIChat), apiMessages}

// translates reports whether a target with one API may stand behind one with another.
func translates(first, behind string) bool {
	return slices.Contains(translatable, first) && slices.Contains(translatable, behind)
}

// translatedKinds lists the kinds whose inputs are in another API than the target's.
func (c *Config) translatedKinds(target string) (kinds []string) {
	own := c.File.Targets[target]
	for _, name := range sortedKeys(c.File.Kinds) {
		k := c.File.Kinds[name]
		api, isModel := c.apiOf(k.Targets)
		if isModel && api != "" && api != own.api() && slices.Contains(k.Targets, target) && !c.prompts(name) {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// translated is a provider for the callers of all kinds that name its target.
func (c *Config) translated(target string, p digester) digester {
	kinds := c.translatedKinds(target)
	able, speaks := p.(translate.Target)
	if len(kinds) == 0 || !speaks {
		return p
	}
	own := c.File.Targets[target]
	return translate.New(able, translate.Options{Speaks: translate.API(own.api()), Kinds: kinds})
}
