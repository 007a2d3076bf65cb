package certify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/verification"
)

const echoing = `apiVersion: onejob/contract.v1
kind: sort_ticket
input_schema: {type: object, additionalProperties: false, required: [body], properties: {body: {type: string, maxLength: 1000}}}
output:
  media: json
  schema: {type: object, additionalProperties: false, required: [severity], properties: {severity: {enum: [low, high]}}}
cases: {files: [cases.jsonl], min_distinct: 10}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.70, max_failures: 0}}
side_effects: none
failover: {automatic: true}
verify: {mode: MODE, max_calls: 20, max_spend_usd: 0.05}
certificate: {ttl: {alias: TTL}}
`

// echo is a target that calls nobody, so that time in a test is its own.
type echo struct {
	calls  atomic.Int64
	down   atomic.Bool
	broken atomic.Bool
	cost   atomic.Int64
	took   atomic.Int64 // a [time.Duration]
}

// Call implements [onejob.Provider].
func (e *echo) Call(ctx context.Context, _ onejob.Request) (onejob.Answer, error) {
	e.calls.Add(1)
	select {
	case <-ctx.Done():
		return onejob.Answer{}, ctx.Err()
	case <-time.After(time.Duration(e.took.Load())):
	}
	switch {
	case e.down.Load():
		return onejob.Answer{}, errors.New("nobody is there")
	case e.broken.Load():
		return onejob.Answer{Body: []byte(`{"severity":"maybe"}`), CostMicros: e.cost.Load()}, nil
	}
	return onejob.Answer{Body: []byte(`{"severity":"low"}`), CostMicros: e.cost.Load()}, nil
}

// renewal is a store with a certified fallback, and offices that keep it renewed.
type renewal struct {
	*testing.T
	store  *memory.Store
	target *echo
	kind   certify.Kind
	digest string
}

// renewing runs play in a bubble of time, with a certificate of such a life.
func renewing(t *testing.T, mode, ttl string, play func(*renewal)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cases strings.Builder
		for i := range 10 {
			fmt.Fprintf(&cases, `{"id":"c%d","input":{"body":"ticket %d"},"tags":["hostile"]}`+"\n", i, i)
		}
		text := strings.NewReplacer("MODE", mode, "TTL", ttl).Replace(echoing)
		c, err := contract.Parse("echoing.yaml", []byte(text), fstest.MapFS{"cases.jsonl": {Data: []byte(cases.String())}})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := contract.Digest(c)
		if err != nil {
			t.Fatal(err)
		}
		body, err := c.Body()
		if err != nil {
			t.Fatal(err)
		}
		r := &renewal{T: t, store: memory.Open(memory.Options{}), target: &echo{}, digest: "v1:echo"}
		r.kind = certify.Kind{Contract: c, Policy: onejob.Policy{
			Effect: onejob.EffectNone, Targets: []string{"first", "echo"}, Failover: onejob.FailoverCertified, Contract: &onejob.ContractTerms{Digest: digest},
		}}
		r.target.took.Store(int64(time.Second))
		put := errors.Join(
			r.store.ContractPut(t.Context(), onejob.ContractVersion{Digest: digest, Kind: "sort_ticket", Body: body}),
			r.store.TargetPut(t.Context(), onejob.TargetVersion{Digest: r.digest, Name: "echo", Body: []byte(`{}`)}),
		)
		if put != nil {
			t.Fatal(put)
		}
		play(r)
	})
}

// node is one process that keeps certificates renewed until the test ends, or stop is
// called, by a clock that is so far ahead.
func (r *renewal) node(ahead time.Duration) (office *certify.Office, stop func()) {
	office = certify.New(certify.Options{
		Store: r.store, Kinds: map[string]certify.Kind{"sort_ticket": r.kind}, Digests: map[string]string{"echo": r.digest},
		Targets: map[string]verification.Target{"echo": {Target: onejob.Target{Name: "echo", Provider: r.target, Digest: r.digest}}},
		NowFunc: func() time.Time { return time.Now().Add(ahead) },
	})
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		office.KeepRenewed(ctx)
	}()
	stop = func() {
		cancel()
		<-done
		office.Close()
	}
	r.Cleanup(stop)
	return office, stop
}

