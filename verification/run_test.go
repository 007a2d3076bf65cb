package verification_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/verification"
)

var errNoServer = errors.ErrUnsupported

func TestAnHonestTargetIsCertifiedByEachProtocol(t *testing.T) {
	t.Parallel()
	for _, on := range []api{chat, responses, messages} {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			store := recorder(t)
			c := contractOf(t, 12, "0.7", "repeats: 1", "repeats: 2")
			r := run(t, verification.Params{Contract: c, Target: targetAt(t, liar(t, "honest").URL(), on)}, verification.Options{Recorder: store})
			if r.State != onejob.RunCertified {
				t.Fatalf("it is %s: %s\n%s", r.State, r.Detail, table(t, r))
			}
			checkCertificate(t, r, on)
			samples, err := store.SampleList(t.Context(), onejob.SampleListParams{RunID: r.Report.RunID, WithOutput: true})
			if err != nil || len(samples) != r.Report.Calls {
				t.Errorf("%d samples are kept of %d calls: %v", len(samples), r.Report.Calls, err)
			}
			jobs, err := store.CertificateList(t.Context(), onejob.CertificateListParams{Live: true, Limit: 10})
			if err != nil || len(jobs) != 1 {
				t.Errorf("there are %d live certificates: %v", len(jobs), err)
			}
		})
	}
}

func checkCertificate(t *testing.T, r verification.Result, on api) {
	t.Helper()
	cert := r.Certificate
	if life := cert.ExpiresAt.Sub(cert.IssuedAt); cert.ID == "" || life != 30*24*time.Hour {
		t.Errorf("%q lasts %s; want 30 days, as it is pinned", cert.ID, life)
	}
	if cert.Observed.Model != "m" || on == chat && cert.Observed.Fingerprint == "" {
		t.Errorf("the baseline is %+v", cert.Observed)
	}
	var counts map[string]contract.Tally
	if err := json.Unmarshal(cert.Counts, &counts); err != nil || counts["structure"].Cases != 12 || counts["structure"].Samples != 24 {
		t.Errorf("the counts are %s: %v", cert.Counts, err)
	}
	text := table(t, r)
	for _, want := range []string{
		"S1 render", "S2 count       PASS", "S3 probes      PASS    7/7", "S4 structure   PASS    12/12 cases   >= 77.9 % of cases (95 % one-sided, exact), gate 70 %",
		"S6 operational PASS", "VERDICT certified until ", "What this shows: on these 12 inputs. It does not show rare inputs",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestTheLifeOfACertificateFollowsFromTheNameOfTheModel(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		pinned, hosted bool
		want           time.Duration
	}{{true, false, 30 * day}, {false, false, 3 * day}, {false, true, 14 * day}, {true, true, 14 * day}} {
		target := indoor(t, sim.Mind{})
		target.Pinned, target.SelfHosted = c.pinned, c.hosted
		r := run(t, verification.Params{Contract: contractOf(t, 6, "0.6"), Target: target}, verification.Options{Recorder: recorder(t)})
		if got := r.Certificate.ExpiresAt.Sub(r.Certificate.IssuedAt); got != c.want {
			t.Errorf("pinned %v, self-hosted %v: %s; want %s (%s)", c.pinned, c.hosted, got, c.want, r.Detail)
		}
	}
}

func TestASchemaThatIsIgnoredShowsInTwoCalls(t *testing.T) {
	t.Parallel()
	for _, on := range []api{chat, responses, messages} {
		srv := liar(t, "schema_ignored")
		r := run(t, verification.Params{Contract: contractOf(t, 60, "0.95"), Target: targetAt(t, srv.URL(), on)}, verification.Options{Recorder: recorder(t)})
		if r.State != onejob.RunRefused || r.Reason != "schema_nonce" || r.Report.Calls > 2 {
			t.Errorf("%s: %s by %s in %d calls; want refused by schema_nonce in two at most", on, r.State, r.Reason, r.Report.Calls)
		}
		if text := table(t, r); !strings.Contains(text, "schema did not reach the decoder (class param_ignored)") || !strings.Contains(text, "hint   gateway accepted the schema") {
			t.Errorf("the report says neither class nor hint:\n%s", text)
		}
	}
}

func TestAProviderThatIsDownMakesARunInconclusive(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"Overloaded": "status=503", "RateLimited": "status=429", "Gone": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "http://127.0.0.1:1"
			if fault != "" {
				srv := liar(t, "honest")
				srv.Script(repeated(fault, 500)...)
				url = srv.URL()
			}
			store := recorder(t)
			r, err := verification.Run(t.Context(), verification.Params{Contract: contractOf(t, 60, "0.95"), Target: targetAt(t, url, chat)}, verification.Options{Recorder: store})
			if !errors.Is(err, verification.ErrUnreachable) || r.State != onejob.RunInconclusive || r.Reason != "unreachable" {
				t.Fatalf("%s by %s: %v", r.State, r.Reason, err)
			}
			checkNothingIssued(t, store)
		})
	}
}

