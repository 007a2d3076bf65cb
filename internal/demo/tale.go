package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// tale is what a person reads of an act, line by line as it happens.
type tale struct {
	act  act
	opts Options
	out  io.Writer

	mu      sync.Mutex
	start   time.Time
	lines   []line
	counted string
}

type line struct {
	AtMS int64  `json:"at_ms"`
	Who  string `json:"who"`
	What string `json:"what"`
}

func newTale(out io.Writer, a act, opts Options) *tale {
	return &tale{act: a, opts: opts, out: out}
}

// scene opens the act: what is about to be done, in a sentence or two.
func (t *tale) scene(text string) {
	t.print("\n%s %s\n%s\n\n", t.bold("●"), t.bold(t.act.name+": "+t.act.short), indent(text))
}

// say adds a line: who did what, now.
func (t *tale) say(who, format string, args ...any) {
	l := line{Who: who, What: fmt.Sprintf(format, args...)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.start.IsZero() {
		t.start = time.Now() // the tale begins when somebody does something
	}
	l.AtMS = time.Since(t.start).Milliseconds()
	t.lines = append(t.lines, l)
	if !t.opts.JSON {
		_, _ = fmt.Fprintf(t.out, "  %6d ms  %-10s %s\n", l.AtMS, l.Who, l.What)
	}
}

// count says what was counted; the verdict repeats it.
func (t *tale) count(format string, args ...any) { t.counted = fmt.Sprintf(format, args...) }

// verdict ends the act in one line and reports whether it passed.
func (t *tale) verdict(err error) bool {
	word, what, color := "PASS", t.counted, "32"
	if err != nil {
		word, what, color = "FAIL", err.Error(), "31"
	}
	if t.opts.JSON {
		_ = json.NewEncoder(t.out).Encode(map[string]any{
			"name": t.act.name, "passed": err == nil, "counted": what, "lines": t.lines,
		})
		return err == nil
	}
	if t.opts.Color {
		word = "\x1b[1;" + color + "m" + word + "\x1b[0m"
	}
	t.print("\n%s %s: %s\n", word, t.act.name, what)
	return err == nil
}

func (t *tale) print(format string, args ...any) {
	if !t.opts.JSON {
		_, _ = fmt.Fprintf(t.out, format, args...)
	}
}

func (t *tale) bold(s string) string {
	if !t.opts.Color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// indent wraps text at about 78 columns behind two spaces.
func indent(text string) string {
	const width = 76
	var out, row string
	for _, word := range splitWords(text) {
		if row != "" && len(row)+1+len(word) > width {
			out += "  " + row + "\n"
			row = ""
		}
		if row != "" {
			row += " "
		}
		row += word
	}
	return out + "  " + row
}
