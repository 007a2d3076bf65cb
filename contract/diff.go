package contract

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/onejob-dev/onejob"
)

// Diff lists what differs between the verifiable parts of two contracts, by the names
// in the file, sorted; cases by "cases". None: they have the same digest.
func Diff(a, b *Contract) []string {
	one, other := verifiablePart(reflect.ValueOf(a.File)), verifiablePart(reflect.ValueOf(b.File))
	names := maps.Clone(one)
	maps.Copy(names, other)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !sameJSON(one[name], other[name]) {
			differ = append(differ, name)
		}
	}
	x, errA := caseDigests(a.CaseList)
	y, errB := caseDigests(b.CaseList)
	if errA != nil || errB != nil || !slices.Equal(x, y) {
		differ = append(differ, "cases")
	}
	return differ
}

// sameJSON reports whether two values have the same canonical form.
func sameJSON(a, b any) bool {
	canonical := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text, err := onejob.Canonical(raw)
		if err != nil {
			return string(raw)
		}
		return string(text)
	}
	return canonical(a) == canonical(b)
}
