// Package openai calls the chat completions, responses, embeddings or images API of
// OpenAI, and of the many servers that speak them.
//
// The input of a job is the body of a request. Its model is replaced by the
// target's; every other byte is left as it is. An answer that is asked for as a stream
// is shown as it comes ([onejob.Request.Chunk]), and counts only when it is whole.
//
// A response can be made in the background: the provider answers at once with an
// id and is asked by it until it is done. See [Options.Background].
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// API is one of the APIs that a model is called by.
type API string

const (
	// APIChat is chat completions.
	APIChat API = "chat"
	// APIResponses is responses, which are kept by the provider and can be looked up.
	APIResponses API = "responses"
	// APIEmbeddings makes vectors of texts. It takes no prompt.
	APIEmbeddings API = "embeddings"
	// APIImages makes images. It takes no [onejob.Prompt]: its text is in its input.
	APIImages API = "images"
)

// paths is where the APIs are, below the base URL.
var paths = map[API]string{
	APIChat: "/chat/completions", APIResponses: "/responses", APIEmbeddings: "/embeddings", APIImages: "/images/generations",
}

// prompted reports whether the API takes a prompt and answers with a text.
func (a API) prompted() bool { return a == APIChat || a == APIResponses }

// Options of a [Provider]. Model is required, APIKey unless BaseURL is given.
type Options struct {
	BaseURL string // without the API's path, such as /chat/completions. Empty: [DefaultBaseURL]
	Model   string
	APIKey  onejob.Secret // empty: no Authorization is sent

	// API is what is called. Empty: [APIResponses] with Background, else [APIChat].
	API API
	// Background asks for responses that go on without a connection. The input is
	// sent with background and store true, and refused where it says otherwise.
	Background bool

	Organization string // empty: not sent
	Project      string // empty: not sent

	Price    wire.TokenPrice // zero: no price is told
	Outcomes []wire.Rule     // override what an answer proves

	// Map says which member of the body a parameter of a prompt goes to (dots go
	// inside), or "drop", in place of what the API usually takes. A schema is written
	// as response_format and text.format want it, elsewhere as it is. In an input that is
	// a caller's own body it moves or drops the members that it names, and no others.
	Map map[string]string
	// MinTemperature is the least that the model takes.
	MinTemperature float64
	// Pinned says that Model names a snapshot that never changes.
	Pinned bool
	// SelfHosted says that the server is one's own: what it says of its build is one,
	// and its schemas take limits of numbers and lengths.
	SelfHosted bool
	// ContextTokens is how long the prompt and its answer may be. Zero: not known.
	ContextTokens int
	// Upstream names the providers that an aggregator may ask; others are forbidden.
	// Empty: nothing is said. An input that says otherwise is overruled.
	Upstream []string
	// Tokenizer says how tokens are counted: remote, vllm or llama.cpp by the target;
	// tiktoken:o200k_base, tiktoken:cl100k_base or file:PATH (of a tokenizer.json) here.
	// Empty: remote with [APIResponses], else not at all.
	Tokenizer string

	MaxResponseBytes int64         // zero or less: [wire.DefaultMaxResponseBytes]
	DialTimeout      time.Duration // zero or less: [wire.DefaultDialTimeout]
	NowFunc          func() time.Time
}

// Provider calls one model. It is safe for concurrent use.
type Provider struct {
	opts    Options
	base    string // of the URL
	url     string
	model   json.RawMessage
	carrier *prompt.Carrier
	moves   map[string]string // of the caller's parameters
	client  *wire.Client
	reading wire.Reading // of what a call is answered
	asked   wire.Reading // of what a look-up is answered, which no rules are about
}

// New makes the provider of one model. All that is wrong with opts is returned
// at once, as [onejob.CodeInvalidArgument].
func New(opts Options) (*Provider, error) {
	if opts.API == "" && opts.Background {
		opts.API = APIResponses
	}
	opts.API = cmp.Or(opts.API, APIChat)
	base := strings.TrimRight(cmp.Or(opts.BaseURL, DefaultBaseURL), "/")
	rules, err := wire.NewRules(opts.Outcomes)
	carrier, mapErr := opts.carrier()
	if err = errors.Join(err, opts.check(base), mapErr); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid target: " + err.Error(), Err: err}
	}
	model, err := json.Marshal(opts.Model)
	if err != nil {
		return nil, err
	}
	p := &Provider{opts: opts, base: base, url: base + paths[opts.API], model: model, carrier: carrier, moves: carrier.Moves()}
	p.client = wire.New(wire.Options{
		MaxResponseBytes: opts.MaxResponseBytes, DialTimeout: opts.DialTimeout,
		Secrets: []onejob.Secret{opts.APIKey}, NowFunc: opts.NowFunc,
	})
	p.asked = wire.Reading{InspectFunc: inspect, PriceFunc: p.price, NowFunc: opts.NowFunc}
	switch opts.API {
	case APIResponses:
		p.asked.InspectFunc, p.asked.IDFunc = inspectResponse, idOf
	case APIEmbeddings:
		p.asked.InspectFunc = inspectList("embedding")
	case APIImages:
		p.asked.InspectFunc = inspectList("b64_json", "url")
	case APIChat: // as it is
	}
	p.reading = p.asked
	p.reading.Rules = rules
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
	if o.APIKey == "" && o.BaseURL == "" {
		errs = append(errs, errors.New("api_key is required"))
	}
	if paths[o.API] == "" {
		errs = append(errs, fmt.Errorf("api: there is no %q; there are %s, %s, %s and %s", o.API, APIChat, APIResponses, APIEmbeddings, APIImages))
	}
	if o.Background && o.API != APIResponses {
		errs = append(errs, errors.New("background: only api responses works in the background"))
	}
	if o.Background && (o.Map["background"] != "" || o.Map["store"] != "") {
		errs = append(errs, errors.New("map: with background the members background and store are this adapter's"))
	}
	if wire.Accepts(o.Outcomes) && o.API != APIResponses {
		errs = append(errs, errors.New("outcomes: class accepted needs api responses: nothing else can be looked up"))
	}
	if strings.ContainsAny(o.APIKey.Reveal()+o.Organization+o.Project, "\r\n\x00") {
		errs = append(errs, errors.New("api_key, organization or project has control characters"))
	}
	errs = append(errs, prompt.CheckTarget(o.ContextTokens, o.Upstream), o.Price.Check())
	return errors.Join(append(errs, prompt.CheckTokenizer(o.Tokenizer, prompt.CountRemote, prompt.CountVLLM, prompt.CountLlama))...)
}

