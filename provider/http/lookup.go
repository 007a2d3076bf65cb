package httpcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

// Accepted recognises an asynchronous submit.
type Accepted struct {
	When string // condition; empty: status == 202
	ID   string // the provider's own id for the work; required
}

// Lookup asks the provider about an attempt by GET.
type Lookup struct {
	// URL with {id}, {key}, {job_id} or {attempt_id} where the names go, escaped.
	URL string
	// Authoritative says that a 404 proves that nothing happened. One that is a page of
	// HTML does not.
	Authoritative bool
	Running       string // condition
	Succeeded     string // condition; required
	// Failed is a condition. It counts only when URL names {id} or {attempt_id}:
	// what is found under a key or a job can be an earlier attempt's.
	Failed string
	// ResultURL is where the result of work that succeeded is fetched by GET, as URL.
	// A plain refusal there says that the work failed after all. Empty: the result is
	// in the look-up's own answer.
	ResultURL string
	Result    string // expression; empty: body
}

// Callback reads what the provider reports by itself.
type Callback struct {
	Succeeded string // condition; required
	Failed    string // condition
	Result    string // expression; empty: body
	// Signature is checked ahead of all that. Nil: the URL alone is trusted.
	Signature *Signature
}

// Cancel asks the provider to give an attempt up.
type Cancel struct {
	Method string // empty: POST
	URL    string // as [Lookup.URL]
}

var (
	_ onejob.Prober    = (*Provider)(nil)
	_ onejob.Canceller = (*Provider)(nil)
)

// Errors of a probe that resolves nothing.
var (
	errNotFoundProvesNothing = errors.New("not found, which proves nothing at this target")
	errNotFoundByPage        = errors.New("not found, said by a page of HTML, which is not the provider's word")
	errOtherWork             = errors.New("the provider answered about other work")
	errNoState               = errors.New("the answer fits no single state")
	errNoName                = errors.New("the attempt has no provider id to ask about")
)

// Probe looks the attempt up. Without a [Lookup] it returns [errors.ErrUnsupported].
func (p *Provider) Probe(ctx context.Context, req onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
	if p.plan.lookup == nil {
		return onejob.ProbeAnswer{}, errors.ErrUnsupported
	}
	s, err := p.ask(ctx, http.MethodGet, p.opts.Lookup.URL, req)
	if err != nil {
		return onejob.ProbeAnswer{}, err
	}
	switch {
	case s.Status == http.StatusNotFound && !p.opts.Lookup.Authoritative:
		return onejob.ProbeAnswer{}, errNotFoundProvesNothing
	case s.Status == http.StatusNotFound && isPage(s):
		return onejob.ProbeAnswer{}, errNotFoundByPage
	case s.Status == http.StatusNotFound:
		return onejob.ProbeAnswer{}, nil
	case s.Status < 200 || s.Status > 299 || s.Trouble != "" || !s.IsJSON:
		return onejob.ProbeAnswer{}, failureOf(s)
	}
	id, err := p.sameWork(s, req)
	if err != nil {
		return onejob.ProbeAnswer{}, err
	}
	a, err := p.plan.lookup.read(s)
	if err != nil {
		return onejob.ProbeAnswer{}, err
	}
	if a.Outcome == onejob.OutcomeSucceeded && p.opts.Lookup.ResultURL != "" {
		if a, s, err = p.fetch(ctx, req); err != nil {
			return onejob.ProbeAnswer{}, err
		}
	}
	a.ProviderID = id
	return onejob.ProbeAnswer{Found: true, Answer: p.priced(a, s)}, nil
}

// isPage reports whether an answer is for people to look at, as proxies and gateways
// make them where nobody is behind.
func isPage(s *wire.Seen) bool {
	media, _, _ := mime.ParseMediaType(s.Header.Get("Content-Type"))
	return media == "text/html" || media == "application/xhtml+xml"
}

// saysNothingOfTheWork are refusals of a result that are about our request.
var saysNothingOfTheWork = []int{
	http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
	http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests,
}

