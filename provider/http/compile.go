package httpcall

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob/provider/wire"
)

// compile checks the options and prepares what they say, collecting every fault.
func (p *Provider) compile() error {
	o := &p.opts
	var c collector
	c.add(o.checkMethod())
	c.addIn("url", wire.CheckURL(o.URL))
	c.add(o.checkHeaders())
	if o.Body != "" {
		var err error
		p.body, err = compileTemplate(o.Body, p.header.Get("Content-Type"))
		c.addIn("body", err)
	}
	rules, err := wire.NewRules(o.Outcomes)
	c.add(err)
	p.plan.cost = c.expression("cost", o.Cost)
	p.plan.usage = c.expression("usage", o.Usage)
	c.check(o.Currency == "" || o.Cost != "", "currency: there is no cost")
	c.asynchronous(o, &p.plan)
	c.check(!wire.Accepts(o.Outcomes) || o.Accepted != nil, "outcomes: class accepted needs accepted.id, which finds the provider's own id for the work")
	p.reading = wire.Reading{
		MediaType: o.ResultType, Rules: rules, InspectFunc: p.inspect, IDFunc: p.acceptedID, PriceFunc: p.price, NowFunc: o.NowFunc,
	}
	return errors.Join(c.errs...)
}

// collector gathers faults.
type collector struct{ errs []error }

func (c *collector) add(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *collector) addIn(where string, err error) {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", where, err))
	}
}

func (c *collector) check(good bool, format string, args ...any) {
	if !good {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// expression compiles text; empty text is no expression.
func (c *collector) expression(where, text string) *wire.Expression {
	if text == "" {
		return nil
	}
	e, err := wire.Compile(text)
	c.addIn(where, err)
	return e
}

func (c *collector) condition(where, text string) *wire.Expression {
	if text == "" {
		return nil
	}
	e, err := wire.CompileCondition(text)
	c.addIn(where, err)
	return e
}

var methods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet}

func (o *Options) checkMethod() error {
	if !slices.Contains(methods, o.Method) {
		return fmt.Errorf("method: %q is none of %s", o.Method, strings.Join(methods, ", "))
	}
	return nil
}

// ownHeaders are written by the connection itself.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade", "Expect", "Te"}

func (o *Options) checkHeaders() error {
	var c collector
	seen := map[string]bool{}
	check := func(name, value string) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		c.check(isToken(name), "headers: %q is no header name", name)
		c.check(!slices.Contains(ownHeaders, canonical), "headers: %s cannot be set", canonical)
		c.check(!strings.ContainsFunc(value, isControl), "headers: the value of %s has control characters", canonical)
		c.check(!seen[canonical], "headers: %s is given twice", canonical)
		seen[canonical] = true
	}
	for name, value := range o.Headers {
		check(name, value)
	}
	for name, value := range o.SecretHeaders {
		check(name, value.Reveal())
		c.check(value.Reveal() != "", "headers: the secret %s is empty", name)
	}
	if o.IdempotencyHeader != "" {
		check(o.IdempotencyHeader, "")
	}
	return errors.Join(c.errs...)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isToken reports whether name is a token of RFC 9110.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
