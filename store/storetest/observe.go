package storetest

import (
	"context"

	"github.com/onejob-dev/onejob"
)

func observing() []promise {
	return []promise{
		{name: "Observe/TwoViolationsInFiftySuspend", test: testObserveSuspends},
		{name: "Observe/TwoFurtherApartDoNot", test: testObserveApart},
		{name: "Observe/CountsAcrossCalls", test: testObserveAcross},
		{name: "Observe/ConcernsOneCertificate", test: testObserveOne},
		{name: "Observe/ANewCertificateBeginsAnew", test: testObserveAnew},
		{name: "Observe/NothingIsSuspendedTwice", test: testObserveOnce},
		{name: "Observe/EveryCallerCounts", test: testObserveConcurrent, handles: 3},
	}
}

func testObserveSuspends(f *fixture) {
	c := f.certify("b")
	suspended := f.observe(outputs("b", 50, 1, 50))
	if len(suspended) != 1 || suspended[0].ID != c.ID || suspended[0].Status != onejob.CertificateSuspended ||
		suspended[0].Reason != onejob.GateSuspendedViolations || suspended[0].Detail != "fenced" {
		f.Errorf("what was suspended is %+v; want the certificate, with the reason", suspended)
	}
	f.wantStatus(c, onejob.CertificateSuspended)
	f.wantEntries(onejob.InstanceOwner) // no person did it
}

func testObserveApart(f *fixture) {
	c := f.certify("b")
	if suspended := f.observe(outputs("b", 51, 1, 51), outputs("b", 200)); len(suspended) != 0 {
		f.Errorf("two in 51 suspended %+v", suspended)
	}
	f.wantStatus(c, onejob.CertificateActive)
}

func testObserveAcross(f *fixture) {
	c := f.certify("b")
	f.observe(outputs("b", 10, 4))
	f.observe(outputs("b", 43)) // the next is the 54th
	if suspended := f.observe(outputs("b", 1, 1)); len(suspended) != 0 {
		f.Errorf("the 4th and the 54th suspended %+v", suspended)
	}
	f.observe(outputs("b", 48))
	if suspended := f.observe(outputs("b", 1, 1)); len(suspended) != 1 { // the 103rd
		f.Errorf("the 54th and the 103rd suspended %d; want 1", len(suspended))
	}
	f.wantStatus(c, onejob.CertificateSuspended)
}

func testObserveOne(f *fixture) {
	b, c := f.certify("b"), f.certify("c")
	elsewhere := outputs("b", 2, 1, 2)
	elsewhere.Environment = "staging"
	edited := outputs("b", 2, 1, 2)
	edited.ContractDigest = otherContract
	never := outputs("b", 2, 1, 2)
	never.SuspendAfter = 0
	if suspended := f.observe(elsewhere, edited, never, outputs("c", 2, 1), outputs("d", 2, 1, 2), outputs("c", 2, 2)); len(suspended) != 1 || suspended[0].ID != c.ID {
		f.Errorf("what was suspended is %+v; want c's", suspended)
	}
	f.wantStatus(b, onejob.CertificateActive)
}

func testObserveAnew(f *fixture) {
	f.certify("b")
	f.observe(outputs("b", 10, 9))
	c := f.certify("b")
	if suspended := f.observe(outputs("b", 10, 1)); len(suspended) != 0 {
		f.Errorf("a violation under the certificate before counted: %+v", suspended)
	}
	f.wantStatus(c, onejob.CertificateActive)
}

func testObserveOnce(f *fixture) {
	c := f.certify("b")
	f.observe(outputs("b", 2, 1, 2))
	if suspended := f.observe(outputs("b", 2, 1, 2)); len(suspended) != 0 {
		f.Errorf("it was suspended again: %+v", suspended)
	}
	f.verify(runOf("c"), onejob.RunRefused)
	if suspended := f.observe(outputs("c", 2, 1, 2)); len(suspended) != 0 {
		f.Errorf("a refusal was suspended: %+v", suspended)
	}
	f.wantStatus(c, onejob.CertificateSuspended)
}

// Lost updates would let violations go by.
func testObserveConcurrent(f *fixture) {
	const callers = 12
	for range rounds() / 3 {
		c := f.certify("b")
		suspended := make([]int, callers)
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			p := outputs("b", 4)
			if i < 2 {
				p.Violations = []int{1}
			}
			got, err := f.recordsOf(s).CertificateObserve(ctx, []onejob.CertificateObserveParams{p})
			suspended[i] = len(got)
			return err
		})
		total := 0
		for _, n := range suspended {
			total += n
		}
		if total != 1 {
			f.Fatalf("two violations among %d outputs suspended %d times; want 1", 4*callers, total)
		}
		f.wantStatus(c, onejob.CertificateSuspended)
	}
}
