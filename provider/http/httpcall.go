// Package httpcall calls any HTTP endpoint that is described in the configuration.
package httpcall

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"path"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

const jsonType = "application/json"

// Provider calls one endpoint. It is safe for concurrent use.
type Provider struct {
	opts    Options
	client  *wire.Client
	header  http.Header
	body    *template // nil: the input as it is
	reading wire.Reading
	plan    plan
}

// New makes the provider of one endpoint. All that is wrong with opts is
// returned at once, as [onejob.CodeInvalidArgument].
func New(opts Options) (*Provider, error) {
	opts.Method = cmp.Or(opts.Method, http.MethodPost)
	p := &Provider{opts: opts, header: opts.header()}
	if err := p.compile(); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid target: " + err.Error(), Err: err}
	}
	p.client = wire.New(wire.Options{
		MaxResponseBytes: opts.MaxResponseBytes, DialTimeout: opts.DialTimeout, Secrets: opts.secrets(),
		StreamsBody: opts.StreamsBody, NowFunc: opts.NowFunc,
	})
	return p, nil
}

// Call sends one attempt and reads its answer. An input that the template cannot
// take is not sent, and no other target is asked.
func (p *Provider) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	body, err := p.render(req)
	if err != nil {
		return onejob.Answer{}, wire.Unsent("input_refused", err.Error())
	}
	m := wire.Message{Method: p.opts.Method, URL: p.opts.URL, Header: p.header.Clone(), Body: body}
	m.KeySent = p.body != nil && p.body.usesKey && req.ProviderKey != ""
	if p.body != nil && p.body.usesAttempt && p.opts.CallbackURLFunc != nil {
		m.Secret = onejob.Secret(path.Base(p.opts.CallbackURLFunc(req))) // the token: it speaks for the provider
	}
	if p.opts.IdempotencyHeader != "" && req.ProviderKey != "" {
		m.Header.Set(p.opts.IdempotencyHeader, req.ProviderKey)
		m.KeySent = true
	}
	return p.reading.Read(p.client.Send(ctx, req, m))
}

// Close drops the idle connections.
func (p *Provider) Close() { p.client.Close() }

// render makes the request body.
func (p *Provider) render(req onejob.Request) ([]byte, error) {
	switch {
	case p.body != nil:
		return p.body.render(req, p.opts.CallbackURLFunc)
	case p.opts.Method == http.MethodGet:
		return nil, nil
	}
	return req.Input, nil
}

// header is what every request carries.
func (o Options) header() http.Header {
	h := http.Header{"Content-Type": {jsonType}, "Accept": {cmp.Or(o.ResultType, jsonType)}, "User-Agent": {"onejob"}}
	for name, value := range o.Headers {
		h.Set(name, value)
	}
	for name, value := range o.SecretHeaders {
		h.Set(name, value.Reveal())
	}
	if o.Method == http.MethodGet && o.Body == "" {
		h.Del("Content-Type")
	}
	return h
}

func (o Options) secrets() []onejob.Secret {
	secrets := make([]onejob.Secret, 0, len(o.SecretHeaders))
	for _, s := range o.SecretHeaders {
		secrets = append(secrets, s)
	}
	return secrets
}

// plan holds the compiled expressions.
type plan struct {
	cost, usage      *wire.Expression
	acceptedWhen, id *wire.Expression
	lookup, callback *states   // nil: none
	signature        *verifier // nil: reports are not signed
}

// inspect looks into a complete JSON body of a 2xx answer.
func (p *Provider) inspect(s *wire.Seen) {
	if p.plan.acceptedWhen != nil && p.plan.acceptedWhen.Holds(s) {
		s.Finding = wire.FindingAccepted
		s.ProviderID = p.acceptedID(s)
		return
	}
	wire.SaysFailed(s)
}

// acceptedID finds the provider's own id for work that it took. Empty: there is none.
func (p *Provider) acceptedID(s *wire.Seen) string {
	if p.plan.id == nil {
		return ""
	}
	id, _ := p.plan.id.AsText(s)
	return id
}

// price reads cost and usage. An expression that fails tells nothing.
func (p *Provider) price(s *wire.Seen) wire.Price {
	price := wire.Price{Usage: p.usage(s)}
	if p.plan.cost == nil {
		return price
	}
	if micros, err := p.plan.cost.AsMicros(s); err == nil {
		price.CostMicros, price.Currency = micros, cmp.Or(p.opts.Currency, "USD")
	}
	return price
}

func (p *Provider) usage(s *wire.Seen) json.RawMessage {
	if p.plan.usage != nil {
		raw, _ := p.plan.usage.AsJSON(s)
		return raw
	}
	return wire.Member(s.Body, "usage")
}
