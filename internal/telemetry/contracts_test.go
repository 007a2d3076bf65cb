package telemetry_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/telemetry"
)

func TestContractsAndCertificatesAreCounted(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := telemetry.NewMetrics(telemetry.Options{NowFunc: func() time.Time { return now }})
	m.GateDecided("k", "b", false, onejob.GateExpired)
	m.GateDecided("k", "b", true, "")
	m.ContractViolated("k", "b", "fenced")
	m.CertificateEnded("k", "b", onejob.GateSuspendedDrift)
	m.ReverificationAsked("k", "b", "system_fingerprint")
	m.CertificatesStand([]onejob.Certificate{
		{Kind: "k", TargetName: "b", ExpiresAt: now.Add(time.Minute), RenewAt: now.Add(-time.Second)},
		{Kind: "k", TargetName: "b", ExpiresAt: now.Add(time.Hour), RenewAt: now.Add(time.Minute)},
		{Kind: "k", TargetName: "c", ExpiresAt: now.Add(time.Minute), RenewAt: now},
	})
	wantLines(t, scrape(t, m),
		`onejob_failover_gate_total{decision="refused",kind="k",reason="expired",target="b"} 1`,
		`onejob_failover_gate_total{decision="allowed",kind="k",reason="",target="b"} 1`,
		`onejob_contract_violations_total{class="fenced",kind="k",target="b"} 1`,
		`onejob_certificates_suspended_total{kind="k",reason="suspended_drift",target="b"} 1`,
		`onejob_reverification_asked_total{kind="k",signal="system_fingerprint",target="b"} 1`,
		`onejob_certificate_expiry_seconds{kind="k",target="b"} 3600`,
		`onejob_certificate_renewal_due{kind="k",target="b"} 0`,
		`onejob_certificate_renewal_due{kind="k",target="c"} 1`,
	)
}
