package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/webhook"
)

// hookSecret is one that webhooks can be signed with.
const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const webhooksText = `
webhooks:
  allow: [10.0.0.0/8, "fd00::/8"]
  timeout: 3s
  schedule: [1s, 1m30s, 2d]
  endpoints:
    - {url: "https://audit.example/hooks?token=t", secret: "${env:AUDIT}"}
    - url: http://10.0.0.7/hooks
      secret: "${env:ACME}"
      previous_secret: ` + hookSecret + `
      owner: acme
      events: [job.blocked, incident.duplicate_effect]
    - {url: "https://acme.example/eu", secret: ` + hookSecret + `, owner: acme/eu}
`

const otherHookSecret = "whsec_bm90LXRoZS1zYW1lLWtleS1hdC1hbGwtYnV0LW9r"

func webhooksConfig(t *testing.T) *config.Config {
	t.Helper()
	return mustLoad(t, webhooksText, map[string]string{"AUDIT": hookSecret, "ACME": otherHookSecret})
}

func TestWebhooksReachTheSender(t *testing.T) {
	t.Parallel()

	c := webhooksConfig(t)
	want := []webhook.Endpoint{
		{URL: "https://audit.example/hooks?token=t", Secret: hookSecret},
		{
			URL: "http://10.0.0.7/hooks", Secret: otherHookSecret, PreviousSecret: hookSecret, Owner: "acme",
			Events: []onejob.WebhookEvent{onejob.WebhookJobBlocked, onejob.WebhookDuplicateEffect},
		},
		{URL: "https://acme.example/eu", Secret: hookSecret, Owner: "acme/eu"},
	}
	if diff := cmp.Diff(want, c.WebhookEndpoints()); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 90 * time.Second, 48 * time.Hour}, c.WebhookSchedule()); diff != "" {
		t.Errorf("schedule (-want +got):\n%s", diff)
	}
	if got := c.AllowedNetworks(); len(got) != 2 || got[1].String() != "fd00::/8" {
		t.Errorf("allowed %v", got)
	}
	if c.Webhooks.Timeout.String() != "3s" {
		t.Errorf("timeout %s; want 3s", c.Webhooks.Timeout)
	}
	if _, err := webhook.New(nil, webhook.Options{Endpoints: c.WebhookEndpoints(), Allow: c.AllowedNetworks(), BodyFunc: func(onejob.Delivery, *onejob.Job) ([]byte, error) { return nil, nil }}); err != nil {
		t.Errorf("the sender refuses what the configuration takes: %v", err)
	}
	if empty := mustLoad(t, minimal, nil); len(empty.WebhookEndpoints()) != 0 || empty.WebhookSchedule() != nil || empty.Webhooks.Timeout.String() != "15s" {
		t.Errorf("without webhooks: %+v", empty.Webhooks)
	}
}

func TestAJobIsToldToItsOwnersEndpoints(t *testing.T) {
	t.Parallel()

	subscribe := webhooksConfig(t).SubscribeFunc()
	all := webhook.EndpointID("", "https://audit.example/hooks?token=t")
	acme := webhook.EndpointID("acme", "http://10.0.0.7/hooks")
	eu := webhook.EndpointID("acme/eu", "https://acme.example/eu")
	tests := []struct {
		name, owner, url string
		want             []string
	}{
		{"Owner", "acme", "", []string{acme, all}},
		{"SubOwner", "acme/eu", "", []string{eu, acme, all}},
		{"OtherSubOwner", "acme/us", "", []string{acme, all}},
		{"NotByPrefix", "acme-corp", "", []string{all}},
		{"Stranger", "bob", "", []string{all}},
		{"OneURL", "acme/eu", "http://10.0.0.7/hooks", []string{acme}},
		{"EverybodysURL", "bob", "https://audit.example/hooks?token=t", []string{all}},
		{"AnothersURL", "bob", "http://10.0.0.7/hooks", nil},
		{"ParentIsNotTheSub", "acme", "https://acme.example/eu", nil},
		{"UnknownURL", "acme", "https://evil.example/", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			told, err := subscribe(tt.owner, tt.url)
			var got []string
			for _, s := range told {
				got = append(got, s.Endpoint)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if (err == nil) != (tt.want != nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil && (err.Code != onejob.CodeInvalidJob || !strings.Contains(err.Message, "webhooks.endpoints") || strings.Contains(err.Message, "example/")) {
				t.Errorf("%s: %q; want invalid-job that says where endpoints are registered and names none", err.Code, err.Message)
			}
		})
	}
	told, _ := subscribe("acme", "http://10.0.0.7/hooks")
	if len(told) != 1 || !told[0].Wants(onejob.WebhookJobBlocked) || told[0].Wants(onejob.WebhookAttemptAsked) {
		t.Errorf("subscription %+v; want the configured events", told)
	}
}

func TestSecretsOfWebhooksAreNeverPrinted(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	if err := webhooksConfig(t).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{hookSecret, otherHookSecret, "MfKQ9r8G"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%s is printed in\n%s", secret, out.String())
		}
	}
	for _, want := range []string{`secret: "${env:ACME}"`, `previous_secret: "[redacted]"`, "schedule: [1s, 1m30s, 2d]", "allow: [10.0.0.0/8, ", "events: [job.blocked, incident.duplicate_effect]", "owner: acme", "timeout: 3s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed in\n%s", want, out.String())
		}
	}
}