// fetch gets the result of work that the provider says is done. Some say so of
// work that failed, and show it only here.
func (p *Provider) fetch(ctx context.Context, req onejob.ProbeRequest) (onejob.Answer, *wire.Seen, error) {
	s, err := p.ask(ctx, http.MethodGet, p.opts.Lookup.ResultURL, req)
	if err != nil {
		return onejob.Answer{}, nil, err
	}
	a := onejob.Answer{Evidence: s.Evidence, Phase: onejob.PhaseAnswered}
	switch {
	case s.Trouble == "" && s.IsJSON && s.Status >= 400 && s.Status < 500 && !slices.Contains(saysNothingOfTheWork, s.Status):
		a.Outcome, a.Next = onejob.OutcomeExecutedFailed, onejob.NextElsewhere
		a.Failure = &onejob.Failure{Code: "no_result", Message: s.Sentence("the work is done, and its result was refused")}
		return a, s, nil
	case s.Status < 200 || s.Status > 299 || s.Trouble != "" || !s.IsJSON:
		return onejob.Answer{}, nil, failureOf(s)
	}
	a.Outcome = onejob.OutcomeSucceeded
	return p.plan.lookup.withResult(a, s), s, nil
}

// Cancel asks the provider to give the attempt up. Nil means that it heard, not
// that the work ended. Without a [Cancel] it returns [errors.ErrUnsupported].
func (p *Provider) Cancel(ctx context.Context, req onejob.ProbeRequest) error {
	if p.opts.Cancel == nil {
		return errors.ErrUnsupported
	}
	s, err := p.ask(ctx, cmp.Or(p.opts.Cancel.Method, http.MethodPost), p.opts.Cancel.URL, req)
	if err != nil {
		return err
	}
	if s.Status < 200 || s.Status > 299 {
		return failureOf(s)
	}
	return nil
}

// ReadCallback reads a report that the provider sent about an attempt. Whoever
// calls it has made sure which attempt it is about. Without a [Callback] it
// returns [errors.ErrUnsupported]; a report that settles nothing is an error, and
// one without the right signature [onejob.ErrForged].
func (p *Provider) ReadCallback(header http.Header, body []byte) (onejob.Answer, error) {
	if p.plan.callback == nil {
		return onejob.Answer{}, errors.ErrUnsupported
	}
	if v := p.plan.signature; v != nil {
		if err := v.verify(header, body); err != nil {
			return onejob.Answer{}, err
		}
	}
	s := wire.Received(header, body)
	if !s.IsJSON {
		return onejob.Answer{}, errNoState
	}
	a, err := p.plan.callback.read(s)
	if err != nil {
		return onejob.Answer{}, err
	}
	return p.priced(a, s), nil
}

// ask sends one question about an attempt.
func (p *Provider) ask(ctx context.Context, method, pattern string, req onejob.ProbeRequest) (*wire.Seen, error) {
	target, err := expand(pattern, req)
	if err != nil {
		return nil, err
	}
	header := p.header.Clone()
	header.Del("Content-Type")
	header.Set("Accept", jsonType)
	about := onejob.Request{JobID: req.JobID, AttemptID: req.AttemptID}
	return p.client.Send(ctx, about, wire.Message{Method: method, URL: target, Header: header}), nil
}

// sameWork returns the provider's id for the work that was found, and an error
// when it is another's than the one asked about.
func (p *Provider) sameWork(s *wire.Seen, req onejob.ProbeRequest) (string, error) {
	if p.plan.id == nil {
		return req.ProviderID, nil
	}
	found, err := p.plan.id.AsText(s)
	switch {
	case err != nil || found == "":
		return req.ProviderID, nil
	case req.ProviderID != "" && found != req.ProviderID:
		return "", errOtherWork
	}
	return found, nil
}

func (p *Provider) priced(a onejob.Answer, s *wire.Seen) onejob.Answer {
	price := p.price(s).Bounded(&a.Evidence)
	a.CostMicros, a.Currency, a.Usage = price.CostMicros, price.Currency, price.Usage
	return a
}

func failureOf(s *wire.Seen) error {
	switch {
	case s.Status == 0 && s.Evidence.Error != "":
		return errors.New(s.Evidence.Error)
	case s.Status == 0:
		return errors.New("no answer came")
	}
	return fmt.Errorf("the provider answered %d, which settles nothing", s.Status)
}

// states tell from a body what state the work is in.
type states struct {
	running, succeeded, failed, result *wire.Expression // nil: never
}

