package config

import (
	"slices"

	"github.com/onejob-dev/onejob"
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

// translated is a provider for the callers of all kinds that name its target, and the
// digest of that. How it is translated to is a part of the digest only where a contract is
// held to what was translated: other certificates do not depend on it.
func (c *Config) translated(target string, p digester) (onejob.Provider, string) {
	kinds := c.translatedKinds(target)
	able, speaks := p.(translate.Target)
	if len(kinds) == 0 || !speaks {
		return p, p.Digest()
	}
	own := c.File.Targets[target]
	translated := translate.New(able, translate.Options{Speaks: translate.API(own.api()), Kinds: kinds})
	if slices.ContainsFunc(kinds, func(kind string) bool { return c.Contracts[kind] != nil }) {
		return translated, translated.Digest()
	}
	return translated, p.Digest()
}
