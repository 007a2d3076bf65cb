package sim

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Entry is what the ledger knows of one request. Times are UTC; zero means that
// it has not happened.
type Entry struct {
	Number      int64     `json:"number"`       // 1 for the first request since the last reset
	Conn        int64     `json:"conn"`         // number of the connection since the process started; 0 if not served by a Server
	ConnRequest int64     `json:"conn_request"` // 1 for the first request on that connection
	Method      string    `json:"method"`
	Path        string    `json:"path"`
	Intent      string    `json:"intent"` // empty if the request names none
	Key         string    `json:"key"`    // the Idempotency-Key header
	Fault       string    `json:"fault"`  // text of the step that was followed
	Executions  int       `json:"executions"`
	ID          string    `json:"id"`     // the provider's id for the work; empty if none was done
	Status      int       `json:"status"` // answered; 0 if no final status line left
	BodyBytes   int64     `json:"body_bytes"`
	ReceivedAt  time.Time `json:"received_at"`
	ExecutedAt  time.Time `json:"executed_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"` // when the provider was done with it
	ClientGone  bool      `json:"client_gone"`          // the client hung up while it was being served
	Replayed    bool      `json:"replayed"`             // answered from an earlier execution
	Followed    bool      `json:"followed"`             // came by following the fault "redirect"
	Model       string    `json:"model,omitempty"`      // that was asked, where models have minds
	Lies        string    `json:"lies,omitempty"`       // that it told in this answer, joined by commas
}

// Report is the ledger as GET /sim/ledger answers it.
type Report struct {
	Requests   int64          `json:"requests"`
	Executions int64          `json:"executions"`
	Intents    map[string]int `json:"intents"` // executions per intent; only those executed at least once
	Entries    []Entry        `json:"entries"` // by number
}