func TestAWebhookThatCouldNotBeSentIsAFault(t *testing.T) {
	t.Parallel()

	endpoint := func(members string) string { return "webhooks: {endpoints: [{" + members + "}]}\n" }
	const good = "url: 'https://a.example/', secret: " + hookSecret
	tests := []struct{ name, text, at, says string }{
		{"PlainHTTP", endpoint("url: 'http://a.example/', secret: " + hookSecret), "webhooks.endpoints[0].url", "networks are allowed by webhooks.allow"},
		{"Private", endpoint("url: 'https://192.168.0.1/', secret: " + hookSecret), "webhooks.endpoints[0].url", "not a public one"},
		{"Credentials", endpoint("url: 'https://u:CANARY@a.example/', secret: " + hookSecret), "webhooks.endpoints[0].url", "credentials"},
		{"ShortSecret", endpoint("url: 'https://a.example/', secret: whsec_Q0FOQVJZ"), "webhooks.endpoints[0].secret", "stands for 6 bytes; 24 to 64 are needed; make one with: echo whsec_$(openssl rand -base64 32)"},
		{"BareSecret", endpoint("url: 'https://a.example/', secret: CANARY"), "webhooks.endpoints[0].secret", "does not begin with whsec_"},
		{"PreviousSecret", endpoint(good + ", previous_secret: whsec_CANARY!"), "webhooks.endpoints[0].previous_secret", "not base64"},
		{"NumberAsSecret", endpoint("url: 'https://a.example/', secret: 5"), "webhooks.endpoints[0].secret", "text belongs here"},
		{"UnsetSecret", endpoint("url: 'https://a.example/', secret: '${env:NOWHERE}'"), "webhooks.endpoints[0].secret", "NOWHERE is not set"},
		{"Owner", endpoint(good + ", owner: 'a b'"), "webhooks.endpoints[0].owner", "an owner is"},
		{"Event", endpoint(good + ", events: [job.bloked]"), "webhooks.endpoints[0].events[0]", `there is no event "job.bloked"; did you mean "job.blocked"?`},
		{"EventThatAllAreTold", endpoint(good + ", events: [job.succeeded]"), "webhooks.endpoints[0].events[0]", "every endpoint is told of job.succeeded; leave it out"},
		{"EventTwice", endpoint(good + ", events: [job.blocked, job.blocked]"), "webhooks.endpoints[0].events[1]", "there twice"},
		{"Twice", "webhooks: {endpoints: [{" + good + "}, {" + good + "}]}\n", "webhooks.endpoints[1].url", "already for the same owner, as webhooks.endpoints[0]"},
		{"TooManyOfOneOwner", "webhooks:\n  endpoints:\n" + manyEndpoints(11), "webhooks.endpoints[10]", "at most 10"},
		{"Network", "webhooks: {allow: [10.0.0.0]}\n", "webhooks.allow[0]", "is not a network; write one like 10.0.0.0/8"},
		{"NetworkWithHostBits", "webhooks: {allow: [10.1.0.0/8]}\n", "webhooks.allow", "write 10.0.0.0/8"},
		{"NoPause", "webhooks: {schedule: [5s, 0s]}\n", "webhooks.schedule[1]", "more than nothing"},
		{"LongPause", "webhooks: {schedule: [8d]}\n", "webhooks.schedule[0]", "at most 7d"},
		{"LongTimeout", "webhooks: {timeout: 2m}\n", "webhooks.timeout", "at most 60s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := load(tt.text, nil)
			if err == nil || !strings.Contains(err.Error(), tt.at+": ") || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v\nwant %s: %s", err, tt.at, tt.says)
			}
			if strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "Q0FOQVJZ") {
				t.Errorf("the message holds a secret: %v", err)
			}
		})
	}
	if _, err := load("webhooks: {endpoints: [{"+good+", owner: a}, {"+good+", owner: b}, {"+good+"}]}\n", nil); err != nil {
		t.Errorf("one URL for several owners: %v", err)
	}
}

func manyEndpoints(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("    - {url: 'https://a.example/" + strings.Repeat("x", i+1) + "', secret: " + hookSecret + "}\n")
	}
	return b.String()
}

func TestStoreCommandsDoNotNeedTheWebhooksSecrets(t *testing.T) {
	t.Parallel()

	if _, err := config.Load(config.LoadParams{Text: []byte(webhooksText), StoreOnly: true}); err != nil {
		t.Error(err)
	}
}

func TestAVariableCannotSpeakOfAList(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, webhooksText, map[string]string{
		"AUDIT": hookSecret, "ACME": hookSecret, "ONEJOB_WEBHOOKS_ALLOW": "0.0.0.0/0", "ONEJOB_WEBHOOKS_ENDPOINTS": "x", "ONEJOB_WEBHOOKS_TIMEOUT": "7s",
	})
	if len(c.Webhooks.Allow) != 2 || c.Webhooks.Timeout.String() != "7s" {
		t.Errorf("allow %v, timeout %s; want the file's and 7s", c.Webhooks.Allow, c.Webhooks.Timeout)
	}
}

func TestADevelopmentServerMayAllowMore(t *testing.T) {
	t.Parallel()

	text := []byte("webhooks: {allow: [10.0.0.0/8], endpoints: [{url: 'http://127.0.0.1:4646/', secret: " + hookSecret + "}]}\n")
	if _, err := config.Load(config.LoadParams{Text: text}); err == nil {
		t.Error("plain http to loopback was taken without being allowed")
	}
	c, err := config.Load(config.LoadParams{Text: text, Allow: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.AllowedNetworks(); len(got) != 2 {
		t.Errorf("allowed %v; want both", got)
	}
}
