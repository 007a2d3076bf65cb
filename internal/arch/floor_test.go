package arch_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// floor says what the packages of one room may import. Rooms are folders from the
// module's root, "." the root itself; "store/..." is store and all below it.
type floor struct {
	room string
	may  []string // rooms of the house
	// also are rooms that its tests may enter beside those, and its own.
	also []string
	// third are the modules of others that it may import; "*" is any. Tests may any.
	third []string
	// by are the only rooms that may import it. Nil: whoever may by its own floor.
	by []string
}

// floors is the house, from the ground up. The first that fits counts.
var floors = []floor{
	{room: ".", third: []string{"github.com/go-json-experiment/json"}, also: []string{"store/memory"}},

	// The garden imports nothing of the house outside itself, the workshops only what they test.
	{room: "sim/...", may: []string{"sim/internal/..."}},
	{room: "fracture/..."},
	{room: "store/storetest/...", may: []string{"."}},
	{room: "provider/providertest/...", may: []string{"."}, also: []string{"sim"}},

	// Wings see the root and never each other.
	{room: "store/internal/...", may: []string{"."}, third: others},
	{room: "store/memory/...", may: []string{"."}, also: []string{"store/storetest"}},
	{room: "store/doorbell/...", may: []string{"."}, also: []string{"store/postgres", "store/grouped", "engine", "internal/pgtest"}},
	{room: "store/generation/...", may: []string{"."}, third: others, also: []string{"store/storetest", "store/memory"}},
	{room: "store/grouped/...", may: []string{"."}, third: others, also: []string{"store/storetest", "store/memory"}},
	{room: "store/sqlite/...", may: []string{".", "store/sqlite/...", "store/internal/..."}, third: others, also: []string{"store/storetest"}},
	{room: "store/postgres/...", may: []string{".", "store/postgres/...", "store/internal/..."}, third: others, also: []string{"store/storetest", "store/grouped", "internal/pgtest"}},
	{room: "internal/template/...", third: others},
	{room: "internal/tokenizer/...", may: []string{"internal/template"}, third: others},
	{room: "provider/wire/...", may: []string{"."}, third: others, also: []string{"provider/providertest", "sim"}},
	{room: "provider/all/...", may: []string{".", "provider/..."}},
	{room: "provider/...", may: []string{".", "provider/wire/...", "internal/template"}, third: others, also: []string{"provider/providertest", "sim"}},

	// The first floor, and its side rooms.
	{room: "engine/...", may: []string{"."}, also: []string{"store/memory", "sim"}},
	{room: "contract/...", may: []string{".", "internal/template"}, third: others, also: []string{"store/memory", "sim", "provider/...", "internal/tokenizer"}},
	{room: "verification/...", may: []string{".", "contract"}, also: []string{"store/memory", "sim", "provider/..."}},
	{room: "webhook/...", may: []string{"."}, third: others, also: []string{"store/memory", "sim"}},

	// Doors get interfaces; they never see a store, an engine or a provider.
	{room: "internal/apikey/...", may: []string{"."}, third: others, also: []string{"store/memory"}},
	{room: "internal/telemetry/...", may: []string{"."}, third: others, also: []string{"store/memory"}},
	{room: "internal/httpapi/...", may: []string{".", "internal/apikey", "internal/telemetry", "internal/certify"}, third: others, also: []string{"store/memory", "store/sqlite", "engine", "contract", "verification", "provider/openai", "sim"}},
	{room: "internal/frontdoor/...", may: []string{".", "internal/httpapi"}, third: others, also: []string{"store/memory", "engine", "sim", "provider/openai", "provider/anthropic", "provider/translate", "internal/apikey"}},
	{room: "internal/console/...", may: []string{"."}, third: others, also: []string{"store/memory"}},

	// Between first floor and attic: what joins contracts to production.
	{room: "internal/production/...", may: []string{".", "contract", "engine"}, third: others, also: []string{"store/memory"}},
	{room: "internal/certify/...", may: []string{".", "contract", "verification"}, third: others, also: []string{"store/memory", "sim", "provider/..."}},

	// The attic.
	{room: "internal/config/...", may: []string{".", "provider/...", "webhook", "contract"}, third: others, by: []string{"internal/cli/...", "internal/crash"}},
	{room: "internal/demo/...", may: []string{".", "sim", "webhook"}, by: []string{"internal/cli/..."}},
	{room: "internal/loadgen/...", may: []string{"."}, by: []string{"internal/cli/..."}},
	{room: "internal/cli/...", may: []string{"..."}, third: others, by: []string{"cmd/..."}},
	{room: "cmd/onejob", may: []string{"internal/cli"}},

	// Measuring, trying and showing stand outside; nobody leans on them.
	{room: "internal/pgtest/...", third: others},
	{room: "internal/llama/...", also: []string{"contract", "provider/openai"}, by: []string{}},
	{room: "internal/bench/...", may: []string{"..."}, third: others, by: []string{}},
	{room: "internal/load/...", may: []string{"sim"}, by: []string{}},
	{room: "internal/crash/...", may: []string{"..."}, third: others, by: []string{}},
	{room: "internal/mutate/...", by: []string{}},
	{room: "internal/arch/...", by: []string{}},
	{room: "examples/...", may: []string{".", "engine", "sim", "webhook", "store/...", "provider/..."}, by: []string{}},
}