// charge is a piece of work done, and the answer that belongs to it.
type charge struct {
	ID      string    `json:"id"`
	Intent  string    `json:"intent"`
	Key     string    `json:"key"`
	ReadyAt time.Time `json:"ready_at,omitzero"` // a look-up says that it goes on before
	Deaf    bool      `json:"deaf,omitempty"`    // a cancel changes nothing

	CreatedAt   time.Time `json:"created_at,omitzero"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
	Answer      answer    `json:"answer"`

	Reference string `json:"reference,omitempty"` // the caller's own
}

// ledger counts. One lock covers a count and its line in the file, so that no
// reader ever sees one without the other.
type ledger struct {
	mu         sync.Mutex
	generation int // grows with each reset; entries of an older one count no more
	requests   int64
	executions int64
	intents    *bounded[int]
	charges    *bounded[charge]
	keys       *bounded[string] // provider idempotency key → charge id
	references *bounded[string] // the caller's own reference → charge id
	running    map[string]bool  // keys whose first request still runs
	entries    []*Entry
	maxEntries int
	changed    chan struct{} // closed at the next change; nil while nobody waits
	file       *ledgerFile   // nil: memory only
	err        error         // the first trouble with the file
}

// receipt is the handle by which a request speaks to the ledger.
type receipt struct {
	generation int
	entry      *Entry
}

func newLedger(maxEntries, maxIntents int) *ledger {
	l := &ledger{maxEntries: maxEntries, running: map[string]bool{}}
	l.intents = newBounded[int](maxIntents, 0)
	l.charges = newBounded[charge](maxIntents, maxKeptBytes)
	l.keys = newBounded[string](maxIntents, 0)
	l.references = newBounded[string](maxIntents, 0)
	return l
}

// arrive numbers a request.
func (l *ledger) arrive(e Entry) receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Number = l.requests + 1
	l.apply(record{Entry: e})
	l.save(record{Entry: e})
	return receipt{l.generation, &e}
}

// note changes the entry of a request. The file has the change with the next event.
func (l *ledger) note(r receipt, change func(*Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(r.entry)
	if r.generation == l.generation {
		l.apply(record{Entry: *r.entry})
	}
}

// execute counts one execution and keeps its charge.
func (l *ledger) execute(r receipt, c charge, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := r.entry
	e.Executions++
	e.ExecutedAt = now
	if e.ID == "" {
		e.ID = c.ID
	}
	l.event(r, record{Entry: *e, Charge: &c})
}

// cancel gives up accepted work that is still under way.
func (l *ledger) cancel(r receipt, id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event(r, record{Entry: *r.entry, Cancelled: id, CancelledAt: now})
}

// finish closes the entry of a request and returns it.
func (l *ledger) finish(r receipt, now time.Time) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.entry.FinishedAt = now
	l.event(r, record{Entry: *r.entry})
	return *r.entry
}

// event applies and saves a record, unless a reset came between.
func (l *ledger) event(r receipt, rec record) {
	if r.generation != l.generation {
		return
	}
	l.apply(rec)
	l.save(rec)
}

// apply is the one way in which the ledger changes, live or read from a file.
func (l *ledger) apply(rec record) {
	l.putEntry(rec.Entry)
	if c, known := l.charges.find(rec.Cancelled); known {
		c.CancelledAt = rec.CancelledAt
		l.charges.put(c.ID, c, int64(len(c.Answer.Body)))
	}
	if c := rec.Charge; c != nil {
		l.executions++
		l.intents.put(c.Intent, l.intents.get(c.Intent)+1, 0)
		l.charges.put(c.ID, *c, int64(len(c.Answer.Body)))
		l.keepKey(c)
		if c.Reference != "" {
			l.references.put(c.Reference, c.ID, 0)
		}
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// keepKey binds the key of a charge to it, unless an earlier one holds it.
func (l *ledger) keepKey(c *charge) {
	if c.Key == "" {
		return
	}
	delete(l.running, c.Key)
	if _, found := l.charges.find(l.keys.get(c.Key)); !found {
		l.keys.put(c.Key, c.ID, 0)
	}
}

// putEntry adds or replaces an entry. Numbers are dense, so its place is known.
func (l *ledger) putEntry(e Entry) {
	if e.Number > l.requests {
		l.requests = e.Number
		l.entries = append(l.entries, &e)
		if len(l.entries) > l.maxEntries {
			l.entries[0] = nil
			l.entries = l.entries[1:]
		}
		return
	}
	if i := e.Number - l.requests + int64(len(l.entries)) - 1; i >= 0 {
		l.entries[i] = &e
	}
}

// begin asks what an honoured idempotency key finds: a kept charge, or that the
// first request of the key still runs, or neither: then the key is taken until
// the execution or [ledger.giveUp].
func (l *ledger) begin(key string) (kept charge, found, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, found = l.charges.find(l.keys.get(key)); found {
		return kept, true, false
	}
	if l.running[key] {
		return charge{}, false, true
	}
	l.running[key] = true
	return charge{}, false, false
}

func (l *ledger) giveUp(r receipt, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.generation == l.generation {
		delete(l.running, key)
	}
}

// charge finds one by its id, or by the reference that came with it.
func (l *ledger) charge(id string) (charge, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, known := l.charges.find(id); known {
		return found, true
	}
	return l.charges.find(l.references.get(id))
}

// chargesOf lists those of one intent, oldest first.
func (l *ledger) chargesOf(intent string) []charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []charge
	for _, c := range l.charges.all() {
		if c.Intent == intent {
			found = append(found, c)
		}
	}
	return found
}

func (l *ledger) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	rep := Report{Requests: l.requests, Executions: l.executions, Intents: maps.Clone(l.intents.values())}
	rep.Entries = make([]Entry, len(l.entries))
	for i, e := range l.entries {
		rep.Entries[i] = *e
	}
	slices.SortFunc(rep.Entries, func(a, b Entry) int { return int(a.Number - b.Number) })
	return rep
}

// reset forgets everything, the file's lines and what is in flight included.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation++
	l.requests, l.executions, l.entries = 0, 0, nil
	l.intents.clear()
	l.charges.clear()
	l.keys.clear()
	l.references.clear()
	clear(l.running)
	if l.file != nil {
		l.fail(l.file.truncate())
	}
}

// nextChange returns a channel that is closed at the next change.
func (l *ledger) nextChange() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}