// certify has the target verified by a person, and forgets the calls.
func (r *renewal) certify(office *certify.Office) onejob.Certificate {
	r.Helper()
	result, err := office.Verify(r.Context(), certify.VerifyParams{Kind: "sort_ticket", Target: "echo", Actor: "olga", Keep: true})
	if err != nil || result.State != onejob.RunCertified {
		r.Fatalf("it is %s: %s %s, %v", result.State, result.Reason, result.Detail, err)
	}
	r.target.calls.Store(0)
	return result.Certificate
}

// runs are the verifications that nobody asked for and that called somebody, oldest
// first.
func (r *renewal) runs() (runs []onejob.VerificationRun) {
	r.Helper()
	all, err := r.store.RunList(r.Context(), onejob.RunListParams{})
	if err != nil {
		r.Fatal(err)
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Trigger == certify.TriggerRenewal && (all[i].Calls > 0 || all[i].State == onejob.RunUnderWay) {
			runs = append(runs, all[i])
		}
	}
	return runs
}

// stands returns the certificate that stands.
func (r *renewal) stands() onejob.Certificate {
	r.Helper()
	live, err := r.store.CertificateList(r.Context(), onejob.CertificateListParams{Live: true})
	if err != nil || len(live) != 1 {
		r.Fatalf("%d certificates stand, %v; want one", len(live), err)
	}
	return live[0]
}

func TestACertificateIsRenewedAtHalfOfItsLife(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, _ := r.node(0)
		first := r.certify(office)
		time.Sleep(4*time.Hour + 45*time.Minute)
		if n := r.target.calls.Load(); n != 0 {
			t.Fatalf("before half of its life the target was called %d times", n)
		}
		time.Sleep(30 * time.Minute)
		runs, now := r.runs(), r.stands()
		if len(runs) != 1 || runs[0].State != onejob.RunCertified || runs[0].Calls != 10 {
			t.Fatalf("the renewals are %+v; want one of ten calls that certifies", runs)
		}
		if now.ID == first.ID || !now.ExpiresAt.After(first.ExpiresAt) || now.RunID != runs[0].ID {
			t.Errorf("%+v stands; want one that took the place of %s", now, first.ID)
		}
	})
}

func TestOfSeveralNodesOnePaysForARenewal(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, _ := r.node(0)
		for range 4 {
			r.node(0)
			r.node(-20 * time.Minute)
			r.node(2 * time.Hour)
		}
		r.certify(office)
		r.target.took.Store(int64(2 * time.Minute))
		time.Sleep(6 * time.Hour)
		if runs := r.runs(); len(runs) != 1 || r.target.calls.Load() != 10 {
			t.Errorf("%d nodes paid for %d calls: %+v; want one for ten", len(runs), r.target.calls.Load(), runs)
		}
	})
}

// A clock that is ahead begins what the store's clock then ends before anybody is
// called.
func TestTheStoresClockSaysWhenToRenew(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, stop := r.node(2 * time.Hour)
		r.certify(office)
		time.Sleep(4*time.Hour + 45*time.Minute)
		if n := r.target.calls.Load(); n != 0 {
			t.Errorf("two hours early by the store's clock the target was called %d times", n)
		}
		stop()
		if c := r.stands(); c.Verdict != onejob.RunCertified {
			t.Errorf("%+v stands", c)
		}
	})
}