// others is any module of others.
var others = []string{"*"}

func TestAnArrowOfTheFloorPlanGoesOnlyDownwards(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		f := floorOf(s.room)
		if f == nil {
			t.Errorf("%s: room %s is not on the floor plan; give it a floor", s.path, s.room)
			continue
		}
		for _, imported := range s.imports() {
			if why := f.refuses(s, imported); why != "" {
				t.Errorf("%s: %s may not import %s: %s", s.path, s.room, imported, why)
			}
		}
	}
}

func floorOf(room string) *floor {
	i := slices.IndexFunc(floors, func(f floor) bool { return within(room, f.room) })
	if i < 0 {
		return nil
	}
	return &floors[i]
}

// within reports whether a room is the one named, or below it.
func within(room, named string) bool {
	if named == "..." {
		return true
	}
	above, all := strings.CutSuffix(named, "/...")
	return room == above || (all && strings.HasPrefix(room, above+"/"))
}

func withinAny(room string, named []string) bool {
	return slices.ContainsFunc(named, func(n string) bool { return within(room, n) })
}

// refuses says why the file may not import a path; empty: it may.
func (f *floor) refuses(s *source, imported string) string {
	room, ofHouse := roomOf(imported)
	switch {
	case !ofHouse && (s.test || isStandard(imported) || f.knows(imported)):
		return ""
	case !ofHouse:
		return "its floor has no such module of others"
	case s.test && (room == s.room || room == "." || withinAny(room, f.also)):
		return ""
	case !withinAny(room, f.may):
		return "it is on no floor below"
	}
	if target := floorOf(room); target != nil && target.by != nil && room != s.room && !withinAny(s.room, target.by) {
		return "only " + strings.Join(target.by, ", ") + " may"
	}
	return ""
}

func (f *floor) knows(imported string) bool {
	return slices.ContainsFunc(f.third, func(m string) bool {
		return m == "*" || imported == m || strings.HasPrefix(imported, m+"/")
	})
}

func roomOf(imported string) (room string, ofHouse bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// A package that is not meant to be tested with may not bring testing along.
func TestOnlyWorkshopsImportTestingOutsideTests(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		if s.test || strings.HasSuffix(path.Base(s.room), "test") {
			continue
		}
		for _, imported := range s.imports() {
			if imported == "testing" || strings.HasPrefix(imported, "testing/") {
				t.Errorf("%s imports %s outside a test", s.path, imported)
			}
		}
	}
}
