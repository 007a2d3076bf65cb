package sqlite

import (
	"slices"
	"strings"
)

// where collects conditions of a list.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

func (w *where) sql() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(w.conditions, ` AND `)
}

// known keeps the words that are ours: only those are ever written into SQL. They
// come in our order and once each, so that few statements are ever prepared.
func known[T comparable](words, ours []T) []T {
	return slices.DeleteFunc(slices.Clone(ours), func(w T) bool { return !slices.Contains(words, w) })
}
