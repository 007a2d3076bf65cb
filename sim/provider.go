package sim

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Provider is the fake. It is safe for concurrent use.
type Provider struct {
	opts    Options
	ledger  *ledger
	script  script
	models  *models
	control http.Handler
	trouble error // of construction

	conns    atomic.Int64 // connections accepted
	dropping atomic.Int64 // connections still to be dropped

	mu       sync.Mutex
	released chan struct{} // closed by Release
	closing  chan struct{} // closed by Close
}

// New makes a provider. It never fails; a LedgerFile that cannot be read back or
// a Default or a mind that does not exist is reported by [Provider.Err], and every request
// is then answered 500.
func New(opts Options) *Provider {
	opts.MaxEntries = orDefault(opts.MaxEntries, 10_000)
	opts.MaxIntents = orDefault(opts.MaxIntents, 100_000)
	if opts.IntentFunc == nil {
		opts.IntentFunc = IntentHeader("Idempotency-Key")
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	p := &Provider{opts: opts, ledger: newLedger(opts.MaxEntries, opts.MaxIntents)}
	p.released, p.closing = make(chan struct{}), make(chan struct{})
	var bad error
	p.models, bad = newModels(opts.Models, opts.MaxIntents)
	p.control = p.routes()
	if opts.LedgerFile != "" {
		p.trouble = p.ledger.open(opts.LedgerFile)
	}
	if opts.Default.Mind != nil {
		bad = errors.Join(bad, opts.Default.Mind.check())
	}
	p.trouble = errors.Join(p.trouble, bad)
	if _, known := faultNamed(opts.Default.Fault); !known {
		p.trouble = errors.Join(p.trouble, errors.New("sim: default: unknown fault "+opts.Default.Fault))
	}
	return p
}

// Err returns what went wrong at construction, or the first failure to write the
// ledger file since; nil if all is well.
func (p *Provider) Err() error { return cmp.Or(p.trouble, p.ledger.firstErr()) }

// Close ends the requests that are held or delayed, their clients getting no
// answer, and closes the ledger file. Later requests are cut. It does not wait;
// [Server.Close] does. A second Close does nothing. The error is that of [Provider.Err].
func (p *Provider) Close() error {
	p.shut()
	return cmp.Or(p.trouble, p.ledger.close())
}

// Script queues steps. Each applies to one request, in order of arrival.
func (p *Provider) Script(steps ...Step) { p.script.add("", false, steps) }

// ScriptFor queues steps for the requests of one intent: the first step for its
// next request, the second for the one after. "ok" lets one pass. Where the
// intent has steps left, they go before the common queue.
func (p *Provider) ScriptFor(intent string, steps ...Step) { p.script.add(intent, true, steps) }

// Unscripted reports whether all scripted steps have been taken.
func (p *Provider) Unscripted() bool { return p.script.waiting() == 0 }

// Release lets the requests go that the fault "hold" is holding now.
func (p *Provider) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.released)
	p.released = make(chan struct{})
}

// DropConnections makes the next n connections end in a reset before a byte of
// them is read; the client may meet it while it still dials. It works for a
// [Server] only. Zero or less stops dropping.
func (p *Provider) DropConnections(n int) { p.dropping.Store(int64(n)) }

// Requests counts the requests received since the last reset, look-ups included
// and /sim/ excluded.
func (p *Provider) Requests() int64 {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.requests
}

// TotalExecutions counts how often work was done since the last reset.
func (p *Provider) TotalExecutions() int64 {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.executions
}

// Executions counts how often the work of one intent was done since the last
// reset; zero for an intent never seen.
func (p *Provider) Executions(intent string) int {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.intents.get(intent)
}

// Duplicates returns the intents whose work was done more than once, with their
// executions.
func (p *Provider) Duplicates() map[string]int {
	duplicates := map[string]int{}
	for intent, n := range p.Report().Intents {
		if n > 1 {
			duplicates[intent] = n
		}
	}
	return duplicates
}

// Ledger returns a snapshot of the entries, by number.
func (p *Provider) Ledger() []Entry { return p.Report().Entries }

// Report returns the counts and the entries of one moment.
func (p *Provider) Report() Report { return p.ledger.report() }

// Reset forgets the ledger, the idempotency keys, the charges and the scripts,
// in the ledger file too, and gives the models the minds of [Options.Models] again.
// Requests in flight go on and are not counted.
func (p *Provider) Reset() {
	_ = p.models.replace(p.opts.Models) // has been checked, or p.trouble tells
	p.script.clear()
	p.DropConnections(0)
	p.ledger.reset()
}

// Wait returns nil as soon as until reports true, asking anew after each change
// of the ledger. It returns the error of ctx if that ends first.
func (p *Provider) Wait(ctx context.Context, until func() bool) error {
	for {
		changed := p.ledger.nextChange()
		if until() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP plays the provider.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, followed := strings.CutPrefix(r.URL.Path, followedPrefix)
	if !followed && strings.HasPrefix(r.URL.Path, "/sim/") {
		p.control.ServeHTTP(w, r)
		return
	}
	if p.closed() {
		panic(http.ErrAbortHandler)
	}
	if p.trouble != nil {
		http.Error(w, p.trouble.Error(), http.StatusInternalServerError)
		return
	}
	c := p.arrive(w, r, path, followed)
	defer c.finish()
	c.serve()
}

// choose picks the step for a request. It fails on a directive that cannot be read.
func (p *Provider) choose(c *call) (Step, error) {
	if c.entry.Followed {
		return Step{}, nil // or it would be redirected for ever
	}
	if step, found := p.script.take(c.entry.Intent, c.wants); found {
		return step, nil
	}
	directive := cmp.Or(c.r.Header.Get("Sim-Fault"), c.r.URL.Query().Get("sim"))
	if directive != "" {
		return Parse(directive)
	}
	if !c.wants(p.opts.Default) {
		return Step{}, nil
	}
	return p.opts.Default, nil
}

func (p *Provider) now() time.Time { return p.opts.NowFunc().UTC() }

func (p *Provider) nextRelease() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.released
}

func (p *Provider) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed() {
		close(p.closing)
	}
}

func (p *Provider) closed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// reply is the text of a chat completion.
func (p *Provider) reply(model, prompt string) string {
	if p.opts.ReplyFunc == nil {
		return prompt
	}
	return p.opts.ReplyFunc(model, prompt)
}

func orDefault(n, fallback int) int {
	if n <= 0 {
		return fallback
	}
	return n
}

var _ http.Handler = (*Provider)(nil)
