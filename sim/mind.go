package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mind is how a model thinks. The zero Mind is honest: it does what a request asks,
// and says so. What that is, the package comment tells.
//
// Its text form is that of lies and modifiers, separated by commas, as in
// "fence=0.04,param_unsupported=temperature,seed=7"; it marshals as that text.
type Mind struct {
	// Lies are what goes wrong, each at its own rate, in any combination.
	Lies []Lie

	// Seed changes which requests are lied to. The same seed and request body are
	// lied to in the same way, in every process.
	Seed uint64

	// Flaky makes the repeats of one request roll anew, each the same way in every
	// run. False: a repeat is answered as the first.
	Flaky bool

	// Window is how many tokens a request and its answer may have together; more are
	// refused. Zero or less: 131,072.
	Window int

	// AnswerFunc makes up the JSON value that is asked for, as JSON text, in place of
	// the honest reading of the schema; its faults are those of the lies all the same. Nil, or
	// an answer that is no JSON: the honest reading.
	AnswerFunc func(Question) string
}

// Question is what a model is asked, whatever the dialect.
type Question struct {
	Model  string
	System string // the system messages, joined by a line
	Prompt string // the text of the last message
	Schema string // the JSON Schema asked for; empty if none
}

// Lie is one fault of a model.
type Lie struct {
	Fault    string  // the name of one of [Faults] that is a lie
	Argument string  // what it takes, as "temperature" of param_unsupported
	Rate     float64 // how many of the requests that it can befall, 0 to 1; zero: all
}

// String is the text form of a lie.
func (l Lie) String() string {
	text := l.Fault
	rate := ""
	if l.Rate != 0 && l.Rate != 1 {
		rate = strconv.FormatFloat(l.Rate, 'g', -1, 64)
	}
	switch {
	case l.Argument != "" && rate != "":
		return text + "=" + l.Argument + "@" + rate
	case l.Argument != "" || rate != "":
		return text + "=" + l.Argument + rate
	}
	return text
}

// ParseMind reads the text form of a mind; empty text, or "honest", is an honest one.
// It fails on names and arguments that it does not know.
func ParseMind(text string) (Mind, error) {
	var m Mind
	if strings.TrimSpace(text) == "" {
		return m, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, given := cutAssignment(part)
		known, err := m.set(name, value, given)
		if !known {
			err = errors.New("it is neither a lie nor one of honest, seed=, window=, flaky; docs/sim.md and /sim/faults list the lies")
		}
		if err != nil {
			return Mind{}, fmt.Errorf("sim: mind: %q: %w", name, err)
		}
	}
	return m, nil
}

// MustParseMind reads a mind written in the source. It panics where [ParseMind] fails.
func MustParseMind(text string) Mind {
	m, err := ParseMind(text)
	if err != nil {
		panic(err)
	}
	return m
}

// String returns the text form of m. [ParseMind] reads it back, but for AnswerFunc.
func (m Mind) String() string {
	var parts []string
	for _, l := range m.Lies {
		parts = append(parts, l.String())
	}
	if len(parts) == 0 {
		parts = []string{"honest"}
	}
	if m.Seed != 0 {
		parts = append(parts, "seed="+strconv.FormatUint(m.Seed, 10))
	}
	if m.Window > 0 {
		parts = append(parts, "window="+strconv.Itoa(m.Window))
	}
	if m.Flaky {
		parts = append(parts, "flaky")
	}
	return strings.Join(parts, ",")
}

// MarshalText returns the text form. It never fails.
func (m Mind) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the text form, and fails as [ParseMind] does.
func (m *Mind) UnmarshalText(text []byte) error {
	mind, err := ParseMind(string(text))
	if err != nil {
		return err
	}
	*m = mind
	return nil
}

// set reads one lie or modifier. Not known: it is neither.
func (m *Mind) set(name, value string, given bool) (known bool, err error) {
	switch name {
	case "honest":
		return !given, nil
	case "flaky":
		m.Flaky = !given
		return !given, nil
	case "seed":
		if m.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("a seed is a whole number of at least zero, got %q", value)
		}
		return true, err
	case "window":
		m.Window, err = parseTokens(value)
		return true, err
	}
	kind, known := lieNamed(name)
	if !known {
		return false, nil
	}
	lie, err := kind.parse(value, given)
	if err == nil && slices.ContainsFunc(m.Lies, func(l Lie) bool { return l.Fault == name && l.Argument == lie.Argument }) {
		err = errors.New("it is given twice")
	}
	m.Lies = append(m.Lies, lie)
	return true, err
}

// check says what is wrong with a mind that was not parsed.
func (m Mind) check() error {
	for _, l := range m.Lies {
		kind, known := lieNamed(l.Fault)
		if !known {
			return fmt.Errorf("sim: there is no lie %q", l.Fault)
		}
		if l.Rate < 0 || l.Rate > 1 || l.Rate != l.Rate {
			return fmt.Errorf("sim: lie %q: a rate is 0 to 1, got %v", l.Fault, l.Rate)
		}
		if err := kind.checkArgument(l.Argument); err != nil {
			return fmt.Errorf("sim: lie %q: %w", l.Fault, err)
		}
	}
	return nil
}

func parseTokens(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1<<24 {
		return 0, fmt.Errorf("a number of tokens is 1 to 16777216, got %q", value)
	}
	return n, nil
}

// over is the mind of a model, while a step says otherwise of one request.
func (m Mind) over(step Mind) Mind {
	m.Lies = step.Lies
	if step.Seed != 0 {
		m.Seed = step.Seed
	}
	if step.Window > 0 {
		m.Window = step.Window
	}
	m.Flaky = m.Flaky || step.Flaky
	if step.AnswerFunc != nil {
		m.AnswerFunc = step.AnswerFunc
	}
	return m
}

func (m Mind) window() int { return orDefault(m.Window, 128<<10) }
