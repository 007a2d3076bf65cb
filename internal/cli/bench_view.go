package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/loadgen"
)

// print writes the report in the form that was asked for.
func (r *benchReport) print(env Env, c *cli.Command) error {
	if c.String("output") != formTable {
		raw, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return pairs{}.print(env, c, raw)
	}
	var out strings.Builder
	v := newBenchStyle(env)
	r.printCounts(&out)
	r.printLatencies(&out, v)
	for _, part := range []struct {
		name string
		of   *latencies
	}{{"acknowledged after", r.Acknowledgement}, {"ended after", r.Result}} {
		if part.of != nil {
			part.of.draw(&out, part.name, v)
		}
	}
	r.printChecks(&out, v)
	_, err := io.WriteString(env.Stdout, out.String())
	return err
}

func (r *benchReport) printCounts(out *strings.Builder) {
	row := func(name string, n int64, note string) {
		line := fmt.Sprintf("%-18s  %9s   %s", name, grouped3(n), note)
		_, _ = fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	pace := fmt.Sprintf("%s loop, %d callers", r.Mode, r.Callers)
	if r.Mode == loadgen.Open {
		pace = fmt.Sprintf("open loop, %s a second, at most %d at once", strconv.FormatFloat(r.Rate, 'f', -1, 64), r.Callers)
	}
	elapsed := time.Duration(r.ElapsedMS) * time.Millisecond
	row("submitted", r.Submitted, fmt.Sprintf("in %s; %s", elapsed.Round(10*time.Millisecond), pace))
	row("accepted", r.Accepted, grouped3(int64(r.JobsPerS+0.5))+" jobs/s")
	row("replayed", r.Replayed, "")
	for _, status := range slices.Sorted(maps.Keys(r.Refused)) {
		row("refused with "+strconv.Itoa(status), r.Refused[status], "")
	}
	row("errors", r.Errors, clean(r.Error))
	if r.Mode == loadgen.Open {
		row("late", r.Late, "sent more than 10 ms after their time: every caller was busy")
		row("not sent", r.NotSent, "every caller was busy until the end")
	}
	for _, state := range slices.Sorted(maps.Keys(r.Ended)) {
		row("ended "+string(state), r.Ended[state], "")
	}
	if len(r.Ended) > 0 || r.Unfinished > 0 {
		row("not ended in time", r.Unfinished, "")
	}
	_, _ = out.WriteString("\n")
}

func (r *benchReport) printLatencies(out *strings.Builder, v benchStyle) {
	if r.Acknowledgement == nil {
		return
	}
	line := func(name string, cells ...string) string {
		text := fmt.Sprintf("%-18s", name)
		for _, c := range cells {
			text += fmt.Sprintf("  %9s", c)
		}
		return text
	}
	_, _ = fmt.Fprintln(out, v.bold.Render(line("latency", "p50", "p90", "p99", "max")))
	for _, part := range []struct {
		name string
		of   *latencies
	}{{"acknowledgement", r.Acknowledgement}, {"result", r.Result}} {
		if part.of != nil {
			q := part.of.quantiles
			_, _ = fmt.Fprintln(out, line(part.name, short(q.P50), short(q.P90), short(q.P99), short(q.Max)))
		}
	}
}

// barWidth is the length of the longest bar.
const barWidth = 44

// draw writes a histogram: a line a step, its bar as long as its share.
func (l *latencies) draw(out *strings.Builder, name string, v benchStyle) {
	_, _ = fmt.Fprintf(out, "\n%s\n", v.bold.Render(name))
	most := int64(1)
	for _, b := range l.Bars {
		most = max(most, b.Count)
	}
	for _, b := range l.Bars {
		label := fmt.Sprintf("%10s", v.upTo+short(time.Duration(b.UpTo*float64(time.Millisecond))))
		filled := v.bar(float64(b.Count) / float64(most))
		share := 100 * float64(b.Count) / float64(l.Count)
		line := fmt.Sprintf("%s  %s%s", label, v.colourOf(b.UpTo, l).Render(filled), strings.Repeat(" ", barWidth-lipgloss.Width(filled)))
		if b.Count > 0 {
			line += fmt.Sprintf("  %9s  %5.1f %%", grouped3(b.Count), share)
		}
		_, _ = fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}

func (r *benchReport) printChecks(out *strings.Builder, v benchStyle) {
	_, _ = out.WriteString("\n")
	say := func(bad bool, format string, args ...any) {
		mark := v.good.Render(v.yes)
		if bad {
			mark = v.bad.Render(v.no)
		}
		_, _ = fmt.Fprintf(out, "%s %s\n", mark, fmt.Sprintf(format, args...))
	}
	if c := r.Checked; c != nil {
		switch {
		case c.Error != "":
			say(true, "not every acknowledged job could be asked for: %s", clean(c.Error))
		case c.NotAsked > 0:
			say(c.Lost > 0, "acknowledged jobs: %s asked for, %s lost; %s more were not asked for", grouped3(c.Asked), grouped3(c.Lost), grouped3(c.NotAsked))
		default:
			say(c.Lost > 0, "acknowledged jobs: all %s asked for, %s lost", grouped3(c.Asked), grouped3(c.Lost))
		}
	}
	if r.RepeatFraction > 0 || r.Otherwise > 0 {
		say(r.Otherwise > 0, "repeats answered with another job: %s of %s", grouped3(r.Otherwise), grouped3(r.Replayed))
	}
	if e := r.Executions; e != nil {
		say(e.Twice > 0, "executions per intent at the fake provider: %s for %s intents, %s of them more than once", grouped3(e.Total), grouped3(e.Intents), grouped3(e.Twice))
	}
	if len(r.MemoryMiB) == 3 {
		_, _ = fmt.Fprintf(out, "  memory of server, fake and callers together, medians of the thirds: %.0f, %.0f, %.0f MiB\n", r.MemoryMiB[0], r.MemoryMiB[1], r.MemoryMiB[2])
	}
}

// benchStyle is how a report is drawn: in colour and blocks on a terminal, and
// plainly elsewhere.
type benchStyle struct {
	bold, good, fair, bad lipgloss.Style
	yes, no, upTo         string
	blocks                bool
}

func newBenchStyle(env Env) benchStyle {
	if !colours(env, env.Stdout) {
		return benchStyle{yes: "ok:", no: "NOT OK:", upTo: "<= "}
	}
	colour := func(code string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(code)) }
	return benchStyle{
		bold: lipgloss.NewStyle().Bold(true), good: colour("2"), fair: colour("3"), bad: colour("1"),
		yes: "✓", no: "✗", upTo: "≤ ", blocks: true,
	}
}

// colourOf is green up to the median, yellow up to the 99th percentile, then red.
func (v benchStyle) colourOf(upTo float64, l *latencies) lipgloss.Style {
	switch {
	case upTo <= max(l.P90, l.Bars[0].UpTo):
		return v.good
	case upTo <= l.P99:
		return v.fair
	}
	return v.bad
}

var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar is as long as a share of the longest. What is not nothing shows.
func (v benchStyle) bar(share float64) string {
	if share <= 0 {
		return ""
	}
	if !v.blocks {
		return strings.Repeat("#", max(1, int(share*barWidth+0.5)))
	}
	n := max(1, int(share*barWidth*8+0.5))
	return strings.Repeat("█", n/8) + eighths[n%8]
}

// short writes a duration in three digits.
func short(d time.Duration) string {
	unit, name := time.Microsecond, "µs"
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		unit, name = time.Second, "s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	v := float64(d) / float64(unit)
	digits := 0
	switch {
	case v < 10 && v != float64(int64(v)):
		digits = 2
	case v < 100 && v != float64(int64(v)):
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + name
}

// grouped3 writes a number with its thousands apart.
func grouped3(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// parseSize reads a number of bytes, as in 500, 2KiB or 1MB.
func parseSize(text string) (int, error) {
	units := map[string]int{"": 1, "B": 1, "KB": 1000, "KIB": 1 << 10, "MB": 1e6, "MIB": 1 << 20, "K": 1 << 10, "M": 1 << 20}
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	unit, known := units[strings.ToUpper(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.Atoi(digits)
	if err != nil || !known || n < 0 || n > maxInputBytes/unit {
		return 0, errSize
	}
	return n * unit, nil
}

var errSize = errors.New("a size is a number of bytes, as in 500, 2KiB or 1MB, up to 1 GiB")
