package onejob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	got, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
	want := onejob.Policy{
		Effect: onejob.EffectExternal, Targets: []string{"a"}, Lanes: 1,
		Timeout: time.Minute, Linger: 10 * time.Minute, SendWithin: 30 * time.Second,
		MaxAttempts: 5, PerTarget: 3, Backoff: onejob.Backoff{Initial: time.Second, Max: time.Minute},
		Failover: onejob.FailoverCertified,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("WithDefaults (-want +got), %v:\n%s", err, diff)
	}
}

func TestWhatAPolicySaysIsKept(t *testing.T) {
	t.Parallel()
	want := onejob.Policy{
		Effect: onejob.EffectNone, Targets: []string{"b", "a"}, Lanes: 3, RaceAfter: 1,
		Timeout: 2, Linger: 3, SendWithin: 4, MaxAttempts: 6, PerTarget: 7, Backoff: onejob.Backoff{Initial: 8, Max: 9},
		Deadline: 10, Failover: onejob.FailoverDeclared, FailoverWhy: "the same model", AskAfter: 11, Contract: &onejob.ContractTerms{Digest: "v1:12"},
	}
	got, err := want.WithDefaults()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("WithDefaults (-want +got), %v:\n%s", err, diff)
	}
}

func TestABackoffLeftHalfUnsaidStillGrowsUpwards(t *testing.T) {
	t.Parallel()
	for _, b := range []onejob.Backoff{{}, {Initial: 5 * time.Minute}, {Max: 100 * time.Millisecond}} {
		p := filled(t, func(p *onejob.Policy) { p.Backoff = b })
		if p.Backoff.Initial <= 0 || p.Backoff.Initial > p.Backoff.Max {
			t.Errorf("backoff %+v becomes %+v; want a rise", b, p.Backoff)
		}
	}
}

// A policy is filled in by the client and checked again by the store.
func TestFillingInTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	duration := rapid.Map(rapid.Int64Range(0, int64(5*time.Minute)), func(n int64) time.Duration { return time.Duration(n) })
	rapid.Check(t, func(t *rapid.T) {
		p := onejob.Policy{
			Effect: onejob.EffectNone, Targets: []string{"a"},
			Lanes: rapid.IntRange(0, 3).Draw(t, "lanes"), MaxAttempts: rapid.IntRange(0, 9).Draw(t, "max"), PerTarget: rapid.IntRange(0, 9).Draw(t, "per target"),
			Timeout: duration.Draw(t, "timeout"), Linger: duration.Draw(t, "linger"), SendWithin: duration.Draw(t, "send within"),
			Backoff: onejob.Backoff{Initial: duration.Draw(t, "initial"), Max: duration.Draw(t, "max backoff")},
		}
		once, err := p.WithDefaults()
		if err != nil {
			t.Skip("invalid")
		}
		twice, err := once.WithDefaults()
		if diff := cmp.Diff(once, twice); diff != "" || err != nil {
			t.Fatalf("a second time (-once +twice), %v:\n%s", err, diff)
		}
	})
}

func TestAPolicyIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*onejob.Policy)
		says   string
	}{
		{"WithoutAnEffect", func(p *onejob.Policy) { p.Effect = "" }, "effect is required"},
		{"WithAnUnknownEffect", func(p *onejob.Policy) { p.Effect = "some" }, "effect is required"},
		{"WithoutTargets", func(p *onejob.Policy) { p.Targets = nil }, "targets is empty"},
		{"WithANamelessTarget", func(p *onejob.Policy) { p.Targets = []string{"a", ""} }, "empty name"},
		{"WithATargetTwice", func(p *onejob.Policy) { p.Targets = []string{"a", "b", "a"} }, `"a" twice`},
		{"WithLanesOnAnEffect", func(p *onejob.Policy) { p.Effect, p.Lanes = onejob.EffectIdempotent, 2 }, "need effect none"},
		{"WithNegativeLanes", func(p *onejob.Policy) { p.Lanes = -1 }, "lanes is negative"},
		{"WithANegativeBudget", func(p *onejob.Policy) { p.MaxAttempts = -1 }, "max_attempts is negative"},
		{"WithANegativeBudgetOfATarget", func(p *onejob.Policy) { p.PerTarget = -1 }, "per_target is negative"},
		{"WithANegativeTimeout", func(p *onejob.Policy) { p.Timeout = -1 }, "timeout is negative"},
		{"WithANegativeLinger", func(p *onejob.Policy) { p.Linger = -1 }, "linger is negative"},
		{"WithANegativeSendWithin", func(p *onejob.Policy) { p.SendWithin = -1 }, "send_within is negative"},
		{"WithANegativeDeadline", func(p *onejob.Policy) { p.Deadline = -1 }, "deadline is negative"},
		{"WithANegativeBackoff", func(p *onejob.Policy) { p.Backoff.Initial = -1 }, "backoff.initial is negative"},
		{"WithANegativeLimitOfBackoff", func(p *onejob.Policy) { p.Backoff.Max = -1 }, "backoff.max is negative"},
		{"WithANegativeRace", func(p *onejob.Policy) { p.RaceAfter = -1 }, "race.after is negative"},
		{"WithANegativeAskAfter", func(p *onejob.Policy) { p.AskAfter = -1 }, "unknown.ask_after is negative"},
		{"WithABackoffThatShrinks", func(p *onejob.Policy) { p.Backoff = onejob.Backoff{Initial: 2, Max: 1} }, "less than backoff.initial"},
		{"WithAnUnknownFailover", func(p *onejob.Policy) { p.Failover = "maybe" }, "failover is"},
		{"WithADeclarationThatGivesNoReason", func(p *onejob.Policy) { p.Failover = onejob.FailoverDeclared }, "needs a reason"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}
			tt.change(&p)
			_, err := p.WithDefaults()
			e := wantError(t, err, onejob.CodeInvalidArgument)
			if !strings.Contains(e.Message, tt.says) {
				t.Errorf("the refusal says %q; want %q in it", e.Message, tt.says)
			}
		})
	}
}

func TestAllFaultsOfAPolicyAreToldAtOnceAndInOneOrder(t *testing.T) {
	t.Parallel()
	p := onejob.Policy{Lanes: -1, MaxAttempts: -1, Timeout: -1, Linger: -1, Deadline: -1, Failover: "maybe"}
	_, err := p.WithDefaults()
	e := wantError(t, err, onejob.CodeInvalidArgument)
	for _, want := range []string{"effect", "targets", "lanes", "max_attempts", "timeout", "linger", "deadline", "failover"} {
		if !strings.Contains(e.Message, want) {
			t.Errorf("the refusal says %q; want %q in it", e.Message, want)
		}
	}
	for range 20 {
		if _, again := p.WithDefaults(); again.Error() != err.Error() {
			t.Fatalf("asked again the refusal says\n%v\nafter\n%v", again, err)
		}
	}
}
