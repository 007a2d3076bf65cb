package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/openai"
)

// Accepted recognises that the provider took the work and answers later.
type Accepted struct {
	When string `yaml:"when" default:"status == 202" doc:"A CEL condition over status, headers and body."`
	ID   string `yaml:"id" required:"true" doc:"A CEL expression: the provider's own id for the work, as in body.id."`
}

// Lookup asks the provider about an attempt.
type Lookup struct {
	URL           string   `yaml:"url" required:"true" doc:"Where to ask, by GET, with {id} (the provider's own), {key}, {job_id} or {attempt_id} in it. What is found by key or job may be an earlier attempt's, so only its success counts."`
	Authoritative bool     `yaml:"authoritative" default:"false" doc:"A 404 by {id} or {attempt_id} proves that nothing happened, once max_execution has passed. One that is a page of HTML does not: proxies make such."`
	Every         Duration `yaml:"every" default:"2s" min:"100ms" max:"1h" doc:"The pause after the first question. It grows to 5m."`
	Running       string   `yaml:"running" doc:"A CEL condition: the work goes on."`
	Succeeded     string   `yaml:"succeeded" required:"true" doc:"A CEL condition: the work succeeded."`
	Failed        string   `yaml:"failed" doc:"A CEL condition: the work was done and failed. It needs {id} or {attempt_id} in url."`
	ResultURL     string   `yaml:"result_url" doc:"Where the result of work that succeeded is fetched, as url; refused there, it failed. Absent: it is in the answer."`
	Result        string   `yaml:"result" default:"body" doc:"A CEL expression: the result."`
}

// Cancel asks the provider to give an attempt up.
type Cancel struct {
	Method string `yaml:"method" default:"POST" enum:"POST|PUT|PATCH|GET|DELETE" doc:"The HTTP method."`
	URL    string `yaml:"url" required:"true" doc:"As lookup.url."`
}

// Callback reads what the provider reports by itself.
type Callback struct {
	Succeeded string `yaml:"succeeded" required:"true" doc:"A CEL condition over headers and body: the work succeeded."`
	Failed    string `yaml:"failed" doc:"A CEL condition: the work was done and failed."`
	Result    string `yaml:"result" default:"body" doc:"A CEL expression: the result."`

	Signature *Signature `yaml:"signature" doc:"How the provider signs its reports, which is checked first. Absent: the token in callback_url alone is trusted."`
}

// Signature says how a provider signs its reports.
type Signature struct {
	Algorithm string `yaml:"algorithm" default:"hmac-sha256" enum:"hmac-sha256|standard-webhooks" doc:"hmac-sha256 signs the body. standard-webhooks signs webhook-id, webhook-timestamp and the body, no older than 5m."`
	Secret    Secret `yaml:"secret" required:"true" doc:"What the provider signs with; ${env:NAME} and ${file:/path} are resolved."`
	OldSecret Secret `yaml:"old_secret" doc:"Taken as well, while the provider still signs with it. Absent: none is."`
	Header    string `yaml:"header" doc:"The header that carries the signature. hmac-sha256 needs it."`
	Encoding  string `yaml:"encoding" enum:"hex|base64" doc:"How hmac-sha256 is written in the header. Absent: hex."`
	Prefix    string `yaml:"prefix" doc:"What stands before the signature in the header, as in sha256=. Absent: nothing."`
}

func (s *Signature) options() *httpcall.Signature {
	if s == nil {
		return nil
	}
	return &httpcall.Signature{
		Algorithm: httpcall.Algorithm(s.Algorithm), Secret: s.Secret.Value, OldSecret: s.OldSecret.Value,
		Header: s.Header, Encoding: s.Encoding, Prefix: s.Prefix,
	}
}

// Replay says that the same request under the same key has one effect.
type Replay struct {
	Safe bool     `yaml:"safe" default:"false" doc:"The provider promises one effect for each key, so that an unknown attempt may be sent again to find out."`
	For  Duration `yaml:"for" min:"1s" max:"3650d" doc:"For how long it promises so. Absent: nothing is sent again."`
}

