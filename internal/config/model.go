package config

import (
	"encoding/json"
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
	Count         string // how tokens are counted. Empty: as the provider does without being told
	RetiresAt     string // a day. Empty: not told
	Upstream      []string
	Price         Price
}

// Model returns what is said of the target's model. Nil: it calls none.
func (t *Target) Model() *Model {
	switch {
	case t.OpenAI != nil:
		o := t.OpenAI
		return &Model{o.Model, o.Pinned, o.SelfHosted, o.ContextTokens, o.Tokenizer.Count, o.RetiresAt, o.Upstream.Only, o.Price}
	case t.Anthropic != nil:
		a := t.Anthropic
		return &Model{a.Model, a.Pinned, a.SelfHosted, a.ContextTokens, a.Tokenizer.Count, a.RetiresAt, a.Upstream.Only, a.Price}
	}
	return nil
}

// Protocol names the wire that the target speaks, for people.
func (t *Target) Protocol() string {
	switch {
	case t.OpenAI != nil && (t.OpenAI.API == "responses" || t.OpenAI.API == "" && t.OpenAI.Background):
		return "openai-responses"
	case t.OpenAI != nil:
		return "openai-chat"
	case t.Anthropic != nil:
		return "anthropic-messages"
	case t.Worker != nil:
		return "worker"
	}
	return "http"
}

// PriceFunc says what so many tokens cost, in millionths. Nil: no price is told.
func (m *Model) PriceFunc() func(input, output int) int64 {
	p := m.Price
	if p.InputMicros == 0 && p.OutputMicros == 0 {
		return nil
	}
	const tokens = 1_000_000
	return func(input, output int) int64 {
		return (int64(input)*p.InputMicros + int64(output)*p.OutputMicros + tokens - 1) / tokens
	}
}

// Tokenizer says how a target counts tokens; a tokenizer.json is relative to the
// configuration's folder.
func (c *Config) Tokenizer(m *Model) string {
	path, named := strings.CutPrefix(m.Count, "file:")
	if !named || filepath.IsAbs(path) {
		return m.Count
	}
	return "file:" + filepath.Join(filepath.Dir(c.Path), path)
}

func (m *Model) check(d *decoder, path string) {
	if m == nil {
		return
	}
	if _, err := m.retires(); err != nil && !d.faulty(path+".retires_at") {
		d.fault(path+".retires_at", fmt.Sprintf("%q is not a day, as in 2027-03-31", m.RetiresAt))
	}
}

// TargetBody is what is kept of a target beside its digest, for people: no secret is
// in it.
func (c *Config) TargetBody(name string) json.RawMessage {
	t := c.File.Targets[name]
	said := map[string]string{"name": name, "url": t.URL()}
	if m := t.Model(); m != nil {
		said["model"] = m.Name
	}
	body, err := json.Marshal(said)
	if err != nil { // texts always encode
		return nil
	}
	return body
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