func checkNothingIssued(t *testing.T, store onejob.CertificateStore) {
	t.Helper()
	live, err := store.CertificateList(t.Context(), onejob.CertificateListParams{Live: true, Limit: 10})
	if err != nil || len(live) != 0 {
		t.Errorf("there are %d live certificates: %v", len(live), err)
	}
}

func repeated(fault string, n int) []sim.Step {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fault
	}
	return sim.MustParse(steps...)
}

func TestAProviderThatGoesDownHalfwayLeavesWhatWasSpent(t *testing.T) {
	t.Parallel()
	target := indoor(t, sim.Mind{})
	target.Provider = &failing{target.Provider.(*indoors), 30, &atomic.Int64{}}
	r, err := verification.Run(t.Context(), verification.Params{Contract: contractOf(t, 60, "0.95"), Target: target}, verification.Options{Recorder: recorder(t)})
	if !errors.Is(err, verification.ErrUnreachable) || r.State != onejob.RunInconclusive {
		t.Fatalf("%s: %v", r.State, err)
	}
	if r.Report.SpendMicros == 0 || r.Report.Calls < 30 || r.Report.Calls > 40 {
		t.Errorf("%d calls and %d micros are reported", r.Report.Calls, r.Report.SpendMicros)
	}
}

// failing answers so many calls, and is overloaded then.
type failing struct {
	*indoors
	good  int64
	calls *atomic.Int64
}

func (p *failing) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	if p.calls.Add(1) > p.good {
		return onejob.Answer{}, overloaded()
	}
	return p.indoors.Call(ctx, req)
}

func overloaded() error {
	return &onejob.CallError{Proof: onejob.ErrRefused, Failure: onejob.Failure{Code: "overloaded"}, Evidence: onejob.Evidence{Status: http.StatusServiceUnavailable}}
}

// hiccup is overloaded once in so many calls.
type hiccup struct {
	*indoors
	every int64
	calls *atomic.Int64
}

func (p *hiccup) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	if p.calls.Add(1)%p.every == 0 {
		return onejob.Answer{}, overloaded()
	}
	return p.indoors.Call(ctx, req)
}

func TestAFewCallsThatCameToNothingShowNothingAndManyAreTooMany(t *testing.T) {
	t.Parallel()
	for every, want := range map[int64]onejob.RunState{40: onejob.RunCertified, 7: onejob.RunInconclusive} {
		target := indoor(t, sim.Mind{})
		target.Provider = &hiccup{target.Provider.(*indoors), every, &atomic.Int64{}}
		r := run(t, verification.Params{Contract: contractOf(t, 60, "0.95"), Target: target}, verification.Options{Recorder: recorder(t), Parallel: 1})
		if r.State != want {
			t.Errorf("one in %d came to nothing: %s by %s: %s", every, r.State, r.Reason, r.Detail)
		}
	}
}

