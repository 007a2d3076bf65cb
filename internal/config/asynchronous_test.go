package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
)

const asynchronous = `
public_url: https://onejob.example/
targets:
  acme:
    provider: http
    request:
      url: https://acme.example/v1/charges
      body: '{"hook": {{ callback_url }}, "key": {{ provider_key }}}'
    max_execution: 10m
    accepted: {id: body.id}
    lookup: {url: "https://acme.example/v1/charges/{id}", authoritative: true, every: 5s, running: "body.status == 'processing'", succeeded: "body.status == 'succeeded'", failed: "body.status == 'failed'"}
    cancel: {url: "https://acme.example/v1/charges/{id}/cancel"}
    callback: {succeeded: "body.status == 'succeeded'", signature: {header: X-Signature, prefix: "sha256=", secret: k}}
  stripe:
    provider: http
    request: {url: https://stripe.example/v1/charges}
    idempotency_header: Idempotency-Key
    lookup: {url: "https://stripe.example/search?job={job_id}", succeeded: "body.ok"}
    replay: {safe: true, for: 24h}
  openai: {provider: openai, model: m, api_key: k}
  deep: {provider: openai, model: m, api_key: k, background: true, max_execution: 1h, lookup: {every: 5s, authoritative: true}}
  kept: {provider: openai, model: m, api_key: k, api: responses}
kinds:
  charge: {effect: external, targets: [acme, stripe, openai, deep, kept], failover: never, unknown: {ask_after: 10m}}
`

func TestTargetsSayHowTheyCanBeAsked(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, asynchronous, nil)
	targets, err := c.Targets("a secret of sixteen")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]onejob.Reconcile{}
	for _, target := range targets {
		got[target.Name] = target.Reconcile
	}
	want := map[string]onejob.Reconcile{
		"acme":   {Lookup: true, Authoritative: true, Callback: true, Every: 5 * time.Second},
		"stripe": {Search: true, Every: 2 * time.Second, ReplaySafe: true, ReplayFor: 24 * time.Hour},
		"openai": {},
		"deep":   {Lookup: true, Authoritative: true, Every: 5 * time.Second},
		"kept":   {Lookup: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if after := c.Kinds()["charge"].Policy.AskAfter; after != 10*time.Minute {
		t.Errorf("a person is asked after %s; want 10m", after)
	}
}

func TestAPersonIsAskedAfterAnHourUnlessTheKindSaysOtherwise(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, minimal+"  k: {effect: none, targets: [acme]}\n", nil)
	if after := c.Kinds()["k"].Policy.AskAfter; after != time.Hour {
		t.Errorf("after %s; want 1h", after)
	}
}

func TestThePrintedAsynchronousTargetLoadsAgainAsTheSame(t *testing.T) {
	t.Parallel()

	first := mustLoad(t, asynchronous, nil)
	var out strings.Builder
	if err := first.Print(&out); err != nil {
		t.Fatal(err)
	}
	second := mustLoad(t, strings.ReplaceAll(out.String(), "[redacted]", "k"), nil)
	if diff := cmp.Diff(first.File.Targets["acme"].HTTP.Lookup, second.File.Targets["acme"].HTTP.Lookup); diff != "" {
		t.Errorf("(-first +second)\n%s\n%s", diff, out.String())
	}
}

func TestWhatCannotWorkTogetherIsRefused(t *testing.T) {
	t.Parallel()

	const (
		head  = "public_url: https://o.example\ntargets:\n  a:\n    provider: http\n"
		plain = head + "    request: {url: 'http://x'}\n"
		hook  = head + "    request: {url: 'http://x', body: '{\"u\": {{ callback_url }}}'}\n"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"AcceptedUnheard":          {plain + "    accepted: {id: body.id}\n", "targets.a.accepted: nobody would hear"},
		"LookupByAnIDNobodyHas":    {plain + "    lookup: {url: 'http://x/{id}', succeeded: 'true'}\n", "targets.a.lookup.url: {id} is the provider's own"},
		"FailedByKey":              {plain + "    lookup: {url: 'http://x/{key}', succeeded: 'true', failed: 'false'}\n", "targets.a.lookup.failed: "},
		"LookupWithoutAName":       {plain + "    lookup: {url: 'http://x/y', succeeded: 'true'}\n", "lookup.url names none of"},
		"BadCondition":             {plain + "    lookup: {url: 'http://x/{key}', succeeded: 'body ='}\n", "targets.a.lookup.succeeded: "},
		"ReplayWithoutAKey":        {plain + "    replay: {safe: true, for: 1h}\n", "targets.a.replay: the provider gets no key"},
		"CallbackNobodyIsToldOf":   {plain + "    callback: {succeeded: 'true'}\n", "targets.a.callback: the request's body does not tell"},
		"CallbackURLUnread":        {hook, "targets.a.request.body: callback_url needs callback"},
		"ReplayWithCallback":       {hook + "    callback: {succeeded: 'true'}\n    replay: {safe: true, for: 1h}\n", "targets.a.replay: a body with callback_url"},
		"AcceptedByARuleWithoutID": {plain + "    outcomes: [{when: 'status == 409', class: accepted}]\n", "targets.a.outcomes[0].class: accepted needs accepted.id"},
		"ChatInTheBackground":      {"targets: {a: {provider: openai, model: m, api_key: k, api: chat, background: true}}", "targets.a.background: "},
		"ChatLookedUp":             {"targets: {a: {provider: openai, model: m, api_key: k, lookup: {every: 5s}}}", "targets.a.lookup: only responses can be looked up"},
		"ChatAccepted":             {"targets: {a: {provider: openai, model: m, api_key: k, outcomes: [{when: 'true', class: accepted}]}}", "targets.a.outcomes: class accepted needs api responses"},
		"MessageAccepted":          {"targets: {a: {provider: anthropic, model: m, api_key: k, outcomes: [{when: 'true', class: accepted}]}}", "targets.a.outcomes: class accepted"},
		"RelativePublicURL":        {"public_url: /x\n", "public_url: it is not an absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, err := load(tt.text, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAnAuthorityThatProvesNothingIsWarnedOf(t *testing.T) {
	t.Parallel()

	const target = "targets:\n  a:\n    provider: http\n    request: {url: 'http://x'}\n"
	deep := mustLoad(t, "targets: {a: {provider: openai, model: m, api_key: k, background: true, lookup: {authoritative: true}}}", nil)
	if got := strings.Join(deep.Warnings, "\n"); !strings.Contains(got, "without max_execution") {
		t.Errorf("a background response: warnings %q", got)
	}
	for text, want := range map[string]string{
		"    lookup: {url: 'http://x/{attempt_id}', succeeded: 'true', authoritative: true}\n":                 "without max_execution",
		"    max_execution: 1m\n    lookup: {url: 'http://x/{key}', succeeded: 'true', authoritative: true}\n": "neither {id} nor {attempt_id}",
	} {
		c := mustLoad(t, target+text, nil)
		if got := strings.Join(c.Warnings, "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q; want %q", text, got, want)
		}
	}
}
