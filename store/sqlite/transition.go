package sqlite

import (
	"strings"

	"github.com/onejob-dev/onejob"
)

// sources is the condition that an event may move an attempt, by the transition
// table: what an UPDATE checks in the statement that acts.
func sources(e onejob.Event) string {
	states, ruled := onejob.SourcesOf(e)
	if len(ruled) == 0 {
		return `state ` + in(states)
	}
	return `(state ` + in(states) + ` OR (ruling IS NOT NULL AND state ` + in(ruled) + `))`
}

// in is the condition of being one of the module's own words. A single one is an
// equation, which a partial index over it needs.
func in[T ~string](words []T) string {
	if len(words) == 1 {
		return `= '` + string(words[0]) + `'`
	}
	var b strings.Builder
	b.WriteString(`IN (`)
	for i, w := range words {
		if i > 0 {
			b.WriteString(`, `)
		}
		b.WriteString(`'` + string(w) + `'`)
	}
	b.WriteString(`)`)
	return b.String()
}
