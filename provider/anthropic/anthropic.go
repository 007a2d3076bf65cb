// Package anthropic calls Anthropic's messages API.
//
// The input of a job is the body of a request. Its model is replaced by the
// target's and max_tokens is filled in when it is missing; every other byte is
// left as it is. An answer that is asked for as a stream is shown as it comes
// ([onejob.Request.Chunk]), and counts only when it is whole.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// Defaults of [Options].
const (
	DefaultBaseURL = "https://api.anthropic.com"
	DefaultVersion = "2023-06-01"
)

// Options of a [Provider]. Model and APIKey are required.
type Options struct {
	BaseURL string // without /v1/messages. Empty: [DefaultBaseURL]
	Version string // of the API. Empty: [DefaultVersion]
	Model   string
	APIKey  onejob.Secret

	// MaxTokens is for inputs that name none. Zero: they are sent without, and
	// refused by the provider.
	MaxTokens int64

	Price    wire.TokenPrice // zero: no price is told
	Outcomes []wire.Rule     // override what an answer proves

	// Map says which member of the body a parameter of a prompt goes to (dots go
	// inside), or "drop", in place of what the API usually takes. In an input that is a
	// caller's own body it moves or drops the members that it names, and no others.
	Map map[string]string
	// MinTemperature is the least that the model takes.
	MinTemperature float64
	// Pinned says that Model names a snapshot that never changes.
	Pinned bool
	// SelfHosted says that the server is one's own; its schemas take limits of numbers
	// and lengths.
	SelfHosted bool
	// ContextTokens is how long the prompt and its answer may be. Zero: not known.
	ContextTokens int
	// Upstream names the providers that an aggregator may ask; others are forbidden.
	// Empty: nothing is said. An input that says otherwise is overruled.
	Upstream []string
	// Tokenizer says how tokens are counted: remote by the target;
	// tiktoken:o200k_base, tiktoken:cl100k_base or file:PATH (of a tokenizer.json) here.
	// Empty: remote.
	Tokenizer string

	MaxResponseBytes int64         // zero or less: [wire.DefaultMaxResponseBytes]
	DialTimeout      time.Duration // zero or less: [wire.DefaultDialTimeout]
	NowFunc          func() time.Time
}

// Provider calls one model. It is safe for concurrent use.
type Provider struct {
	opts    Options
	url     string
	model   json.RawMessage
	carrier *prompt.Carrier
	moves   map[string]string // of the caller's parameters
	client  *wire.Client
	reading wire.Reading
}

// New makes the provider of one model. All that is wrong with opts is returned
// at once, as [onejob.CodeInvalidArgument].
func New(opts Options) (*Provider, error) {
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(opts.BaseURL, DefaultBaseURL), "/"), "/v1")
	opts.Version = cmp.Or(opts.Version, DefaultVersion)
	rules, err := wire.NewRules(opts.Outcomes)
	carrier, mapErr := prompt.NewCarrier(protocol, prompt.Options{Map: opts.Map, MinTemperature: opts.MinTemperature, Bounds: opts.SelfHosted})
	if err = errors.Join(err, opts.check(base), mapErr); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid target: " + err.Error(), Err: err}
	}
	model, err := json.Marshal(opts.Model)
	if err != nil {
		return nil, err
	}
	p := &Provider{opts: opts, url: base + "/v1/messages", model: model, carrier: carrier, moves: carrier.Moves()}
	p.client = wire.New(wire.Options{
		MaxResponseBytes: opts.MaxResponseBytes, DialTimeout: opts.DialTimeout,
		Secrets: []onejob.Secret{opts.APIKey}, NowFunc: opts.NowFunc,
	})
	p.reading = wire.Reading{Rules: rules, InspectFunc: inspect, PriceFunc: p.price, NowFunc: opts.NowFunc}
	return p, nil
}