func TestAPassAfterAFailStaysRefused(t *testing.T) {
	t.Parallel()
	for name, mind := range map[string]string{"Probe": "system_dropped", "Structure": "enum_drift", "Semantic": "honest"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, srv := recorder(t), liar(t, mind)
			if name == "Semantic" {
				wrong := sim.Mind{AnswerFunc: func(sim.Question) string {
					return `{"severity":"low","refund_cents":1,"human":true,"summary":"s","parts":{"note":"n"},"probe":"x"}`
				}}
				srv = sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": wrong}})
			}
			p := verification.Params{Contract: contractOf(t, 60, "0.95"), Target: targetAt(t, srv.URL(), chat)}
			first := run(t, p, verification.Options{Recorder: store})
			if err := srv.SetModel("m", sim.Mind{}); err != nil {
				t.Fatal(err)
			}
			second := run(t, p, verification.Options{Recorder: store})
			if first.State != onejob.RunRefused || second.State != onejob.RunRefused || second.Reason != first.Reason {
				t.Errorf("%s by %s, then %s by %s: %s", first.State, first.Reason, second.State, second.Reason, second.Detail)
			}
			p.Target.Digest = "v1:edited"
			if third := run(t, p, verification.Options{Recorder: store}); third.State != onejob.RunCertified {
				t.Errorf("another target is %s by %s: %s", third.State, third.Reason, third.Detail)
			}
			checkVerdicts(t, store, p.Contract)
		})
	}
}

// checkVerdicts expects one certificate, that of the edited target.
func checkVerdicts(t *testing.T, store onejob.CertificateStore, c *contract.Contract) {
	t.Helper()
	digest, err := contract.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	live, err := store.CertificateList(t.Context(), onejob.CertificateListParams{ContractDigest: digest, Live: true, Limit: 10})
	if err != nil || len(live) != 1 || live[0].TargetDigest != "v1:edited" {
		t.Errorf("the live certificates are %+v: %v", live, err)
	}
}

func TestTenSamplesMissWhatSixtyCatch(t *testing.T) {
	t.Parallel()
	missed, caught := 0, 0
	const seeds = 20
	for seed := range uint64(seeds) {
		mind := sim.Mind{Lies: []sim.Lie{{Fault: "enum_drift", Rate: 0.05}}, Seed: seed}
		for _, cases := range []int{10, 60} {
			c := contractOf(t, cases, map[int]string{10: "0.7", 60: "0.95"}[cases])
			r := run(t, verification.Params{Contract: c, Target: indoor(t, mind)}, verification.Repeatable(verification.Options{}, seed))
			switch {
			case cases == 10 && r.State == onejob.RunCertified:
				missed++
			case cases == 60 && r.State == onejob.RunRefused:
				caught++
			}
		}
	}
	t.Logf("a fault of 5 %%: of %d seeds ten cases miss it %d times, sixty catch it %d times", seeds, missed, caught)
	if missed < seeds/3 || caught < seeds-2 {
		t.Errorf("ten cases miss it %d times of %d, sixty catch it %d times", missed, seeds, caught)
	}
}

