package config_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/onejob-dev/onejob/internal/config"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(config.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(config.SchemaID)
	if err != nil {
		t.Fatalf("the schema is not valid: %v", err)
	}
	return schema
}

// shapes are files whose form alone decides.
var shapes = []struct {
	name, text string
	valid      bool
}{
	{"Nothing", "{}", true},
	{"Minimal", minimal, true},
	{"FailoverNever", minimal + "  k: {effect: none, targets: [acme], failover: never}\n", true},
	{"FailoverDeclared", minimal + "  k: {effect: none, targets: [acme], failover: {declared: same}}\n", true},
	{"FailoverDeclaredAsText", minimal + "  k: {effect: none, targets: [acme], failover: 'declared: same'}\n", true},
	{"FailoverDeclaredEmpty", minimal + "  k: {effect: none, targets: [acme], failover: {declared: ''}}\n", false},
	{"FailoverOther", minimal + "  k: {effect: none, targets: [acme], failover: always}\n", false},
	{"FrontDoor", minimal + "  k: {effect: none, targets: [acme], front_door: {take_over: true}}\n", true},
	{"FrontDoorOther", minimal + "  k: {effect: none, targets: [acme], front_door: {take_over: often}}\n", false},
	{"Forever", "retention: {jobs: forever, keys: forever}", true},
	{"Eternally", "retention: {jobs: eternally}", false},
	{"Rate", "limits: {per_owner: {rate: 0.5}}", true},
	{"StoredBytesZero", "limits: {per_owner: {stored_bytes: 0}}", true},
	{"StoredBytes", "limits: {per_owner: {stored_bytes: 1}}", false},
	{"OpenAI", "targets: {a: {provider: openai, model: m, api_key: k}}", true},
	{"OpenAIWithoutModel", "targets: {a: {provider: openai}}", false},
	{"Anthropic", "targets: {a: {provider: anthropic, model: m, api_key: k, max_tokens: 5}}", true},
	{"KeyOfAnotherProvider", "targets: {a: {provider: openai, model: m, max_tokens: 5}}", false},
	{"Replay", "targets: {a: {provider: http, request: {url: 'http://x'}, idempotency_header: K, replay: {safe: true, for: 24h}}}", true},
	{"ReplayForNoTime", "targets: {a: {provider: http, request: {url: 'http://x'}, idempotency_header: K, replay: {safe: true, for: 24}}}", false},
	{"Lookup", "targets: {a: {provider: http, request: {url: 'http://x'}, lookup: {url: 'http://x/{job_id}', succeeded: 'true'}}}", true},
	{"LookupWithoutSucceeded", "targets: {a: {provider: http, request: {url: 'http://x'}, lookup: {url: 'http://x/{job_id}'}}}", false},
	{"Accepted", "targets: {a: {provider: http, request: {url: 'http://x'}, accepted: {id: body.id}, lookup: {url: 'http://x/{id}', succeeded: 'true'}}}", true},
	{"AcceptedWithoutID", "targets: {a: {provider: http, request: {url: 'http://x'}, accepted: {}, lookup: {url: 'http://x/{job_id}', succeeded: 'true'}}}", false},
	{"Cancel", "targets: {a: {provider: http, request: {url: 'http://x'}, cancel: {url: 'http://x/{job_id}'}}}", true},
	{"CancelByTrace", "targets: {a: {provider: http, request: {url: 'http://x'}, cancel: {method: TRACE, url: 'http://x/{job_id}'}}}", false},
	{"Callback", "public_url: https://o.example\ntargets: {a: {provider: http, request: {url: 'http://x', body: '{\"u\": {{ callback_url }}}'}, callback: {succeeded: 'true'}}}", true},
	{"CallbackWithoutSucceeded", "targets: {a: {provider: http, request: {url: 'http://x'}, callback: {}}}", false},
	{"AskAfter", minimal + "  k: {effect: none, targets: [acme], unknown: {ask_after: 10m}}\n", true},
	{"AskAfterWithoutUnit", minimal + "  k: {effect: none, targets: [acme], unknown: {ask_after: 10}}\n", false},
	{"Worker", "targets: {a: {provider: worker, max_execution: 1m}}", true},
	{"WorkerWithURL", "targets: {a: {provider: worker, base_url: 'http://x'}}", false},
	{"Outcome", "targets: {a: {provider: http, request: {url: 'http://x'}, outcomes: [{when: 'status == 502', class: refused, target_fault: true}]}}", true},
	{"OutcomeAccepted", "targets: {a: {provider: http, request: {url: 'http://x'}, outcomes: [{when: 'status == 409', class: accepted}], accepted: {id: body.id}, lookup: {url: 'http://x/{id}', succeeded: 'true'}}}", true},
	{"OutcomeUnheardOf", "targets: {a: {provider: http, request: {url: 'http://x'}, outcomes: [{when: 'status == 502', class: cancelled}]}}", false},
	{"Background", "targets: {a: {provider: openai, model: m, api_key: k, background: true, max_execution: 1h, lookup: {every: 5s, authoritative: true}}}", true},
	{"Signed", "public_url: https://o.example\ntargets: {a: {provider: http, request: {url: 'http://x', body: '{{ callback_url }}'}, callback: {succeeded: 'true', signature: {header: X-Sig, secret: s, old_secret: t, encoding: base64, prefix: 'v1='}}}}", true},
	{"SignedOddly", "targets: {a: {provider: http, request: {url: 'http://x', body: '{{ callback_url }}'}, callback: {succeeded: 'true', signature: {header: X-Sig, secret: s, algorithm: md5}}}}", false},
	{"Responses", "targets: {a: {provider: openai, model: m, api_key: k, api: responses}}", true},
	{"NoSuchAPI", "targets: {a: {provider: openai, model: m, api_key: k, api: assistants}}", false},
	{"Method", "targets: {a: {provider: http, request: {url: 'http://x', method: TRACE}}}", false},
	{"NoURL", "targets: {a: {provider: http, request: {}}}", false},
	{"EmptyURL", "targets: {a: {provider: http, request: {url: ''}}}", false},
	{"NoEffect", minimal + "  k: {targets: [acme]}\n", false},
	{"NoTargets", minimal + "  k: {effect: none, targets: []}\n", false},
	{"NoUnit", minimal + "  k: {effect: none, targets: [acme], timeout: 30}\n", false},
	{"Race", "targets: {a: {provider: openai, model: m, api_key: k}, b: {provider: worker}}\nkinds:\n  k: {effect: none, targets: [a, b], race: {after: 1s, lanes: 2}}\n", true},
	{"RaceWithoutAfter", minimal + "  k: {effect: none, targets: [acme], race: {lanes: 2}}\n", false},
	{"RaceInOneLane", minimal + "  k: {effect: none, targets: [acme], race: {after: 1s, lanes: 1}}\n", false},
	{"UnknownKey", "colour: red", false},
	{"Webhooks", "webhooks: {}", true},
	{"WebhooksAll", "webhooks: {allow: [10.0.0.0/8], timeout: 5s, schedule: [1s, 1m], endpoints: [{url: 'https://a.example/', secret: " + hookSecret + ", previous_secret: " + hookSecret + ", owner: acme, events: [job.blocked]}]}", true},
	{"WebhookWithoutSecret", "webhooks: {endpoints: [{url: 'https://a.example/'}]}", false},
	{"WebhookWithoutURL", "webhooks: {endpoints: [{secret: " + hookSecret + "}]}", false},
	{"WebhookOfAnEventThatAllAreTold", "webhooks: {endpoints: [{url: 'https://a.example/', secret: " + hookSecret + ", events: [job.failed]}]}", false},
	{"WebhookOfAnEventThatIsNone", "webhooks: {endpoints: [{url: 'https://a.example/', secret: " + hookSecret + ", events: [job.stuck]}]}", false},
	{"WebhookScheduleWithoutUnit", "webhooks: {schedule: [5]}", false},
	{"SlotsAsText", "workers: {slots: '3'}", false},
	{"SlotsZero", "workers: {slots: 0}", false},
	{"BadName", "targets: {'a b': {provider: openai, model: m}}", false},
	{"BadDurability", "durability: maybe", false},
	{"List", "workers: []", false},
}

