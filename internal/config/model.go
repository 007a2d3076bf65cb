package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Model is what is said of a target's model, for what is shown of it and how long
// that lasts. Targets that call no model have none.
type Model struct {
	Name          string
	Pinned        bool
	SelfHosted    bool
	ContextTokens int    // zero: not told
	Count         string // remote, tiktoken:… or file:…
	RetiresAt     string // a day. Empty: not told
}

// Model returns what is said of the target's model. Nil: it calls none.
func (t *Target) Model() *Model {
	switch {
	case t.OpenAI != nil:
		o := t.OpenAI
		return &Model{o.Model, o.Pinned, o.SelfHosted, o.ContextTokens, o.Tokenizer.Count, o.RetiresAt}
	case t.Anthropic != nil:
		a := t.Anthropic
		return &Model{a.Model, a.Pinned, a.SelfHosted, a.ContextTokens, a.Tokenizer.Count, a.RetiresAt}
	}
	return nil
}

// TokenizerFile returns the path of a tokenizer.json, which is relative to the
// configuration's folder. Empty: tokens are counted in another way.
func (c *Config) TokenizerFile(m *Model) string {
	path, named := strings.CutPrefix(m.Count, "file:")
	if !named || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.Path), path)
}

func (m *Model) check(d *decoder, path string) {
	if m == nil {
		return
	}
	kind, of, _ := strings.Cut(m.Count, ":")
	known := m.Count == "remote" || (kind == "tiktoken" || kind == "file") && of != ""
	if !known && !d.faulty(path+".tokenizer") {
		d.fault(path+".tokenizer.count", fmt.Sprintf("%q is not remote, tiktoken:o200k_base or file:tokenizer.json", m.Count))
	}
	if _, err := m.retires(); err != nil && !d.faulty(path+".retires_at") {
		d.fault(path+".retires_at", fmt.Sprintf("%q is not a day, as in 2027-03-31", m.RetiresAt))
	}
}

// retires returns when the provider retires the model. Zero: not told.
func (m *Model) retires() (time.Time, error) {
	if m.RetiresAt == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.DateOnly, m.RetiresAt)
}

// retiresWithin is how long ahead the end of a model is warned of.
const retiresWithin = 30 * 24 * time.Hour

// WarningsAt lists what is worth knowing of targets at a moment: models that are
// about to be retired, or were.
func (c *Config) WarningsAt(now time.Time) (warnings []string) {
	for _, name := range sortedKeys(c.File.Targets) {
		t := c.File.Targets[name]
		m := t.Model()
		if m == nil {
			continue
		}
		switch end, _ := m.retires(); {
		case end.IsZero() || end.Sub(now) > retiresWithin:
		case end.After(now):
			warnings = append(warnings, fmt.Sprintf("targets.%s: the provider retires %s on %s; verify what is to stand in for it", name, m.Name, m.RetiresAt))
		default:
			warnings = append(warnings, fmt.Sprintf("targets.%s: the provider retired %s on %s", name, m.Name, m.RetiresAt))
		}
	}
	return warnings
}