func TestAContractWithoutAPrompterOrASandboxIsNotRun(t *testing.T) {
	t.Parallel()
	target := indoor(t, sim.Mind{})
	bare := target
	bare.Provider = deaf{}
	external := []string{"side_effects: none", "side_effects: external", "verify: {", "verify: {mode: sandbox, ", "automatic: true", "automatic: false"}
	for name, c := range map[string]struct {
		p    verification.Params
		want error
	}{
		"NoPrompter": {verification.Params{Contract: contractOf(t, 6, "0.6"), Target: bare}, verification.ErrNoPrompter},
		"NoSandbox":  {verification.Params{Contract: contractOf(t, 6, "0.6", external...), Target: target}, verification.ErrNoSandbox},
		"Recorded":   {verification.Params{Contract: contractOf(t, 6, "0.6", "verify: {", "verify: {mode: recorded, "), Target: target}, verification.ErrRecordedOnly},
	} {
		if r, err := verification.Run(t.Context(), c.p, verification.Options{}); !errors.Is(err, c.want) || r.Report.Calls != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	target.Sandbox = true
	r := run(t, verification.Params{Contract: contractOf(t, 6, "0.6", external...), Target: target}, verification.Options{Recorder: recorder(t)})
	if !r.Certificate.Sandbox || r.State != onejob.RunCertified {
		t.Errorf("in a sandbox it is %s, marked %v: %s", r.State, r.Certificate.Sandbox, r.Detail)
	}
}

type deaf struct{}

func (deaf) Call(context.Context, onejob.Request) (onejob.Answer, error) {
	return onejob.Answer{}, errors.New("it is called")
}

func TestARequiredParameterThatATargetCannotCarryCostsNothing(t *testing.T) {
	t.Parallel()
	c := contractOf(t, 6, "0.6", "max_output_tokens: 400}", "max_output_tokens: 400, seed: 7}")
	srv := liar(t, "honest")
	r := run(t, verification.Params{Contract: c, Target: targetAt(t, srv.URL(), messages)}, verification.Options{Recorder: recorder(t)})
	if r.State != onejob.RunRefused || r.Reason != onejob.GateParamUnsupported || r.Report.Calls != 0 || len(srv.Ledger()) != 0 {
		t.Errorf("%s by %s in %d calls: %s", r.State, r.Reason, r.Report.Calls, r.Detail)
	}
}

func TestAPromptThatDoesNotFitIsRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	for _, on := range []api{chat, responses, messages} {
		target := targetAt(t, liar(t, "honest").URL(), on)
		target.ContextTokens = 500
		r := run(t, verification.Params{Contract: contractOf(t, 6, "0.6"), Target: target}, verification.Options{Recorder: recorder(t)})
		if r.State != onejob.RunRefused || r.Reason != onejob.GateContextTooLarge || r.Report.Calls != 0 || r.Report.FailedStage() != verification.StageCount {
			t.Errorf("%s: %s by %s in %d calls: %s", on, r.State, r.Reason, r.Report.Calls, r.Detail)
		}
	}
}

func TestAPartialRunOpensNothing(t *testing.T) {
	t.Parallel()
	store := recorder(t)
	for _, stage := range verification.Stages()[:6] {
		r := run(t, verification.Params{Contract: contractOf(t, 6, "0.6"), Target: indoor(t, sim.Mind{}), UpTo: stage}, verification.Options{Recorder: store})
		if r.State != onejob.RunInconclusive || r.Reason != "partial" {
			t.Errorf("up to %s it is %s by %s: %s", stage, r.State, r.Reason, r.Detail)
		}
	}
	checkNothingIssued(t, store)
}

func TestARunThatIsGivenUpIsInconclusive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := recorder(t)
	r, err := verification.Run(ctx, verification.Params{Contract: contractOf(t, 60, "0.95"), Target: indoor(t, sim.Mind{})}, verification.Options{
		Recorder: store, ProgressFunc: func(p verification.Progress) {
			if p.Stage == verification.StageStructure && p.Done == 10 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || r.State != onejob.RunInconclusive || r.Reason != "cancelled" {
		t.Errorf("%s by %s: %v", r.State, r.Reason, err)
	}
	runs, err := store.RunList(context.Background(), onejob.RunListParams{Limit: 1})
	if err != nil || len(runs) != 1 || runs[0].State != onejob.RunInconclusive || runs[0].Calls != r.Report.Calls {
		t.Errorf("the run is kept as %+v: %v", runs, err)
	}
}

func TestTwoModelsInOneRunAreNotCertified(t *testing.T) {
	t.Parallel()
	for mind, pinned := range map[string]bool{"model_swapped": true, "model_swapped:0.2,seed=3": false} {
		target := targetAt(t, liar(t, mind).URL(), chat)
		target.Pinned = pinned
		r := run(t, verification.Params{Contract: contractOf(t, 60, "0.95"), Target: target}, verification.Options{Recorder: recorder(t)})
		if r.State != onejob.RunInconclusive || r.Reason != "observed" {
			t.Errorf("%s: %s by %s: %s", mind, r.State, r.Reason, r.Detail)
		}
	}
}