// asynchronous adds what only targets have that can be asked.
func (t *HTTPTarget) asynchronous(o *httpcall.Options) {
	if a := t.Accepted; a != nil {
		o.Accepted = &httpcall.Accepted{When: a.When, ID: a.ID}
	}
	if l := t.Lookup; l != nil {
		o.Lookup = &httpcall.Lookup{
			URL: l.URL, Authoritative: l.Authoritative,
			Running: l.Running, Succeeded: l.Succeeded, Failed: l.Failed, ResultURL: l.ResultURL, Result: l.Result,
		}
	}
	if x := t.Cancel; x != nil {
		o.Cancel = &httpcall.Cancel{Method: x.Method, URL: x.URL}
	}
	if b := t.Callback; b != nil {
		o.Callback = &httpcall.Callback{Succeeded: b.Succeeded, Failed: b.Failed, Result: b.Result, Signature: b.Signature.options()}
	}
}

// reconcile says how attempts at the target can be found out about.
func (t *Target) reconcile() onejob.Reconcile {
	switch {
	case t.OpenAI != nil:
		return t.OpenAI.reconcile()
	case t.HTTP == nil:
		return onejob.Reconcile{}
	}
	r := onejob.Reconcile{Callback: t.HTTP.Callback != nil}
	if l := t.HTTP.Lookup; l != nil {
		r.Lookup = strings.Contains(l.URL, "{id}")
		r.Search = !r.Lookup
		r.ByAttempt = strings.Contains(l.URL, "{attempt_id}")
		r.Authoritative = l.Authoritative
		r.Every = time.Duration(l.Every)
	}
	if p := t.HTTP.Replay; p != nil {
		r.ReplaySafe, r.ReplayFor = p.Safe, time.Duration(p.For)
	}
	return r
}

// keepsResponses reports whether what the target makes can be looked up.
func (t *OpenAITarget) keepsResponses() bool {
	return t.API == string(openai.APIResponses) || t.API == "" && t.Background
}

func (t *OpenAITarget) reconcile() onejob.Reconcile {
	r := onejob.Reconcile{Lookup: t.keepsResponses()}
	if l := t.Lookup; l != nil {
		r.Authoritative, r.Every = l.Authoritative, time.Duration(l.Every)
	}
	return r
}

func (t *OpenAITarget) check(d *decoder, path string) {
	checkURL(d, path+".base_url", t.BaseURL)
	if t.Lookup != nil && !t.keepsResponses() {
		d.fault(path+".lookup", "only responses can be looked up: set api: responses, or take it out")
	}
}

// checkAsynchronous finds what does not make sense together.
func (t *HTTPTarget) checkAsynchronous(d *decoder, path, publicURL string) {
	usesURL := usesCallback.MatchString(t.Request.Body)
	switch {
	case usesURL && publicURL == "":
		d.fault(path+".request.body", "callback_url needs public_url at the top, where the provider can reach this server")
	case usesURL && t.Callback == nil:
		d.fault(path+".request.body", "callback_url needs callback, which reads what the provider reports")
	case t.Callback != nil && !usesURL:
		d.fault(path+".callback", "the request's body does not tell the provider where to report: put {{ callback_url }} in it")
	case usesURL && t.Replay != nil && t.Replay.Safe:
		d.fault(path+".replay", "a body with callback_url may change, so it is not sent again: take one of them out")
	}
	for i, o := range t.Outcomes {
		if o.Class == string(onejob.OutcomeAccepted) && t.Accepted == nil {
			d.fault(fmt.Sprintf("%s.outcomes[%d].class", path, i), "accepted needs accepted.id, which finds the provider's own id for the work")
		}
	}
	if t.Accepted != nil && t.Lookup == nil && t.Callback == nil {
		d.fault(path+".accepted", "nobody would hear how the work ended: add lookup or callback")
	}
	if t.Lookup != nil && strings.Contains(t.Lookup.URL, "{id}") && t.Accepted == nil {
		d.fault(path+".lookup.url", "{id} is the provider's own, which accepted.id finds: add accepted, or ask by {attempt_id}, {job_id} or {key}")
	}
	if t.Replay != nil && t.Replay.Safe && t.IdempotencyHeader == "" && !usesKey.MatchString(t.Request.Body) {
		d.fault(path+".replay", "the provider gets no key: add idempotency_header, or provider_key to the body")
	}
}

// warnOfTarget says where a setting does less than it seems to.
func (c *Config) warnOfTarget(name string, t *Target) {
	r := t.reconcile()
	switch {
	case !r.Authoritative:
	case t.maxExecution() == 0:
		c.warn("targets.%s: lookup.authoritative does nothing without max_execution, since the work may still begin", name)
	case !r.Lookup && !r.ByAttempt:
		c.warn("targets.%s: lookup.authoritative does nothing, since lookup.url names neither {id} nor {attempt_id}", name)
	}
}
