package verification_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/verification"
)

// paired is the contract with an equivalence.
func paired(t testing.TB, cases int) *contract.Contract {
	return contractOf(t, cases, "0.8", "side_effects: none", "equivalence: {compare: [output.severity, output.human], min_agreement: 0.8}\nside_effects: none")
}

func TestAPairIsHeldToThePrimarysAgreementWithItself(t *testing.T) {
	t.Parallel()
	honest := sim.Mind{}
	contrary := sim.Mind{AnswerFunc: func(q sim.Question) string {
		severity := "low"
		for _, s := range []string{"medium", "high"} {
			if strings.Contains(q.Prompt, "Severity: "+s) {
				severity = s
			}
		}
		return `{"severity":"` + severity + `","refund_cents":1,"human":true,"summary":"s","parts":{"note":"n"}}`
	}}
	for name, c := range map[string]struct {
		primary    sim.Mind
		equivalent bool
	}{"Same": {honest, true}, "Other": {contrary, false}} {
		store := recorder(t)
		primary := indoor(t, c.primary)
		primary.Name, primary.Digest = "first", "v1:first"
		p := verification.Params{Contract: paired(t, 30), Target: indoor(t, honest), Primary: &primary}
		r := run(t, p, verification.Options{Recorder: store})
		if r.State != onejob.RunCertified || r.Pair == nil || r.Pair.Equivalent != c.equivalent || r.Pair.SelfAgreed != 30 {
			t.Errorf("%s: %s, %+v: %s", name, r.State, r.Pair, r.Detail)
		}
		digest, err := contract.Digest(p.Contract)
		if err != nil {
			t.Fatal(err)
		}
		pairs, err := store.PairList(t.Context(), digest, onejob.DefaultEnvironment)
		if err != nil || len(pairs) != 1 || pairs[0].Equivalent != c.equivalent || pairs[0].ExpiresAt.IsZero() {
			t.Errorf("%s: the pairs are %+v: %v", name, pairs, err)
		}
	}
}

func TestAPrimaryThatIsDownTakesNothingFromTheTarget(t *testing.T) {
	t.Parallel()
	primary := targetAt(t, "http://127.0.0.1:1", chat)
	primary.Name, primary.Digest = "first", "v1:first"
	r := run(t, verification.Params{Contract: paired(t, 20), Target: indoor(t, sim.Mind{}), Primary: &primary}, verification.Options{Recorder: recorder(t)})
	if r.State != onejob.RunCertified || r.Pair != nil || !strings.Contains(table(t, r), "it may not stand in for first") {
		t.Errorf("%s, %+v:\n%s", r.State, r.Pair, table(t, r))
	}
}

func TestWhatThePrimaryAnsweredBeforeIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	store := recorder(t)
	c := contractOf(t, 20, "0.8", "repeats: 1", "repeats: 2", "side_effects: none", "equivalence: {compare: [output.severity], min_agreement: 0.8}\nside_effects: none")
	primary := indoor(t, sim.Mind{})
	primary.Name, primary.Digest = "first", "v1:first"
	run(t, verification.Params{Contract: c, Target: primary}, verification.Options{Recorder: store})
	primary.Provider = struct {
		deaf
		onejob.Prompter
	}{deaf{}, primary.Provider.(onejob.Prompter)}
	r := run(t, verification.Params{Contract: c, Target: indoor(t, sim.Mind{}), Primary: &primary}, verification.Options{Recorder: store})
	if r.Pair == nil || !r.Pair.Equivalent {
		t.Errorf("%s, %+v:\n%s", r.State, r.Pair, table(t, r))
	}
}

func TestReplayJudgesKeptOutputsByOtherAssertionsWithoutACall(t *testing.T) {
	t.Parallel()
	store := recorder(t)
	target := indoor(t, sim.Mind{})
	c := contractOf(t, 30, "0.8")
	run(t, verification.Params{Contract: c, Target: target}, verification.Options{Recorder: store})
	old, err := contract.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	target.Provider = deaf{}
	for text, want := range map[string]onejob.RunState{"output.refund_cents == input.refund": onejob.RunCertified, "output.human": onejob.RunRefused} {
		stricter := contractOf(t, 30, "0.8", "expectations:", "  - {id: more, cel: \""+text+"\"}\nexpectations:")
		r, err := verification.Replay(t.Context(), verification.ReplayParams{Contract: stricter, Of: old, Target: target}, store)
		if err != nil || r.State != want || r.Report.Calls != 0 || r.Certificate.ID != "" {
			t.Errorf("%s: %s by %s: %v", text, r.State, r.Reason, err)
		}
	}
}

func TestReplayJudgesAnewWhatFailedByAnAssertionThatIsGone(t *testing.T) {
	t.Parallel()
	store := recorder(t)
	target := indoor(t, sim.Mind{})
	stricter := contractOf(t, 30, "0.8", "expectations:", "  - {id: more, cel: \"output.human\"}\nexpectations:", "repeats: 1", "repeats: 1, stop_early: never")
	if r := run(t, verification.Params{Contract: stricter, Target: target}, verification.Options{Recorder: store}); r.State != onejob.RunRefused {
		t.Fatalf("%s by %s; want it refused", r.State, r.Reason)
	}
	old, err := contract.Digest(stricter)
	if err != nil {
		t.Fatal(err)
	}
	target.Provider = deaf{}
	r, err := verification.Replay(t.Context(), verification.ReplayParams{Contract: contractOf(t, 30, "0.8"), Of: old, Target: target}, store)
	if err != nil || r.State != onejob.RunCertified {
		t.Errorf("%s by %s: %s, %v; want it certified", r.State, r.Reason, r.Detail, err)
	}
}

func TestWhoThePrimaryIsHasNoPlaceInTheCertificateOfAnother(t *testing.T) {
	t.Parallel()
	primary := targetAt(t, liar(t, "model_swapped").URL(), chat) // it answers as m-lite, with a fingerprint
	primary.Name, primary.Digest = "first", "v1:first"
	target := targetAt(t, liar(t, "seed=1").URL(), messages)
	r := run(t, verification.Params{Contract: paired(t, 20), Target: target, Primary: &primary}, verification.Options{Recorder: recorder(t)})
	if r.State != onejob.RunCertified || r.Pair == nil {
		t.Fatalf("%s: %s\n%s", r.State, r.Detail, table(t, r))
	}
	if got := r.Certificate.Observed; got.Model != "m" || got.Fingerprint != "" {
		t.Errorf("later answers would be compared with %+v", got)
	}
	if !strings.Contains(r.Report.Observed, "model=m fingerprint={-}") {
		t.Errorf("observed is %s", r.Report.Observed)
	}
}