func TestTheSchemaAndTheDecoderAgree(t *testing.T) {
	t.Parallel()

	schema := compileSchema(t)
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var doc any
			if err := yaml.Unmarshal([]byte(tt.text), &doc); err != nil {
				t.Fatal(err)
			}
			bySchema := schema.Validate(doc)
			_, byDecoder := load(tt.text, nil)
			if (bySchema == nil) != tt.valid || (byDecoder == nil) != tt.valid {
				t.Errorf("valid %v; the schema says %v\nthe decoder says %v", tt.valid, bySchema, byDecoder)
			}
		})
	}
}

func TestEveryDefaultOfTheSchemaIsWhatTheDecoderFillsIn(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, minimal, nil)
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	printed := out.String()
	for _, want := range []string{
		"listen: 127.0.0.1:4545", "store: sqlite:onejob.db", "slots: 64", "lease: 30s", "drain: 1m", "jobs: 30d", "keys: 400d",
		"durability: local", "max_body_bytes: 1048576", "max_requests: 1024", "timeout: 1m", "linger: 10m", "send_within: 30s",
		"max_attempts: 5", "per_target: 3", "initial: 1s", "max: 1m", "failover: certified", "method: POST",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not printed in\n%s", want, printed)
		}
	}
	for line := range strings.Lines(printed) {
		isTarget := strings.Contains(line, "url:") || strings.Contains(line, "provider:") || strings.Contains(line, "effect:") || strings.Contains(line, "targets: [")
		if strings.Contains(line, "#") && strings.Contains(line, "# default") == isTarget {
			t.Errorf("wrong source: %s", line)
		}
	}
}

func TestWhatIsPrintedCanBeReadBack(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, minimal+`
  k:
    effect: none
    targets: [acme]
    failover: {declared: "both: \"equal\" #1"}
    deadline: 2d
`, nil)
	var first, second strings.Builder
	if err := c.Print(&first); err != nil {
		t.Fatal(err)
	}
	if err := mustLoad(t, first.String(), nil).Print(&second); err != nil {
		t.Fatal(err)
	}
	strip := func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			setting, _, _ := strings.Cut(line, " # ")
			b.WriteString(strings.TrimRight(setting, " \n") + "\n")
		}
		return b.String()
	}
	if strip(first.String()) != strip(second.String()) {
		t.Errorf("first:\n%s\nsecond:\n%s", first.String(), second.String())
	}
}
