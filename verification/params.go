package verification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Stage is one step of a verification.
type Stage string

// The stages, in their order.
const (
	StageLint      Stage = "S0" // the contract, and whether the target can carry it
	StageRender    Stage = "S1" // every case as the target is sent it
	StageCount     Stage = "S2" // what the target counts of it
	StageProbes    Stage = "S3"
	StageStructure Stage = "S4" // structure and invariants of every case
	StageMeaning   Stage = "S5" // expectations, and agreement with a primary
	StageOperation Stage = "S6" // time, price and errors
)

// Stages lists every stage in order.
func Stages() []Stage {
	return []Stage{StageLint, StageRender, StageCount, StageProbes, StageStructure, StageMeaning, StageOperation}
}

// Target is a target as a verification sees it.
type Target struct {
	onejob.Target

	Model    string // as it is asked for
	Protocol string // for people, as in anthropic-messages
	// Pinned says that the name is that of a snapshot which does not change, SelfHosted
	// that it is served by whoever asks. They decide how long a certificate lasts.
	Pinned, SelfHosted bool
	// ContextTokens is how many tokens a prompt and its answer have room for. Zero: it
	// is not known, and not checked.
	ContextTokens int
	// Tokens and ChatFunc are what is known here of its server; see
	// [contract.RenderTarget]. Nil: nothing, and what they would show is assumed.
	Tokens   contract.Tokens
	ChatFunc func(messages []byte, today time.Time) (string, error)
	// Upstream is who is to serve it, at an aggregator. Empty: anyone.
	Upstream string
	// Sandbox says that nothing done there is real.
	Sandbox bool
	// PriceFunc says what so many tokens cost at most, in millionths. Nil: it is not
	// known beforehand.
	PriceFunc func(inputTokens, outputTokens int) int64
}

// Params say what is verified.
type Params struct {
	Contract *contract.Contract
	// Checker is the contract compiled. Nil: it is linted and compiled anew, and the report
	// has the warnings.
	Checker *contract.Checker
	Target  Target
	// Primary is the target that this one is to stand in for. Nil: equivalence is not
	// asked about.
	Primary *Target

	Environment string // empty: [onejob.DefaultEnvironment]
	Trigger     string // who or what asks
	Tool        string // version of the program
	// UpTo is the last stage. Empty: all of them; with less no certificate is issued
	// that opens anything.
	UpTo Stage

	// MaxSpendMicros and MaxCalls are kept to before each call. Zero: the contract's.
	MaxSpendMicros int64
	MaxCalls       int
}

// Options say how. The zero value keeps nothing.
type Options struct {
	// Recorder keeps the evidence and issues the certificate. The versions of contract and
	// targets have been put there. Nil: nothing is kept, and earlier runs are not known.
	Recorder Recorder
	// Parallel is how many calls are under way at once. Zero or less: 4.
	Parallel int
	// CallTimeout bounds one call. Zero or less: five minutes.
	CallTimeout time.Duration
	// ProgressFunc is told how far the run is, from one goroutine at a time. Nil: nobody
	// is.
	ProgressFunc func(Progress)

	nonce func() string // nil: [nonce]
}

// Progress is how far a run is.
type Progress struct {
	Stage       Stage
	Done        int // calls of the stage
	Planned     int
	SpendMicros int64 // of the run
}

// Recorder is the part of an [onejob.CertificateStore] that a verification needs.
type Recorder interface {
	RunStart(ctx context.Context, r onejob.VerificationRun) (onejob.VerificationRun, error)
	SampleAdd(ctx context.Context, samples []onejob.VerificationSample) ([]error, error)
	RunFinish(ctx context.Context, params onejob.RunFinishParams) (onejob.Certificate, error)
	SampleList(ctx context.Context, params onejob.SampleListParams) ([]onejob.VerificationSample, error)
}

// Errors of a verification. Errors of the contract are a [*contract.Error].
var (
	// ErrUnreachable : the target, or the primary, did not answer. The run is
	// inconclusive, and what it spent is in the result.
	ErrUnreachable = errors.New("the target cannot be reached")
	// ErrRecordedOnly : the contract takes recorded outputs only; see [Replay].
	ErrRecordedOnly = errors.New("the contract is verified by recorded outputs only")
	// ErrNoSandbox : the contract is verified in a sandbox, and the target is none.
	ErrNoSandbox = errors.New("the contract is verified in a sandbox only, and the target is none")
	// ErrNoPrompter : the contract has a prompt, and the target cannot render one.
	ErrNoPrompter = errors.New("the target's provider renders no prompts")
)

// Defaults of [Options].
const (
	defaultParallel    = 4
	defaultCallTimeout = 5 * time.Minute
)

// compiled is the contract's checker, and what lint warns of.
func (p *Params) compiled() (*contract.Checker, []string, error) {
	if p.Checker != nil {
		return p.Checker, nil, nil
	}
	checker, report, err := contract.Review(p.Contract)
	if err != nil {
		return nil, nil, err
	}
	var warnings []string
	for _, f := range report.Findings {
		if f.Severity == contract.SeverityWarning {
			warnings = append(warnings, f.String())
		}
	}
	return checker, warnings, nil
}

// check says why nothing can be verified, before anything is recorded.
func (p *Params) check() error {
	if p.Contract == nil {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "there is no contract"}
	}
	if p.Contract.Verify.Mode == "recorded" {
		return ErrRecordedOnly
	}
	for _, t := range []*Target{&p.Target, p.Primary} {
		if t == nil {
			continue
		}
		if err := t.check(p.Contract); err != nil {
			return fmt.Errorf("target %s: %w", t.Name, err)
		}
	}
	return nil
}

func (t *Target) check(c *contract.Contract) error {
	_, renders := t.Provider.(onejob.Prompter)
	switch {
	case t.Provider == nil:
		return errors.New("it has no provider that can be called")
	case c.Prompt != nil && !renders:
		return ErrNoPrompter
	case c.Verify.Mode == "sandbox" && !t.Sandbox:
		return ErrNoSandbox
	}
	return nil
}

// lifetime is how long a certificate lasts, and for how long evidence counts along.
// What is served by oneself and pinned lasts as long as the shorter of both.
func (t *Target) lifetime(terms contract.Lifetimes) (time.Duration, string) {
	switch {
	case t.SelfHosted && t.Pinned:
		return time.Duration(min(terms.SelfHosted, terms.PinnedSnapshot)), "pinned, self-hosted"
	case t.SelfHosted:
		return time.Duration(terms.SelfHosted), "self-hosted"
	case t.Pinned:
		return time.Duration(terms.PinnedSnapshot), "pinned"
	}
	return time.Duration(terms.Alias), "alias"
}