// read says what a body tells. It is an error when not exactly one state fits.
func (st *states) read(s *wire.Seen) (onejob.Answer, error) {
	var fits []onejob.Outcome
	for _, state := range []struct {
		when    *wire.Expression
		outcome onejob.Outcome
	}{
		{st.running, onejob.OutcomeAccepted}, {st.succeeded, onejob.OutcomeSucceeded}, {st.failed, onejob.OutcomeExecutedFailed},
	} {
		if state.when != nil && state.when.Holds(s) {
			fits = append(fits, state.outcome)
		}
	}
	if len(fits) != 1 {
		return onejob.Answer{}, errNoState
	}
	a := onejob.Answer{Outcome: fits[0], Evidence: s.Evidence, Phase: onejob.PhaseAnswered}
	switch a.Outcome {
	case onejob.OutcomeSucceeded:
		return st.withResult(a, s), nil
	case onejob.OutcomeExecutedFailed:
		a.Failure, a.Next = &onejob.Failure{Code: "provider_failed", Message: s.Sentence("the provider says that the work failed")}, onejob.NextElsewhere
	default: // accepted: the work goes on
	}
	return a, nil
}

// withResult adds the result, or says that it is lost: the work was done.
func (st *states) withResult(a onejob.Answer, s *wire.Seen) onejob.Answer {
	raw, err := st.result.AsJSON(s)
	if err != nil {
		a.Outcome = onejob.OutcomeResultLost
		a.Failure = &onejob.Failure{Code: "answer_unusable", Message: "the work is done, but its result is not in the answer"}
		return a
	}
	if raw == nil {
		raw = []byte("null")
	}
	a.Body, a.ContentType = raw, jsonType
	return a
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// placeholders are the names of an attempt that a URL may hold.
var placeholders = []string{"{id}", "{key}", "{job_id}", "{attempt_id}"}

// expand fills in a URL. A name is escaped, so that an id of a provider's
// choosing stays one segment of the path.
func expand(pattern string, req onejob.ProbeRequest) (string, error) {
	values := map[string]string{"{id}": req.ProviderID, "{key}": req.ProviderKey, "{job_id}": req.JobID, "{attempt_id}": req.AttemptID}
	missing := false
	expanded := placeholder.ReplaceAllStringFunc(pattern, func(name string) string {
		missing = missing || values[name] == "" || values[name] == "." || values[name] == ".."
		return strings.ReplaceAll(url.QueryEscape(values[name]), "+", "%20")
	})
	if missing {
		return "", errNoName
	}
	return expanded, nil
}

// asynchronous compiles what only asynchronous targets have.
func (c *collector) asynchronous(o *Options, plan *plan) {
	if a := o.Accepted; a != nil {
		plan.acceptedWhen = c.condition("accepted.when", cmp.Or(a.When, "status == 202"))
		plan.id = c.expression("accepted.id", a.ID)
		c.check(a.ID != "", "accepted.id is required")
	}
	if l := o.Lookup; l != nil {
		c.pattern("lookup.url", l.URL)
		c.check(l.Succeeded != "", "lookup.succeeded is required")
		if l.ResultURL != "" {
			c.pattern("lookup.result_url", l.ResultURL)
		}
		names := strings.Contains(l.URL, "{id}") || strings.Contains(l.URL, "{attempt_id}")
		c.check(names || l.Failed == "", "lookup.failed: only a look-up by {id} or {attempt_id} can tell that this attempt failed")
		plan.lookup = c.states("lookup", l.Running, l.Succeeded, l.Failed, l.Result)
	}
	if b := o.Callback; b != nil {
		c.check(b.Succeeded != "", "callback.succeeded is required")
		plan.callback = c.states("callback", "", b.Succeeded, b.Failed, b.Result)
		plan.signature = c.signature(b.Signature, o.NowFunc)
	}
	if x := o.Cancel; x != nil {
		c.pattern("cancel.url", x.URL)
		c.check(x.Method == "" || slices.Contains(methods, x.Method), "cancel.method: %q is none of %s", x.Method, strings.Join(methods, ", "))
	}
}

func (c *collector) states(where, running, succeeded, failed, result string) *states {
	return &states{
		running:   c.condition(where+".running", running),
		succeeded: c.condition(where+".succeeded", succeeded),
		failed:    c.condition(where+".failed", failed),
		result:    c.expression(where+".result", cmp.Or(result, "body")),
	}
}

// pattern checks a URL with placeholders, at least one.
func (c *collector) pattern(where, text string) {
	found := placeholder.FindAllString(text, -1)
	c.check(len(found) > 0, "%s names none of %s", where, strings.Join(placeholders, ", "))
	for _, name := range found {
		c.check(slices.Contains(placeholders, name), "%s: %s is none of %s", where, name, strings.Join(placeholders, ", "))
	}
	sample := placeholder.ReplaceAllString(text, "placeholder")
	c.addIn(where, wire.CheckURL(sample))
	u, err := url.Parse(sample)
	c.check(err != nil || !strings.Contains(u.Host, "placeholder"), "%s: the host is fixed", where)
}