func TestARenewalThatShowsNothingLeavesTheCertificateAndWaitsLongerEachTime(t *testing.T) {
	renewing(t, "live", "4d", func(r *renewal) {
		office, _ := r.node(0)
		r.node(2 * time.Hour) // to which every pause seems to be over
		first := r.certify(office)
		r.target.down.Store(true)
		time.Sleep(95 * time.Hour)
		runs := r.runs()
		if c := r.stands(); c.ID != first.ID || len(runs) < 4 {
			t.Fatalf("%s stands after %d renewals; want %s, after some", c.ID, len(runs), first.ID)
		}
		for i, want := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 12 * time.Hour} {
			if i+1 >= len(runs) {
				break
			}
			if gap := runs[i+1].StartedAt.Sub(runs[i].StartedAt); gap < want || gap > want+15*time.Minute || runs[i].State != onejob.RunInconclusive {
				t.Errorf("renewal %d was %s, and the next one came %s later; want inconclusive, and about %s", i, runs[i].State, gap, want)
			}
		}
		r.target.down.Store(false)
		time.Sleep(2 * time.Hour)
		if runs := r.runs(); len(runs) > 7 {
			t.Errorf("there are %d renewals in 47 hours", len(runs))
		}
	})
}

func TestARenewalSpendsNoMoreThanTheContractSays(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, _ := r.node(0)
		r.certify(office)
		r.target.cost.Store(20_000)
		time.Sleep(5*time.Hour + 30*time.Minute)
		runs := r.runs()
		if len(runs) != 1 || runs[0].State != onejob.RunInconclusive || runs[0].SpendMicros > 50_000+4*20_000 {
			t.Fatalf("the renewals are %+v; want one that stopped at 0.05 dollars", runs)
		}
	})
}

func TestARenewalThatFailsTakesTheCertificate(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, _ := r.node(0)
		r.certify(office)
		r.target.broken.Store(true)
		time.Sleep(9 * time.Hour)
		if runs := r.runs(); len(runs) != 1 || runs[0].State != onejob.RunRefused {
			t.Fatalf("the renewals are %+v; want one that refuses", runs)
		}
		if live, err := r.store.CertificateList(t.Context(), onejob.CertificateListParams{Live: true}); err != nil || len(live) != 0 {
			t.Errorf("%+v stands, %v; want none", live, err)
		}
	})
}

func TestNothingIsRenewedOfWhatIsNoLongerConfigured(t *testing.T) {
	for name, change := range map[string]func(*renewal){
		"Target":   func(r *renewal) { r.digest = "v1:another" },
		"Contract": func(r *renewal) { r.kind.Policy.Contract = &onejob.ContractTerms{Digest: "v1:another"} },
		"Kind":     func(r *renewal) { r.kind.Policy.Targets = []string{"first"} },
		"Live": func(r *renewal) {
			c := *r.kind.Contract
			c.Verify.Mode = "recorded"
			r.kind.Contract = &c
		},
	} {
		t.Run(name, func(t *testing.T) {
			renewing(t, "live", "10h", func(r *renewal) {
				office, stop := r.node(0)
				r.certify(office)
				stop()
				change(r)
				r.node(0)
				time.Sleep(9 * time.Hour)
				if n := r.target.calls.Load(); n != 0 {
					t.Errorf("the target was called %d times", n)
				}
			})
		})
	}
}

func TestARenewalUnderWayEndsWithItsServer(t *testing.T) {
	renewing(t, "live", "10h", func(r *renewal) {
		office, stop := r.node(0)
		first := r.certify(office)
		r.target.took.Store(int64(4 * time.Minute))
		time.Sleep(5 * time.Hour)
		for len(r.runs()) == 0 {
			time.Sleep(time.Minute)
		}
		if runs := r.runs(); len(runs) != 1 || runs[0].State != onejob.RunUnderWay {
			t.Fatalf("the renewals are %+v; want one under way", runs)
		}
		stop()
		if runs := r.runs(); len(runs) != 1 || runs[0].State != onejob.RunInconclusive || r.stands().ID != first.ID {
			t.Errorf("after the stop they are %+v; want it inconclusive, and %s standing", runs, first.ID)
		}
	})
}
