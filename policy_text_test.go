package onejob_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// texts are in rows that exist: what they mean never changes.
func TestAPolicysTextMeansWhatItMeant(t *testing.T) {
	t.Parallel()

	usual := onejob.Policy{
		Effect: onejob.EffectExternal, Targets: []string{"a"}, Lanes: 1,
		Timeout: time.Minute, Linger: 10 * time.Minute, SendWithin: 30 * time.Second, MaxAttempts: 5, PerTarget: 3,
		Backoff: onejob.Backoff{Initial: time.Second, Max: time.Minute}, Failover: onejob.FailoverCertified,
	}
	other := onejob.Policy{
		Effect: onejob.EffectNone, Targets: []string{"a", "b"}, Lanes: 2, RaceAfter: time.Second,
		Timeout: 2 * time.Second, Linger: 3 * time.Second, SendWithin: 4 * time.Second, MaxAttempts: 7, PerTarget: 1,
		Backoff: onejob.Backoff{Initial: time.Second, Max: time.Hour}, Deadline: time.Hour,
		Failover: onejob.FailoverDeclared, FailoverWhy: "they are equal", AskAfter: time.Hour, Contract: &onejob.ContractTerms{Digest: "v1:1"},
	}
	tests := []struct {
		name, text string
		want       onejob.Policy
	}{
		{"Usual", `{"effect":"external","targets":["a"],"v":1}`, usual},
		{"NothingAsUsual", `{"ask_after":3600000000000,"backoff":{"initial":1000000000,"max":3600000000000},"contract":{"digest":"v1:1"},` +
			`"deadline":3600000000000,"effect":"none","failover":"declared","failover_why":"they are equal","lanes":2,"linger":3000000000,` +
			`"max_attempts":7,"per_target":1,"race_after":1000000000,"send_within":4000000000,"targets":["a","b"],"timeout":2000000000,"v":1}`, other},
		{"ZeroIsSaid", `{"backoff":{"initial":0,"max":0},"failover":"","lanes":0,"linger":0,"max_attempts":0,"per_target":0,"send_within":0,"timeout":0,"v":1}`, onejob.Policy{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := onejob.EncodePolicy(tt.want); got != tt.text {
				t.Errorf("encoded as\n%s; want\n%s", got, tt.text)
			}
			got, err := onejob.DecodePolicy(tt.text)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("decoded as %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestAPolicyWrittenOutIsReadAsItIs(t *testing.T) {
	t.Parallel()

	got, err := onejob.DecodePolicy(`{"effect":"none","targets":["a"],"lanes":1,"timeout":5}`)
	want := onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}, Lanes: 1, Timeout: 5}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded as %+v, %v; want %+v", got, err, want)
	}
}

func TestAPolicysTextThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "garbage", `{"effect":"none","targets":["a"],"v":2}`} {
		if got, err := onejob.DecodePolicy(text); err == nil {
			t.Errorf("%q was decoded as %+v", text, got)
		}
	}
}
