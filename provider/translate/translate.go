package translate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

// API is one of the two protocols.
type API string

// The protocols.
const (
	Chat     API = "chat"     // OpenAI's chat completions
	Messages API = "messages" // Anthropic's messages
)

// Version of what is said for what: of requests, of their answers, and of what is refused
// or left out. It is raised when any of that changes, so that a certificate of what was
// translated in another way ends.
const Version = 1

// Target is a target that speaks one of them.
type Target interface {
	onejob.Provider
	onejob.Prompter
	onejob.TokenCounter
	Digest() string
	Close()
}

// Options says who is translated for.
type Options struct {
	// Speaks is the protocol of the target.
	Speaks API
	// Kinds are those whose callers speak the other one. Requests of other kinds, and
	// what was rendered for the target, pass as they are.
	Kinds []string
	// NowFunc says when a completion was made. Nil: [time.Now].
	NowFunc func() time.Time
}

// Provider translates for a target. It is safe for concurrent use.
type Provider struct {
	Target
	opts Options
}

// asked is a target that can also be asked about an attempt.
type asked struct {
	*Provider
	onejob.Prober
	onejob.Canceller
}

// New returns t as callers of both protocols may use it. It can do all that t can.
func New(t Target, opts Options) Target {
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	p := &Provider{Target: t, opts: opts}
	prober, probes := t.(onejob.Prober)
	canceller, cancels := t.(onejob.Canceller)
	if probes && cancels {
		return &asked{p, prober, canceller}
	}
	return p
}

// Digest addresses the target and how it is translated to.
func (p *Provider) Digest() string { return wire.Digest("translated", Version, p.Target.Digest()) }

// Call calls the target once, in its own protocol, and answers in the caller's. A
// stream is asked of it as a whole.
func (p *Provider) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	if req.Rendered || !slices.Contains(p.opts.Kinds, req.Kind) {
		return p.Target.Call(ctx, req)
	}
	said, err := p.request(req.Input)
	if err != nil {
		return onejob.Answer{}, wire.Unfit(err.Error())
	}
	req.Input, req.Chunk = said.Body, nil // it comes whole
	answer, err := p.Target.Call(ctx, req)
	if err != nil {
		return onejob.Answer{}, failed(err, said.Dropped)
	}
	answer.Evidence.DroppedParams = joined(answer.Evidence.DroppedParams, said.Dropped)
	return p.answer(answer, req.Effect), nil
}

func (p *Provider) request(input []byte) (Request, error) {
	if p.opts.Speaks == Messages {
		return ToMessages(input)
	}
	return ToChat(input)
}

// answer is what the target said, in the caller's protocol. What cannot be said there
// was made and paid for. It is as good as failed where that costs money only; under any
// other effect its result is lost.
func (p *Provider) answer(a onejob.Answer, effect onejob.Effect) onejob.Answer {
	if a.Outcome != "" && a.Outcome != onejob.OutcomeSucceeded {
		return a
	}
	var body []byte
	var err error
	if p.opts.Speaks == Messages {
		body, err = ToCompletion(a.Body, p.opts.NowFunc())
	} else {
		body, err = ToMessage(a.Body)
	}
	if err != nil {
		a.Outcome, a.Body, a.ContentType = onejob.OutcomeResultLost, nil, ""
		if effect == onejob.EffectNone {
			a.Outcome, a.Next = onejob.OutcomeExecutedFailed, onejob.NextElsewhere
		}
		a.Failure = &onejob.Failure{Code: "answer_unusable", Message: "the answer cannot be said in the caller's API: " + err.Error()}
		return a
	}
	a.Body, a.ContentType = body, "application/json"
	return a
}

// failed is the target's error. What it will not take of a translated request says
// nothing of the caller's, which the next target may take.
func failed(err error, dropped []string) error {
	var told *onejob.CallError
	if !errors.As(err, &told) {
		return err
	}
	if told.Next == onejob.NextNowhere {
		told.Next = onejob.NextElsewhere
	}
	told.Evidence.DroppedParams = joined(told.Evidence.DroppedParams, dropped)
	return err
}

// joined adds names to those that the target itself left out.
func joined(there string, names []string) string {
	if there != "" {
		names = append(strings.Split(there, ","), names...)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// ReadOutput reads an answer in either protocol.
func (p *Provider) ReadOutput(body []byte) (onejob.Output, error) {
	translated := wire.HasMember(body, "choices")
	if p.opts.Speaks == Chat {
		translated = string(wire.Member(body, "type")) == `"message"`
	}
	if !translated {
		return p.Target.ReadOutput(body)
	}
	back, err := p.back(body)
	if err != nil {
		return onejob.Output{}, err
	}
	return p.Target.ReadOutput(back)
}

// back is a translated answer in the target's own protocol.
func (p *Provider) back(body []byte) ([]byte, error) {
	if p.opts.Speaks == Messages {
		return ToMessage(body)
	}
	return ToCompletion(body, p.opts.NowFunc())
}
