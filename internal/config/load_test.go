package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
)

const minimal = `
targets:
  acme: {provider: http, request: {url: "https://acme.example/v1/charges"}}
kinds:
  charge_card: {effect: external, targets: [acme]}
`

func load(text string, env map[string]string) (*config.Config, error) {
	return config.Load(config.LoadParams{
		Path: "onejob.yaml", Text: []byte(text),
		Getenv: func(name string) string { return env[name] },
	})
}

func mustLoad(t *testing.T, text string, env map[string]string) *config.Config {
	t.Helper()
	c, err := load(text, env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func TestEveryFaultNamesItsPlaceAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, text, want string }{
		{
			"UnknownKey", "listen: 127.0.0.1:1\nworkers:\n  slot: 3\n",
			`onejob.yaml:3:3: workers: unknown key "slot"; did you mean "slots"?`,
		},
		{
			"UnknownKeyNearNothing", "workers: {colour: red}\n",
			`onejob.yaml:1:11: workers: unknown key "colour"; there is slots, lease, drain`,
		},
		{
			"KeyOfAnotherProvider", "targets:\n  a:\n    provider: http\n    request: {url: 'http://x'}\n    modle: x\n",
			`onejob.yaml:5:5: targets.a: unknown key "modle"`,
		},
		{
			"UnknownProvider", "targets:\n  a: {provider: htpp}\n",
			`onejob.yaml:2:17: targets.a.provider: there is no provider "htpp"; did you mean "http"?`,
		},
		{
			"NoProvider", "targets:\n  a: {model: x}\n",
			`onejob.yaml:2:6: targets.a: provider is required; there is anthropic, http, openai`,
		},
		{
			"EffectIsRequired", minimal + "  mail: {targets: [acme]}\n",
			`onejob.yaml:6:3: kinds.mail: effect is required: none, idempotent, external`,
		},
		{
			"UnknownEffect", minimal + "  mail: {effect: extrenal, targets: [acme]}\n",
			`onejob.yaml:6:18: kinds.mail.effect: "extrenal" is not one of none, idempotent, external; did you mean "external"?`,
		},
		{
			"UnknownTarget", minimal + "  mail: {effect: none, targets: [acne]}\n",
			`onejob.yaml:6:34: kinds.mail.targets[0]: there is no target "acne"; did you mean "acme"?`,
		},
		{
			"TargetTwice", minimal + "  mail: {effect: none, targets: [acme, acme]}\n",
			`onejob.yaml:6:40: kinds.mail.targets[1]: target "acme" is there twice`,
		},
		{
			"NoTargets", minimal + "  mail: {effect: none, targets: []}\n",
			`onejob.yaml:6:3: kinds.mail: targets is empty`,
		},
		{
			"NumberWithoutUnit", minimal + "  mail: {effect: none, targets: [acme], timeout: 30}\n",
			`onejob.yaml:6:50: kinds.mail.timeout: 30 has no unit; write a duration like 500ms, 30s, 10m, 24h or 30d`,
		},
		{
			"NoDuration", minimal + "  mail: {effect: none, targets: [acme], timeout: soon}\n",
			`onejob.yaml:6:50: kinds.mail.timeout: "soon" is not a duration; write one like 500ms, 30s, 10m, 24h or 30d`,
		},
		{
			"NoTimeAtAll", minimal + "  mail: {effect: none, targets: [acme], linger: 0s}\n",
			`onejob.yaml:6:49: kinds.mail.linger: it is more than nothing; leave the key out for the default`,
		},
		{
			"SendWithinBeyondTimeout", minimal + "  mail: {effect: none, targets: [acme], timeout: 10s, send_within: 20s}\n",
			`onejob.yaml:6:68: kinds.mail.send_within: it is longer than timeout (10s)`,
		},
		{
			"BackoffUpsideDown", minimal + "  mail: {effect: none, targets: [acme], backoff: {initial: 5s, max: 1s}}\n",
			`onejob.yaml:6:3: kinds.mail: backoff.max is less than backoff.initial`,
		},
		{
			"FailoverMisspelt", minimal + "  mail: {effect: none, targets: [acme], failover: certfied}\n",
			`onejob.yaml:6:51: kinds.mail.failover: "certfied" is not certified, never or {declared: "<why>"}; did you mean "certified"?`,
		},
		{
			"DeclaredWithoutReason", minimal + "  mail: {effect: none, targets: [acme], failover: declared}\n",
			`onejob.yaml:6:51: kinds.mail.failover: declared needs the reason why the targets are equal: write {declared: "<why>"}`,
		},
		{
			"TextWhereANumberBelongs", "workers: {slots: many}\n",
			`onejob.yaml:1:18: workers.slots: a whole number belongs here`,
		},
		{
			"NumberWhereTextBelongs", "targets:\n  a: {provider: openai, model: 5}\n",
			`onejob.yaml:2:32: targets.a.model: text belongs here: put it in quotes`,
		},
		{
			"ListWhereAMappingBelongs", "workers: [1]\n",
			`onejob.yaml:1:10: workers: keys with values belong here`,
		},
		{
			"MappingWhereAListBelongs", minimal + "  mail: {effect: none, targets: {a: b}}\n",
			`onejob.yaml:6:33: kinds.mail.targets: a list belongs here, as in [a, b]`,
		},
		{"TooFewSlots", "workers: {slots: 0}\n", `onejob.yaml:1:18: workers.slots: it is at least 1`},
		{
			"KeysShorterThanJobs", "retention: {jobs: 30d, keys: 1d}\n",
			`onejob.yaml:1:30: retention.keys: it is less than retention.jobs (30d)`,
		},
		{
			"StoredBytesIsForLater", "limits: {per_owner: {stored_bytes: 5}}\n",
			`onejob.yaml:1:36: limits.per_owner.stored_bytes: it is at most 0`,
		},
		{"StoreWithoutScheme", "store: onejob.db\n", `onejob.yaml:1:8: store: it is sqlite:FILE or postgres://user:password@host/database`},
		{"StoreInMemory", "store: 'sqlite::memory:'\n", `onejob.yaml:1:8: store: a store in memory forgets keys`},
		{"ListenWithoutPort", "listen: localhost\n", `onejob.yaml:1:9: listen: "localhost" is not host:port, as in 127.0.0.1:4545`},
		{
			"ReplicatedSQLite", "durability: replicated\n",
			`onejob.yaml:1:13: durability: replicated needs PostgreSQL; the store is SQLite`,
		},
		{
			"RelativeURL", "targets:\n  a: {provider: http, request: {url: /v1}}\n",
			`onejob.yaml:2:38: targets.a.request.url: it is not an absolute http or https URL`,
		},
		{
			"CredentialsInURL", "targets:\n  a: {provider: http, request: {url: 'http://u:p@x'}}\n",
			`onejob.yaml:2:38: targets.a.request.url: it holds credentials; send them in a header, as ${env:NAME}`,
		},
		{
			"AttemptInTemplateUnderAKey",
			"targets:\n  a:\n    provider: http\n    idempotency_header: Idempotency-Key\n    request:\n      url: http://x\n      body: '{\"ref\": \"{{ attempt.id }}\"}'\n",
			`onejob.yaml:7:13: targets.a.request.body: a template that uses attempt.* sends other bytes`,
		},
		{
			"CallbackURL", "targets:\n  a: {provider: http, request: {url: 'http://x', body: '{{ callback_url }}'}}\n",
			`onejob.yaml:2:56: targets.a.request.body: callback_url needs public_url at the top`,
		},
		{
			"KeyHeaderTwice", "targets:\n  a: {provider: http, idempotency_header: X-Key, request: {url: 'http://x', headers: {x-key: a}}}\n",
			`onejob.yaml:2:94: targets.a.request.headers.x-key: it is the idempotency_header already`,
		},
		{
			"BadExpression", "targets:\n  a:\n    provider: http\n    request: {url: 'http://x'}\n    outcomes: [{when: 'status =', class: refused}]\n",
			`onejob.yaml:5:16: targets.a.outcomes[0]: expression "status =": Syntax error: `,
		},
		{
			"UnknownVariable", "targets:\n  a:\n    provider: http\n    request: {url: 'http://x'}\n    outcomes: [{when: 'statuss == 502', class: refused}]\n",
			`onejob.yaml:5:16: targets.a.outcomes[0]: expression "statuss == 502": undeclared reference to 'statuss' (did you mean 'status'?) (at character 1)`,
		},
		{"BadName", "kinds:\n  a b: {effect: none, targets: [x]}\n", `onejob.yaml:2:3: kinds: "a b" is not a name`},
		{"KeyTwice", "listen: a:1\nlisten: b:1\n", `onejob.yaml:2:1: this is not valid YAML: the key "listen" is there twice, first in line 1`},
		{"Tab", "targets:\n\ta: {provider: http}\n", `onejob.yaml:2:1: this is not valid YAML: a tab stands where spaces belong`},
		{
			"IndentedTooLittle", "targets:\n  a:\n    provider: http\n   request: {url: 'http://x'}\n",
			`onejob.yaml:4:4: this is not valid YAML: value is not allowed in this context; is it indented as what is beside it?`,
		},
		{
			"NotIndented", "targets:\na:\n  provider: http\n",
			`onejob.yaml:2:1: unknown key "a"; there is listen, public_url, store, generation_file, environment, targets, kinds, retention, workers, durability, secret, limits, webhooks; if it belongs to "targets", indent it`,
		},
		{"OneFaultOfRetention", "retention: {jobs: 30 days}\n", `onejob.yaml:1:19: retention.jobs: "30 days" is not a duration`},
		{"NoYAML", "listen: [\n", `onejob.yaml:1:9: this is not valid YAML: `},
		{"TwoDocuments", "listen: a:1\n---\nlisten: b:1\n", `onejob.yaml:3:1: a second document starts here`},
		{"EmptyTarget", "targets:\n  a:\n", `onejob.yaml:2:3: targets.a: it is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := load(tt.text, nil)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("Load(%s)\n got %v\nwant %s", tt.text, err, tt.want)
			}
		})
	}
}

func TestARaceThatCouldNeverStartIsRefused(t *testing.T) {
	t.Parallel()

	const targets = "targets:\n  a: {provider: http, request: {url: 'http://x'}}\n  b: {provider: worker, max_execution: 1m}\n"
	tests := []struct{ name, kind, want string }{
		{"Effect", "{effect: external, targets: [a, b], race: {after: 1s}}", "kinds.k.race: only effect none may be raced"},
		{"Lanes", "{effect: none, targets: [a, b], race: {after: 1s, lanes: 3}}", "kinds.k.race: 3 lanes need 3 targets"},
		{"OneTarget", "{effect: none, targets: [a], race: {after: 1s}}", "kinds.k.race: 2 lanes need 2 targets"},
		{"Never", "{effect: none, targets: [a, b], failover: never, race: {after: 1s}}", "kinds.k.race: failover is never"},
		{"Late", "{effect: none, targets: [a, b], timeout: 5s, race: {after: 5s}}", "kinds.k.race.after: it is not less than timeout (5s)"},
		{"NoAfter", "{effect: none, targets: [a, b], race: {lanes: 2}}", "kinds.k.race: after is required"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := load(targets+"kinds:\n  k: "+tt.kind+"\n", nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestARaceAndAWorkersTargetReachThePolicyAndTheEngine(t *testing.T) {
	t.Parallel()

	c, err := load("targets:\n  a: {provider: http, request: {url: 'http://x'}}\n  b: {provider: worker, max_execution: 1m}\n"+
		"kinds:\n  k: {effect: none, targets: [a, b], failover: {declared: same}, race: {after: 3s}}\n  plain: {effect: none, targets: [a]}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Kinds()["k"].Policy; p.Lanes != 2 || p.RaceAfter != 3*time.Second {
		t.Errorf("lanes %d after %s; want 2 after 3s", p.Lanes, p.RaceAfter)
	}
	if p := c.Kinds()["plain"].Policy; p.Lanes != 1 || p.RaceAfter != 0 {
		t.Errorf("without a race: lanes %d after %s; want 1 after 0s", p.Lanes, p.RaceAfter)
	}
	targets, err := c.Targets("")
	if err != nil || len(targets) != 2 {
		t.Fatalf("targets %v, %v", targets, err)
	}
	if b := targets[1]; !b.Pulled || b.Provider != nil || b.MaxExecution != time.Minute || b.Digest == "" {
		t.Errorf("target b is %+v; want one that workers pull", b)
	}
}

func TestKeysOfFeaturesToComeAreRefusedByName(t *testing.T) {
	t.Parallel()

	tests := []struct{ text, at, what string }{
		{minimal + "  k: {effect: none, targets: [acme], unknown: {assume: failed}}\n", "6:48: kinds.k.unknown", "assume"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()

			_, err := load(tt.text, nil)
			want := "onejob.yaml:" + tt.at + ": " + tt.what + " is not available in this version of onejob"
			if err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestAllFaultsAreReportedAtOnceInOrder(t *testing.T) {
	t.Parallel()

	_, err := load(`
listen: nowhere
workers: {slots: 0, leese: 3s}
targets:
  acme: {provider: http, request: {url: "https://acme.example"}, cancel: {}}
kinds:
  a: {effect: none, targets: [acme, acne]}
  b: {targets: [acme], timeout: 5}
`, nil)
	var faults *config.Error
	if !errors.As(err, &faults) {
		t.Fatalf("got %v; want a config.Error", err)
	}
	var lines []int
	for _, f := range faults.Faults {
		lines = append(lines, f.Line)
	}
	if diff := cmp.Diff([]int{2, 3, 3, 5, 7, 8, 8}, lines); diff != "" {
		t.Errorf("lines of the faults (-want +got):\n%s\n%v", diff, err)
	}
}

func TestAFlagWinsOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	t.Parallel()

	const file = "listen: 127.0.0.1:1\nworkers: {slots: 1}\n"
	tests := []struct {
		name       string
		text       string
		env, flags map[string]string
		want       string
	}{
		{"Default", "", nil, nil, "127.0.0.1:4545"},
		{"File", file, nil, nil, "127.0.0.1:1"},
		{"Port", file, map[string]string{"PORT": "2"}, nil, ":2"},
		{"Environment", file, map[string]string{"PORT": "2", "ONEJOB_LISTEN": "127.0.0.1:3"}, nil, "127.0.0.1:3"},
		{"Flag", file, map[string]string{"ONEJOB_LISTEN": "127.0.0.1:3"}, map[string]string{"listen": "127.0.0.1:4"}, "127.0.0.1:4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, err := config.Load(config.LoadParams{
				Path: "onejob.yaml", Text: []byte(tt.text), Flags: tt.flags,
				Getenv: func(name string) string { return tt.env[name] },
			})
			if err != nil || c.Listen != tt.want {
				t.Errorf("got %v, %v; want listen %s", c, err, tt.want)
			}
		})
	}

	t.Run("EverySettingHasAVariable", func(t *testing.T) {
		t.Parallel()

		c := mustLoad(t, file, map[string]string{
			"ONEJOB_WORKERS_SLOTS": "7", "ONEJOB_RETENTION_JOBS": "forever", "ONEJOB_RETENTION_KEYS": "forever",
			"DATABASE_URL": "postgres://u:p@db/x", "ONEJOB_LIMITS_PER_OWNER_RATE": "2.5",
		})
		if c.Workers.Slots != 7 || c.Retention.Jobs != 0 || c.Store.Value.Reveal() != "postgres://u:p@db/x" || c.Limits.PerOwner.Rate != 2.5 {
			t.Errorf("slots %d, jobs %v, rate %v", c.Workers.Slots, c.Retention.Jobs, c.Limits.PerOwner.Rate)
		}
	})

	t.Run("AVariablesFaultNamesIt", func(t *testing.T) {
		t.Parallel()

		_, err := load(file, map[string]string{"ONEJOB_WORKERS_SLOTS": "x", "PORT": "http"})
		want := "environment ONEJOB_WORKERS_SLOTS: workers.slots: \"x\" is not a whole number\n" +
			"environment PORT: listen: \"http\" is not a port, 0 to 65535"
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	})

	t.Run("WhatIsSaidElsewhereNeedNotResolveInTheFile", func(t *testing.T) {
		t.Parallel()

		if _, err := load("store: '${env:NOWHERE}'\n", map[string]string{"ONEJOB_STORE": "sqlite:x.db"}); err != nil {
			t.Error(err)
		}
	})
}

func TestReferencesAreResolvedInSecretsOnly(t *testing.T) {
	t.Parallel()

	const canary = "canary-7f3a-very-secret"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `
secret: "${env:SECRET}"
store: "postgres://u:${env:SECRET}@db/x"
targets:
  a:
    provider: http
    request: {url: "https://acme.example", headers: {Authorization: "Bearer ${env:SECRET}", X-Literal: canary-7f3a-very-secret}}
  b: {provider: http, request: {url: "https://acme.example", headers: {X-Api-Key: "${file:` + file + `}"}}}
kinds: {k: {effect: none, targets: [a, b]}}
`
	c := mustLoad(t, text, map[string]string{"SECRET": canary})
	for what, got := range map[string]onejob.Secret{
		canary:                             c.File.Secret.Value,
		"postgres://u:" + canary + "@db/x": c.Store.Value,
		"Bearer " + canary:                 c.File.Targets["a"].HTTP.Request.Headers["Authorization"].Value,
	} {
		if got.Reveal() != what {
			t.Errorf("got %q; want %q", got.Reveal(), what)
		}
	}
	if got := c.File.Targets["b"].HTTP.Request.Headers["X-Api-Key"].Value.Reveal(); got != canary {
		t.Errorf("from a file: %q; want %q", got, canary)
	}

	t.Run("AndNeverPrinted", func(t *testing.T) {
		t.Parallel()

		var out strings.Builder
		if err := c.Print(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), canary) || !strings.Contains(out.String(), "${env:SECRET}") || !strings.Contains(out.String(), `X-Literal: "[redacted]"`) {
			t.Errorf("printed:\n%s", out.String())
		}
	})

	t.Run("UnsetIsAFault", func(t *testing.T) {
		t.Parallel()

		_, err := load(text, nil)
		for _, want := range []string{
			"onejob.yaml:2:9: secret: the environment variable SECRET is not set",
			"onejob.yaml:3:8: store: the environment variable SECRET is not set",
			"targets.a.request.headers.Authorization: the environment variable SECRET is not set",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the message holds a secret: %v", err)
		}
	})

	t.Run("ElsewhereIsAFault", func(t *testing.T) {
		t.Parallel()

		_, err := load("targets:\n  a: {provider: http, request: {url: 'https://${env:HOST}/'}}\n", map[string]string{"HOST": "x"})
		want := "onejob.yaml:2:38: targets.a.request.url: ${…} is resolved only in secrets"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	})

	t.Run("AnotherSourceIsAFault", func(t *testing.T) {
		t.Parallel()

		_, err := load("secret: '${vault:x}'\n", nil)
		if want := "onejob.yaml:1:9: secret: a reference is ${env:NAME} or ${file:/path}"; err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	})

	t.Run("AShortInstanceSecretIsAFault", func(t *testing.T) {
		t.Parallel()

		_, err := load("secret: abc\n", nil)
		if err == nil || !strings.Contains(err.Error(), "it has 3 bytes; at least 16 are needed") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAKindWithoutSettingsHasTheDomainsDefaults(t *testing.T) {
	t.Parallel()

	got := mustLoad(t, minimal, nil).Kinds()["charge_card"].Policy
	want, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"acme"}, AskAfter: time.Hour}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-domain +configuration):\n%s", diff)
	}
}

func TestAKindSaysEverythingOfItsPolicy(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, `
targets:
  a: {provider: http, request: {url: "https://a.example"}}
  b: {provider: http, request: {url: "https://b.example"}, max_execution: 10m}
kinds:
  k:
    effect: idempotent
    targets: [b, a]
    timeout: 20s
    linger: 1m
    send_within: 10s
    max_attempts: 9
    per_target: 4
    backoff: {initial: 2s, max: 1h30m}
    deadline: 2d
    failover: {declared: "same account, same ledger"}
    unknown: {ask_after: 3h}
`, nil)
	want := onejob.Policy{
		Effect: onejob.EffectIdempotent, Targets: []string{"b", "a"}, Lanes: 1,
		Timeout: 20 * time.Second, Linger: time.Minute, SendWithin: 10 * time.Second,
		MaxAttempts: 9, PerTarget: 4, Backoff: onejob.Backoff{Initial: 2 * time.Second, Max: 90 * time.Minute},
		Deadline: 48 * time.Hour, Failover: onejob.FailoverDeclared, FailoverWhy: "same account, same ledger", AskAfter: 3 * time.Hour,
	}
	if diff := cmp.Diff(want, c.Kinds()["k"].Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	targets, err := c.Targets("a secret of sixteen")
	if err != nil || len(targets) != 2 || targets[1].Name != "b" || targets[1].MaxExecution != 10*time.Minute || targets[0].MaxExecution != 0 {
		t.Errorf("targets %+v, %v", targets, err)
	}
}

func TestAShortTimeoutShortensTheDefaultSendWithin(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, minimal+"  k: {effect: none, targets: [acme], timeout: 5s}\n", nil)
	if got := c.Kinds()["k"].Policy.SendWithin; got != 5*time.Second {
		t.Errorf("send_within is %v; want 5s", got)
	}
}

func TestAnchorsAndMergesAreFollowed(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, `
targets:
  acme: {provider: http, request: {url: "https://acme.example"}}
kinds:
  a: &a {effect: none, targets: &t [acme], timeout: 5s}
  b: {<<: *a, timeout: 7s}
  c: {effect: external, targets: *t}
`, nil)
	if got := c.Kinds()["b"].Policy; got.Effect != onejob.EffectNone || got.Timeout != 7*time.Second {
		t.Errorf("b is %+v; want effect none and its own timeout", got)
	}
	if got := c.Kinds()["c"].Policy.Targets; len(got) != 1 || got[0] != "acme" {
		t.Errorf("targets of c are %v", got)
	}
}

func TestAFileThatIsNotThereIsNoConfigurationUnlessNamed(t *testing.T) {
	t.Parallel()

	if _, err := config.Load(config.LoadParams{Path: filepath.Join(t.TempDir(), "absent.yaml")}); err == nil {
		t.Error("a named file that does not exist was passed over")
	}
}

func TestStoreCommandsDoNotNeedTheTargetsSecrets(t *testing.T) {
	t.Parallel()

	text := "store: sqlite:x.db\ntargets:\n  a: {provider: openai, model: m, api_key: '${env:NOT_SET}'}\n"
	if _, err := config.Load(config.LoadParams{Text: []byte(text), StoreOnly: true}); err != nil {
		t.Error(err)
	}
	if _, err := config.Load(config.LoadParams{Text: []byte(text)}); err == nil {
		t.Error("a server may not start without them")
	}
}

func TestADurationPrintsAsItCouldBeWritten(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"30s": "30s", "90s": "1m30s", "60m": "1h", "24h": "24h", "30d": "30d", "400d": "400d", "1.5h": "1h30m", "500ms": "500ms",
	} {
		c := mustLoad(t, minimal+"  k: {effect: none, targets: [acme], deadline: "+text+"}\n", nil)
		if got := c.File.Kinds["k"].Deadline.String(); got != want {
			t.Errorf("%s prints as %s; want %s", text, got, want)
		}
	}
}
