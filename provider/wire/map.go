package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// WithMap returns object as a target wants its parameters. A top-level member that
// moves names goes to the path that it says, dots going inside, or is left out where
// that is empty; all other bytes stay as they were. dropped are those that were left
// out, sorted.
//
// A place where something else is already is an error. Errors repeat no value.
func WithMap(object []byte, moves map[string]string) (mapped []byte, dropped []string, err error) {
	if len(moves) == 0 {
		return object, nil, nil
	}
	m := mapping{object: object, moves: moves}
	if m.spans, err = members(object); err != nil {
		return nil, nil, err
	}
	if err := m.collision(); err != nil {
		return nil, nil, err
	}
	mapped = m.edit()
	for _, in := range m.inside {
		if mapped, err = withPath(mapped, moves[in.name], object[in.start:in.end]); err != nil {
			return nil, nil, fmt.Errorf("member %q: %w", in.name, err)
		}
	}
	slices.Sort(m.dropped)
	return mapped, slices.Compact(m.dropped), nil
}

// mapping is one object being mapped.
type mapping struct {
	object  []byte
	spans   []span
	moves   map[string]string
	inside  []span // members that go inside another
	dropped []string
}

// renamed is the name of a member afterwards. It reports false for one that does not
// stay where it is.
func (m *mapping) renamed(s span) (name string, moved, stays bool) {
	to, moved := m.moves[s.name]
	if !moved {
		return s.name, false, true
	}
	return to, true, to != "" && !strings.Contains(to, ".")
}

// collision finds a name that would be there twice because of the map.
func (m *mapping) collision() error {
	taken := map[string]bool{} // and whether by one that moved
	for _, s := range m.spans {
		name, moved, stays := m.renamed(s)
		if !stays {
			continue
		}
		if before, twice := taken[name]; twice && (before || moved) {
			return fmt.Errorf("two members go to %q", name)
		}
		taken[name] = moved || taken[name]
	}
	return nil
}

// edit renames what stays and takes out what does not, with the comma before it.
func (m *mapping) edit() []byte {
	if len(m.spans) == 0 {
		return m.object
	}
	edited := slices.Clone(m.object[:m.spans[0].at])
	kept := 0
	for i, s := range m.spans {
		name, moved, stays := m.renamed(s)
		switch {
		case stays:
		case name == "":
			m.dropped = append(m.dropped, s.name)
			continue
		default:
			m.inside = append(m.inside, s)
			continue
		}
		if kept++; kept > 1 {
			edited = append(edited, m.object[m.spans[i-1].end:s.at]...)
		}
		written := m.object[s.at:s.named]
		if moved {
			written = quoted(name)
		}
		edited = append(append(edited, written...), m.object[s.named:s.end]...)
	}
	return append(edited, m.object[m.spans[len(m.spans)-1].end:]...)
}

// withPath returns object with value at a path of members, dots between.
func withPath(object []byte, path string, value json.RawMessage) ([]byte, error) {
	name, rest, deeper := strings.Cut(path, ".")
	spans, err := members(object)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(spans, func(s span) bool { return s.name == name })
	switch {
	case !deeper && i >= 0:
		return nil, fmt.Errorf("something is at %q already", name)
	case !deeper:
		return WithMember(object, name, value)
	}
	inner := []byte("{}")
	if i >= 0 {
		inner = object[spans[i].start:spans[i].end]
	}
	if inner, err = withPath(inner, rest, value); err != nil {
		return nil, fmt.Errorf("inside %q: %w", name, err)
	}
	return WithMember(object, name, inner)
}

func quoted(name string) []byte {
	text, err := json.Marshal(name)
	if err != nil { // texts always encode
		return nil
	}
	return text
}