// Digest addresses the configuration by content, secrets left out. The tokenizer is
// not in it: it changes nothing that is sent, and paths differ between machines.
func (p *Provider) Digest() string {
	o := p.opts
	return wire.Digest("openai", p.url, o.Model, o.Organization, o.Project, o.Outcomes, o.Background,
		renderVersion, p.carrier.MapDigest(), o.MinTemperature, o.Pinned, o.SelfHosted, o.ContextTokens, o.Upstream)
}

// Call asks for one completion or response.
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
		m.Assembler = p.opts.API.assembler()
		m.Header.Set("Accept", wire.EventStream)
	}
	answer, err := p.reading.Read(p.client.Send(ctx, req, m))
	return wire.WithDropped(answer, err, dropped)
}

// Close drops the idle connections.
func (p *Provider) Close() { p.client.Close() }

// body is the input under the target's model, and to the upstreams that it may ask. It
// reports whether the answer is to come as a stream.
func (p *Provider) body(input []byte) (body []byte, streams bool, err error) {
	body, streams, err = wire.Address(input, p.model, p.opts.Upstream)
	if err == nil && streams && (p.opts.Background || !p.opts.API.prompted()) {
		return nil, false, errors.New("the input asks for a stream, which this target does not make; leave stream out")
	}
	if err == nil && p.opts.Background {
		body, err = background(body)
	}
	return body, streams, err
}

func (p *Provider) header(req onejob.Request) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"onejob"}}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	if p.opts.APIKey != "" {
		h.Set("Authorization", "Bearer "+p.opts.APIKey.Reveal())
	}
	set("Openai-Organization", p.opts.Organization)
	set("Openai-Project", p.opts.Project)
	set("Idempotency-Key", req.ProviderKey)
	return h
}

// inspect holds a completion to what was promised: choices, each with a message
// and the reason why it ended.
func inspect(s *wire.Seen) {
	wire.SaysFailed(s)
	if s.Finding != "" {
		return
	}
	object, _ := s.JSON.(map[string]any)
	choices, ok := object["choices"].([]any)
	switch {
	case !ok:
		s.Finding, s.Detail = wire.FindingUnusable, "the completion has no choices"
	case len(choices) == 0:
		s.Finding, s.Detail = wire.FindingFailed, "the list of choices is empty"
	}
	for _, choice := range choices {
		inspectChoice(s, choice)
	}
}

func inspectChoice(s *wire.Seen, choice any) {
	c, _ := choice.(map[string]any)
	_, hasMessage := c["message"].(map[string]any)
	reason, _ := c["finish_reason"].(string)
	switch {
	case reason == "error":
		s.Finding, s.Detail = wire.FindingFailed, "a choice ended with an error"
	case s.Finding == "" && reason == "":
		s.Finding, s.Detail = wire.FindingUnusable, "a choice has no finish_reason"
	case s.Finding == "" && !hasMessage:
		s.Finding, s.Detail = wire.FindingUnusable, "a choice has no message"
	}
}

// price counts cached tokens as any others.
func (p *Provider) price(s *wire.Seen) wire.Price {
	object, _ := s.JSON.(map[string]any)
	model, _ := object["model"].(string)
	price := wire.Price{Usage: wire.Member(s.Document(), "usage"), Model: model}
	if price.Usage == nil {
		return price
	}
	usage := object["usage"]
	input, output := "prompt_tokens", "completion_tokens"
	if p.opts.API == APIResponses || p.opts.API == APIImages {
		input, output = "input_tokens", "output_tokens"
	}
	micros, told := p.opts.Price.Micros(wire.Count(usage, input), wire.Count(usage, output))
	if told {
		price.CostMicros, price.Currency = micros, p.opts.Price.Currency
	}
	return price
}
