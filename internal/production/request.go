package production

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// Request implements [engine.Contracts]. A contract without a prompt leaves the
// request to the target's configuration, and so does a target that calls no model.
func (l *Line) Request(ctx context.Context, job *onejob.Job, target *onejob.Target) (engine.Prepared, error) {
	held, err := l.termsOf(ctx, job.Policy.Contract.Digest)
	if err != nil {
		return engine.Prepared{}, err
	}
	prompter, able := target.Provider.(onejob.Prompter)
	if held.contract.Prompt == nil || !able {
		return engine.Prepared{Input: job.Input}, nil
	}
	prompt, err := held.checker.Prompt(job.Input)
	if err != nil {
		return engine.Prepared{}, notSent("render_failed", onejob.NextNowhere, err)
	}
	rendered, err := prompter.Render(prompt)
	switch {
	case errors.Is(err, onejob.ErrParamUnsupported):
		return engine.Prepared{}, notSent(onejob.GateParamUnsupported, onejob.NextElsewhere, err)
	case err != nil:
		return engine.Prepared{}, notSent("render_failed", onejob.NextElsewhere, err)
	}
	if err := l.room(ctx, held, target, rendered.Body); err != nil {
		return engine.Prepared{}, err
	}
	return engine.Prepared{Input: rendered.Body, Dropped: strings.Join(rendered.Dropped, ","), Rendered: true}, nil
}

// notSent says that nothing was sent because the target cannot carry it.
func notSent(code string, next onejob.Next, err error) error {
	return &onejob.CallError{
		Proof: onejob.ErrNotSent, Next: next, Phase: onejob.PhaseNotSent,
		Failure: onejob.Failure{Code: code, Message: err.Error()}, Evidence: onejob.Evidence{Error: err.Error()},
	}
}

// room holds a request to the target's context. A target that cannot be asked how
// long it is refuses by itself what is too long.
func (l *Line) room(ctx context.Context, held *terms, target *onejob.Target, body []byte) error {
	window := l.targets[target.Name].ContextTokens
	terms := held.contract.Render.Context
	most := min(int(terms.MaxFraction*float64(window)), window-terms.ReserveOutputTokens)
	counter, able := target.Provider.(onejob.TokenCounter)
	if window == 0 || len(body) <= most || !able { // no token has less than a byte
		return nil
	}
	tokens, err := counter.CountTokens(ctx, body)
	if err != nil || tokens <= most {
		return nil
	}
	return notSent(onejob.GateContextTooLarge, onejob.NextElsewhere,
		fmt.Errorf("the request has %d tokens; the context of %d has room for %d under the contract", tokens, window, most))
}
