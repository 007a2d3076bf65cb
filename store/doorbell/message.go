package doorbell

import (
	"encoding/json"

	"github.com/onejob-dev/onejob"
)

const (
	// maxIDs bounds what one ring tells by name; beyond it everybody is to look.
	maxIDs = 800
	// idsPerMessage keeps a message under the 8,000 bytes that PostgreSQL takes.
	idsPerMessage = 200
	// maxIDBytes is more than any id has. A longer one is not told by name.
	maxIDBytes = 32
)

// pending is what happened since the last ring. Ids and flags, not what changed:
// who hears of a job reads it.
type pending struct {
	changed, cancelled map[string]struct{}
	flags              onejob.News // without ids
	hello              bool
}

func (p *pending) add(n onejob.News) {
	for _, id := range n.Changed {
		p.note(&p.changed, id)
	}
	for _, id := range n.Cancelled {
		p.note(&p.cancelled, id)
	}
	p.flags.Work = p.flags.Work || n.Work
	p.flags.Questions = p.flags.Questions || n.Questions
	p.flags.Outbox = p.flags.Outbox || n.Outbox
	p.flags.All = p.flags.All || n.All
}

func (p *pending) note(ids *map[string]struct{}, id string) {
	switch {
	case p.flags.All:
	case len(id) > maxIDBytes || len(p.changed)+len(p.cancelled) >= maxIDs:
		p.flags.All = true
		p.changed, p.cancelled = nil, nil
	case *ids == nil:
		*ids = map[string]struct{}{id: {}}
	default:
		(*ids)[id] = struct{}{}
	}
}

// message is one as it travels. A reader ignores members that it does not know.
type message struct {
	Version   int      `json:"v"`
	Node      string   `json:"n"`
	Changed   []string `json:"j,omitempty"`
	Cancelled []string `json:"c,omitempty"`
	Work      bool     `json:"w,omitempty"`
	Questions bool     `json:"q,omitempty"`
	Outbox    bool     `json:"o,omitempty"`
	All       bool     `json:"a,omitempty"`
}

const version = 1

// messages writes down what is pending, in as many messages as it takes. Nothing
// pending makes none.
func (p *pending) messages(node string) []string {
	first := message{
		Version: version, Node: node,
		Work: p.flags.Work, Questions: p.flags.Questions, Outbox: p.flags.Outbox, All: p.flags.All,
	}
	if first.All || len(p.changed)+len(p.cancelled) == 0 {
		if p.flags.IsEmpty() && !p.hello {
			return nil
		}
		return []string{first.write()}
	}
	var texts []string
	m := first
	flush := func() {
		texts = append(texts, m.write())
		m = message{Version: version, Node: node}
	}
	add := func(ids map[string]struct{}, to func() *[]string) {
		for id := range ids {
			if len(m.Changed)+len(m.Cancelled) == idsPerMessage {
				flush()
			}
			*to() = append(*to(), id)
		}
	}
	add(p.cancelled, func() *[]string { return &m.Cancelled })
	add(p.changed, func() *[]string { return &m.Changed })
	flush()
	return texts
}

func (m message) write() string {
	text, _ := json.Marshal(m) // strings and booleans
	return string(text)
}

// read reads a message. One that cannot be read, or is of a later version, says
// that there is something to look for.
func read(text string) (n onejob.News, node string) {
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Version != version {
		return onejob.News{All: true}, m.Node
	}
	return onejob.News{
		Changed: m.Changed, Cancelled: m.Cancelled,
		Work: m.Work, Questions: m.Questions, Outbox: m.Outbox, All: m.All,
	}, m.Node
}
