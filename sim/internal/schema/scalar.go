package schema

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// formats are what is written for a format unless the input says better.
var formats = map[string]string{
	"date": "2026-01-02", "time": "03:04:05Z", "date-time": "2026-01-02T03:04:05Z", "duration": "PT1H",
	"email": "someone@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000",
}

func (w *writer) text(s *Value, p place) (*Value, error) {
	text, said := w.said(p)
	if !said {
		text = w.r.Words()
		if made, known := formats[s.Get("format").Str()]; known {
			text = made
		}
	}
	if p.index > 0 {
		text = fmt.Sprint(p.index, " ", text)
	}
	least, _ := count(s, "minLength")
	most, bounded := count(s, "maxLength")
	if !bounded {
		most = math.MaxInt
	}
	if least > most || least > 1<<20 {
		return nil, p.fail("minLength is more than maxLength, or than is ever written")
	}
	text = fit(text, least, most)
	if w.bytes += len(text); w.bytes > maxBytes {
		return nil, p.fail("the schema asks for more than is ever written")
	}
	if pattern := s.Get("pattern").Str(); pattern != "" {
		matching, err := match(pattern, text, p.index)
		if err != nil {
			return nil, p.fail("pattern: %v", err)
		}
		if n := len([]rune(matching)); n < least || n > most {
			return nil, p.fail("nothing that is written for the pattern has the length")
		}
		text = matching
	}
	return Str(text), nil
}

// fit cuts or pads a text to a length in characters.
func fit(text string, least, most int) string {
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most])
	}
	return text + strings.Repeat(".", max(least-len(runes), 0))
}

// match returns the text if it matches the pattern, and else the plainest that does.
func match(pattern, text string, index int) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	if re.MatchString(text) {
		return text, nil
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	plainest(&b, tree, index)
	if !re.MatchString(b.String()) {
		return "", fmt.Errorf("nothing is known that matches %s", pattern)
	}
	return b.String(), nil
}

// plainest writes the shortest and first choice everywhere; of a class of
// characters the one at index.
func plainest(b *strings.Builder, re *syntax.Regexp, index int) {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		b.WriteRune(ofClass(re.Rune, index))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune('a' + rune(index%26))
		return
	case syntax.OpStar, syntax.OpQuest:
		return
	case syntax.OpRepeat:
		times = re.Min
	case syntax.OpAlternate:
		plainest(b, re.Sub[index%len(re.Sub)], index)
		return
	default:
	}
	for range times {
		for _, sub := range re.Sub {
			plainest(b, sub, index)
		}
	}
}

// ofClass picks a printable character, by pairs of first and last.
func ofClass(pairs []rune, index int) rune {
	var printable []rune
	for i := 0; i+1 < len(pairs); i += 2 {
		for r := max(pairs[i], ' '); r <= min(pairs[i+1], '~'); r++ {
			printable = append(printable, r)
		}
	}
	if len(printable) == 0 {
		if len(pairs) == 0 {
			return 'a'
		}
		return pairs[0]
	}
	return printable[index%len(printable)]
}

// number is what the input says, if it is within the bounds, else zero, else the
// end that is nearest to it, else what lies between the ends.
func (w *writer) number(s *Value, p place, whole bool) (*Value, error) {
	b := boundsOf(s, whole)
	if said, found := w.said(p); found {
		if n, err := strconv.ParseFloat(strings.TrimSpace(said), 64); err == nil && b.allow(n) {
			return num(n), nil
		}
	}
	further := float64(p.index) * b.step
	for _, n := range []float64{0, b.up(), b.down(), (b.low + b.high) / 2} {
		for _, n := range []float64{n + further, n - further} {
			if b.allow(n) {
				return num(n), nil
			}
		}
	}
	return nil, p.fail("no number is known that is within the bounds")
}

func num(n float64) *Value {
	return &Value{Kind: Number, Text: strconv.FormatFloat(n, 'f', -1, 64)}
}

// bounds are what a schema allows. An end that is open is itself not allowed.
type bounds struct {
	low, high         float64
	lowOpen, highOpen bool
	step              float64 // 1 where none is asked for
	stepped           bool    // only multiples of step are allowed
}

func boundsOf(s *Value, whole bool) bounds {
	b := bounds{low: math.Inf(-1), high: math.Inf(1), step: 1, stepped: whole}
	if step, found := decimal(s, "multipleOf"); found && step > 0 {
		b.step, b.stepped = step, true
	}
	if n, found := decimal(s, "minimum"); found {
		b.low = n
	}
	if n, found := decimal(s, "exclusiveMinimum"); found && n >= b.low {
		b.low, b.lowOpen = n, true
	}
	if n, found := decimal(s, "maximum"); found {
		b.high = n
	}
	if n, found := decimal(s, "exclusiveMaximum"); found && n <= b.high {
		b.high, b.highOpen = n, true
	}
	return b
}

// up is the lowest that may be allowed.
func (b bounds) up() float64 {
	n := b.low
	if b.stepped {
		n = math.Ceil(n/b.step) * b.step
	}
	if b.lowOpen && n <= b.low {
		n += b.step
	}
	return n
}

// down is the highest that may be allowed.
func (b bounds) down() float64 {
	n := b.high
	if b.stepped {
		n = math.Floor(n/b.step) * b.step
	}
	if b.highOpen && n >= b.high {
		n -= b.step
	}
	return n
}

func (b bounds) allow(n float64) bool {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) || n < b.low || n > b.high:
		return false
	case b.lowOpen && n == b.low || b.highOpen && n == b.high:
		return false
	}
	return !b.stepped || math.Abs(math.Remainder(n, b.step)) < 1e-9
}

// decimal is a keyword that is a number.
func decimal(s *Value, keyword string) (float64, bool) {
	v := s.Get(keyword)
	if !v.Is(Number) {
		return 0, false
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	return n, err == nil
}

// count is a keyword that is a whole number of at least zero.
func count(s *Value, keyword string) (int, bool) {
	n, found := decimal(s, keyword)
	return int(min(max(n, 0), 1<<30)), found
}