func (o Options) check(base string) error {
	var errs []error
	if err := wire.CheckURL(base); err != nil {
		errs = append(errs, fmt.Errorf("base_url: %w", err))
	}
	if o.Model == "" {
		errs = append(errs, errors.New("model is required"))
	}
	if o.APIKey == "" {
		errs = append(errs, errors.New("api_key is required"))
	}
	if wire.Accepts(o.Outcomes) {
		errs = append(errs, errors.New("outcomes: class accepted: a message cannot be looked up"))
	}
	if strings.ContainsAny(o.APIKey.Reveal()+o.Version, "\r\n\x00") {
		errs = append(errs, errors.New("api_key or version has control characters"))
	}
	if o.MaxTokens < 0 {
		errs = append(errs, errors.New("max_tokens is negative"))
	}
	errs = append(errs, prompt.CheckTarget(o.ContextTokens, o.Upstream), prompt.CheckTokenizer(o.Tokenizer, prompt.CountRemote))
	return errors.Join(append(errs, o.Price.Check())...)
}

// Digest addresses the configuration by content, secrets left out. The tokenizer is
// not in it: it changes nothing that is sent, and paths differ between machines.
func (p *Provider) Digest() string {
	o := p.opts
	return wire.Digest("anthropic", p.url, o.Version, o.Model, o.MaxTokens, o.Outcomes,
		renderVersion, p.carrier.MapDigest(), o.MinTemperature, o.Pinned, o.SelfHosted, o.ContextTokens, o.Upstream)
}

// Call asks for one message.
func (p *Provider) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	input, dropped, err := wire.Fit(req, p.moves)
	if err != nil {
		return onejob.Answer{}, err
	}
	body, streams, err := p.body(input)
	if err != nil {
		return onejob.Answer{}, wire.Unsent("input_refused", err.Error())
	}
	m := wire.Message{URL: p.url, Header: p.header(req), Body: body, KeySent: req.ProviderKey != ""}
	if streams {
		m.Assembler = &messageStream{}
		m.Header.Set("Accept", wire.EventStream)
	}
	answer, err := p.reading.Read(p.client.Send(ctx, req, m))
	return wire.WithDropped(answer, err, dropped)
}

// Close drops the idle connections.
func (p *Provider) Close() { p.client.Close() }

// body is the input under the target's model, with a bound on its length, and to the
// upstreams that it may ask. It reports whether the answer is to come as a stream.
func (p *Provider) body(input []byte) (body []byte, streams bool, err error) {
	body, streams, err = wire.Address(input, p.model, p.opts.Upstream)
	if err == nil && p.opts.MaxTokens != 0 && !wire.HasMember(body, "max_tokens") {
		body, err = wire.WithMember(body, "max_tokens", strconv.AppendInt(nil, p.opts.MaxTokens, 10))
	}
	return body, streams, err
}

// header carries the provider key although the API does not promise to honour
// it: gateways in between may.
func (p *Provider) header(req onejob.Request) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"onejob"},
		"Anthropic-Version": {p.opts.Version}, "X-Api-Key": {p.opts.APIKey.Reveal()},
	}
	if req.ProviderKey != "" {
		h.Set("Idempotency-Key", req.ProviderKey)
	}
	return h
}

// inspect holds a message to what was promised: content, and the reason why it
// ended.
func inspect(s *wire.Seen) {
	object, _ := s.JSON.(map[string]any)
	kind, _ := object["type"].(string)
	reason, _ := object["stop_reason"].(string)
	_, hasContent := object["content"].([]any)
	wire.SaysFailed(s)
	switch {
	case s.Finding != "":
	case kind == "error":
		s.Finding = wire.FindingFailed
	case reason == "":
		s.Finding, s.Detail = wire.FindingUnusable, "the message has no stop_reason"
	case !hasContent:
		s.Finding, s.Detail = wire.FindingUnusable, "the message has no content"
	}
}

// price counts tokens written to and read from a cache as any others.
func (p *Provider) price(s *wire.Seen) wire.Price {
	object, _ := s.JSON.(map[string]any)
	model, _ := object["model"].(string)
	price := wire.Price{Usage: wire.Member(s.Document(), "usage"), Model: model}
	if price.Usage == nil {
		return price
	}
	var input int64
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		input += wire.Count(object["usage"], name)
	}
	if micros, told := p.opts.Price.Micros(input, wire.Count(object["usage"], "output_tokens")); told {
		price.CostMicros, price.Currency = micros, p.opts.Price.Currency
	}
	return price
}
