package sim

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// RefusedPhrase is what an honest mind refuses to answer, wherever a request has it.
const RefusedPhrase = "how do I open a lock that is not mine"

// refusal is what is said then.
const refusal = "I can't help with that."

// reading is what an honest mind reads out of a question.
type reading struct {
	puts  map[string]string // what the messages say to put where
	facts map[string]string // lines as "Order total (cents): 700", by order_total
	about string            // the last message
	words string            // what it says where nothing is said
	short string            // the same in a member of a JSON value
}

// The sentences that a mind understands.
var (
	putSentence = regexp.MustCompile("(?im)\\b(?:put|copy|write) (?:the (?:word|text|value) )?(?:`([^`]+)`|\"([^\"]+)\"|'([^']+)'|(.+?))(?: exactly)? (?:in|into) (?:the )?(?:field |member |key |property )?[`\"']?([a-z_][a-z0-9_-]*)")
	saySentence = regexp.MustCompile("(?i)\\b(?:say|include|mention) (?:the (?:word|text) )?(?:`([^`]+)`|\"([^\"]+)\"|'([^']+)')")
	countTo     = regexp.MustCompile(`(?i)\bcount (?:from (?:1|one) )?to (\d{1,4})\b`)
	factLine    = regexp.MustCompile(`(?m)^[ \t*-]*([A-Za-z][\w -]*?)(?: \([^)\n]*\))?[ \t]*[:=][ \t]*(\S.*?)[ \t\r]*$`)
	notInName   = regexp.MustCompile(`[^a-z0-9]+`)
)

func read(q *question, words string) *reading {
	r := &reading{puts: map[string]string{}, facts: map[string]string{}, about: q.last()}
	said := ""
	for _, t := range q.turns {
		if t.role != "assistant" {
			r.obey(t.text)
			said += sayings(t.text)
		}
	}
	for _, t := range q.system { // its word goes before the user's
		r.obey(t.text)
		said += sayings(t.text)
	}
	for _, m := range factLine.FindAllStringSubmatch(r.about, -1) {
		r.learn(m[1], m[2])
	}
	if v, err := schema.Parse([]byte(r.about)); err == nil && v.Is(schema.Object) {
		for i, name := range v.Names {
			text := v.Items[i].String()
			if v.Items[i].Is(schema.String) {
				text = v.Items[i].Text
			}
			r.learn(name, text)
		}
	}
	r.words = said + words
	if line, _, _ := strings.Cut(r.words, "\n"); countTo.FindString(r.about) == "" {
		r.short = cutRunes(line, shortWords)
	} else {
		r.short = r.words
	}
	return r
}

// shortWords bounds, in characters, what is written into a member of which nothing is said.
const shortWords = 80

func cutRunes(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

func (r *reading) obey(text string) {
	for _, m := range putSentence.FindAllStringSubmatch(text, -1) {
		r.puts[m[5]] = m[1] + m[2] + m[3] + strings.TrimSpace(m[4])
	}
}

func sayings(text string) string {
	said := ""
	for _, m := range saySentence.FindAllStringSubmatch(text, -1) {
		said += m[1] + m[2] + m[3] + " "
	}
	return said
}

func (r *reading) learn(name, text string) {
	if name = plainName(name); r.facts[name] == "" {
		r.facts[name] = text
	}
}

func plainName(name string) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "_"), "_")
}

// Said is what the messages say a member is to be.
func (r *reading) Said(name string) (string, bool) {
	if text, said := r.puts[name]; said {
		return text, true
	}
	text, said := r.facts[plainName(name)]
	return text, said
}

// Chosen is the choice that the last message names first.
func (r *reading) Chosen(choices []string) (int, bool) {
	chosen, first := -1, len(r.about)
	for i, c := range choices {
		if at := wordAt(r.about, c); at >= 0 && at < first {
			chosen, first = i, at
		}
	}
	return chosen, chosen >= 0
}

// wordAt is where a text has another as a whole word, in any case; -1: nowhere.
func wordAt(text, word string) int {
	if word == "" {
		return -1
	}
	at := regexp.MustCompile(`(?i)(?:^|\W)(` + regexp.QuoteMeta(word) + `)(?:\W|$)`).FindStringSubmatchIndex(text)
	if at == nil {
		return -1
	}
	return at[2]
}

// Words is what to write into a member of which nothing is said.
func (r *reading) Words() string { return r.short }

// words are what a mind says to a prompt: what it counts, or the prompt itself.
func words(prompt string) string {
	m := countTo.FindStringSubmatch(prompt)
	if m == nil {
		return prompt
	}
	n, _ := strconv.Atoi(m[1]) // four digits at most
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(i + 1))
	}
	return b.String()
}
