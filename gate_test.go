package onejob_test

import (
	"slices"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestTheGateIsAskedOnlyWhereItsWordCounts(t *testing.T) {
	t.Parallel()
	pinned := func(p *onejob.Policy) { p.Contract = &onejob.ContractTerms{Digest: "v1:contract"} }
	refused := tries(failedOn("a", onejob.OutcomeRefused, onejob.NextElsewhere))
	running := tries(held("a", onejob.AttemptRunning))
	for _, tt := range []struct {
		name     string
		job      *onejob.Job
		attempts []onejob.Attempt
		ask      onejob.Ask
		want     []string
	}{
		{"WithoutAContract", openJob(t), refused, onejob.Ask{}, nil},
		{"AtTheStart", openJob(t, pinned), nil, onejob.Ask{}, nil},
		{"InDoubt", openJob(t, pinned), running, onejob.Ask{}, nil},
		{"WithFailoverOff", openJob(t, pinned, never), refused, onejob.Ask{}, nil},
		{"Declared", openJob(t, pinned, declared), refused, onejob.Ask{}, nil},
		{"WhenItIsOver", with(openJob(t, pinned), func(j *onejob.Job) { j.State = onejob.JobFailed }), refused, onejob.Ask{}, nil},
		{"AfterARefusal", openJob(t, pinned), refused, onejob.Ask{}, []string{"b", "c"}},
		{"AtTheStartForATargetThatSomebodyNames", openJob(t, pinned), nil, onejob.Ask{Target: "c"}, []string{"c"}},
		{"ForARaceThoughDeclared", openJob(t, pinned, declared, twoLanes), running, onejob.Ask{Lane: 1}, []string{"a", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, needed := onejob.GateOf(tt.job, tt.attempts, tt.ask)
			if needed != (len(tt.want) > 0) || needed && !slices.Equal(got.Targets, tt.want) {
				t.Errorf("the gate is asked about %q, %t; want %q", got.Targets, needed, tt.want)
			}
		})
	}
}

// Windows overlap: two violations count wherever they fall, in one call or in two.
func TestViolationsAreCountedInEveryWindow(t *testing.T) {
	t.Parallel()
	terms := func(outputs int, violations ...int) *onejob.CertificateObserveParams {
		return &onejob.CertificateObserveParams{Outputs: outputs, Violations: violations, SuspendAfter: 2, Window: 50}
	}
	for _, tt := range []struct {
		name  string
		calls []*onejob.CertificateObserveParams
		want  bool
	}{
		{"TheFirstAndTheFiftieth", []*onejob.CertificateObserveParams{terms(50, 1, 50)}, true},
		{"TheFirstAndTheFiftyFirst", []*onejob.CertificateObserveParams{terms(51, 1, 51)}, false},
		{"AcrossCalls", []*onejob.CertificateObserveParams{terms(40, 40), terms(49, 49)}, true},
		{"AcrossCallsTooFar", []*onejob.CertificateObserveParams{terms(40, 40), terms(50, 50)}, false},
		{"InAnyOrder", []*onejob.CertificateObserveParams{terms(60, 59, 2, 12)}, true},
		{"NoneEver", []*onejob.CertificateObserveParams{terms(1000), terms(1000)}, false},
		{"WithoutTerms", []*onejob.CertificateObserveParams{{Outputs: 2, Violations: []int{1, 2}}}, false},
		{"WithoutAWindow", []*onejob.CertificateObserveParams{{Outputs: 900, Violations: []int{1, 900}, SuspendAfter: 2}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var watch onejob.CertificateWatch
			suspend := false
			for _, p := range tt.calls {
				var over bool
				watch, over = watch.Observe(p)
				suspend = suspend || over
			}
			if suspend != tt.want {
				t.Errorf("suspended: %t; want %t", suspend, tt.want)
			}
			if len(watch.Violations) > 2 {
				t.Errorf("%d violations are kept; want at most 2", len(watch.Violations))
			}
		})
	}
}

func TestACertificateIsExtendedOnlyWhileItOpensSomething(t *testing.T) {
	t.Parallel()
	c := onejob.Certificate{Verdict: onejob.RunCertified, Status: onejob.CertificateActive, ExpiresAt: noon.Add(time.Hour)}
	later := noon.Add(10 * time.Hour)
	if !c.Extend(later, noon) || !c.ExpiresAt.Equal(later) || !c.RenewAt.Equal(noon.Add(5*time.Hour)) {
		t.Errorf("it ends at %s and is renewed at %s; want %s, and half of that", c.ExpiresAt, c.RenewAt, later)
	}
	if c.Extend(noon.Add(time.Hour), noon) {
		t.Error("its end was moved back")
	}
	if c.Extend(later.Add(time.Hour), later) {
		t.Error("one that is over was extended")
	}
	c.Status = onejob.CertificateSuspended
	if c.Extend(later.Add(time.Hour), noon) {
		t.Error("one that is suspended was extended")
	}
}
