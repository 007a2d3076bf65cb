package production

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Target is a target with what is said of its model.
type Target struct {
	onejob.Target
	// ContextTokens is how many tokens the model's context has. Zero: not told, and no
	// request is held to it.
	ContextTokens int
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	// ContractViolated is told of an output that broke its contract, by the class of the
	// first violation.
	ContractViolated(kind, target, class string)
	// CertificateEnded is told of a certificate that production ended, and why.
	CertificateEnded(kind, target, reason string)
	// ReverificationAsked is told of a change that a certificate survives and that asks
	// for a new verification all the same.
	ReverificationAsked(kind, target, signal string)
	// CertificatesStand is told of the certificates that stand, now and then.
	CertificatesStand(live []onejob.Certificate)
}

// Options makes a [Line].
type Options struct {
	// Contracts as they are now, by kind.
	Contracts map[string]*contract.Contract
	Targets   []Target
	// Environment that certificates are for. Empty: [onejob.DefaultEnvironment].
	Environment string
	// Store keeps contracts and certificates. Nil: outputs are judged by the contracts
	// as they are now, and nothing is counted.
	Store onejob.CertificateStore

	Observer Observer     // nil: nobody counts
	Logger   *slog.Logger // nil: discards
	NowFunc  func() time.Time
}

// Line is safe for concurrent use.
type Line struct {
	opts    Options
	targets map[string]Target
	seen    seen

	mu    sync.Mutex
	terms map[string]*terms // by digest
	tally map[subject]*tally
	// standing are the certificates that stood when they were last read.
	standing map[subject]onejob.Certificate
	noticed  map[string]bool // what was said of certificates before
	moved    map[drift]bool  // drifts to look into
	wake     chan struct{}
}

// subject is what a certificate is about.
type subject struct{ contract, target string } // digests

// maxTerms bounds how many versions of contracts are held at once.
const maxTerms = 256

// New returns a line, or what is wrong with a contract.
func New(opts Options) (*Line, error) {
	if opts.Environment == "" {
		opts.Environment = onejob.DefaultEnvironment
	}
	if opts.Observer == nil {
		opts.Observer = nobody{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	l := &Line{
		opts: opts, targets: map[string]Target{}, terms: map[string]*terms{}, tally: map[subject]*tally{},
		standing: map[subject]onejob.Certificate{}, noticed: map[string]bool{}, moved: map[drift]bool{}, wake: make(chan struct{}, 1),
	}
	for _, t := range opts.Targets {
		l.targets[t.Name] = t
	}
	for kind, c := range opts.Contracts {
		held, err := newTerms(c)
		if err != nil {
			return nil, fmt.Errorf("kind %s: %w", kind, err)
		}
		l.terms[held.checker.Digest()] = held
	}
	return l, nil
}

// termsOf returns the version of a contract that a job pins.
func (l *Line) termsOf(ctx context.Context, digest string) (*terms, error) {
	l.mu.Lock()
	held := l.terms[digest]
	l.mu.Unlock()
	if held != nil {
		return held, nil
	}
	if l.opts.Store == nil {
		return nil, fmt.Errorf("%w: version %s of a contract", errNotKept, digest)
	}
	version, err := l.opts.Store.ContractGet(ctx, onejob.ContractGetParams{Digest: digest})
	if err != nil {
		return nil, err
	}
	read, err := contract.ParseBody(version.Body)
	if err == nil {
		held, err = newTerms(read)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: version %s of a contract cannot be read: %w", errNotKept, digest, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.terms) < maxTerms {
		l.terms[digest] = held
	}
	return held, nil
}

// errNotKept : what a job pins is not there, and will not be.
var errNotKept = errors.New("not kept")

func notKept(err error) bool {
	return errors.Is(err, errNotKept) || onejob.CodeOf(err) == onejob.CodeNotFound
}

// terms is one version of a contract.
type terms struct {
	contract *contract.Contract
	checker  *contract.Checker
}

func newTerms(c *contract.Contract) (*terms, error) {
	checker, err := contract.Compile(c)
	if err != nil {
		return nil, err
	}
	return &terms{contract: c, checker: checker}, nil
}

type nobody struct{}

func (nobody) ContractViolated(string, string, string)    {}
func (nobody) CertificateEnded(string, string, string)    {}
func (nobody) ReverificationAsked(string, string, string) {}
func (nobody) CertificatesStand([]onejob.Certificate)     {}
