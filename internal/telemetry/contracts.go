package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onejob-dev/onejob"
)

// contracts counts what contracts and certificates do.
type contracts struct {
	gate        *prometheus.CounterVec
	violations  *prometheus.CounterVec
	ended       *prometheus.CounterVec
	reverify    *prometheus.CounterVec
	certificate *standing
}

func newContracts(nowFunc func() time.Time) contracts {
	if nowFunc == nil {
		nowFunc = time.Now
	}
	return contracts{
		gate: counters("onejob_failover_gate_total",
			"What the gate said of targets that were to take over. reason is empty where it allowed by a certificate.", "kind", "target", "decision", "reason"),
		violations: counters("onejob_contract_violations_total",
			"Outputs of production that broke their contract, by the class of the first violation.", "kind", "target", "class"),
		ended: counters("onejob_certificates_suspended_total",
			"Certificates that production ended.", "kind", "target", "reason"),
		reverify: counters("onejob_reverification_asked_total",
			"Changes that a certificate survives and that ask for a new verification.", "kind", "target", "signal"),
		certificate: &standing{
			nowFunc: nowFunc,
			expiry: prometheus.NewDesc("onejob_certificate_expiry_seconds",
				"How long a certificate that stands is still valid. A target without one is not here.", []string{"kind", "target"}, nil),
			renewal: prometheus.NewDesc("onejob_certificate_renewal_due",
				"1 once half of a certificate's life is over.", []string{"kind", "target"}, nil),
		},
	}
}

func (c *contracts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.gate, c.violations, c.ended, c.reverify, c.certificate}
}

// GateDecided counts what the gate said of one target.
func (m *Metrics) GateDecided(kind, target string, allowed bool, reason string) {
	decision := "refused"
	if allowed {
		decision = "allowed"
	}
	m.contracts.gate.WithLabelValues(kind, target, decision, reason).Inc()
}

// ContractViolated counts an output that broke its contract.
func (m *Metrics) ContractViolated(kind, target, class string) {
	m.contracts.violations.WithLabelValues(kind, target, class).Inc()
}

// CertificateEnded counts a certificate that production ended.
func (m *Metrics) CertificateEnded(kind, target, reason string) {
	m.contracts.ended.WithLabelValues(kind, target, reason).Inc()
}

// ReverificationAsked counts a change that asks for a new verification.
func (m *Metrics) ReverificationAsked(kind, target, signal string) {
	m.contracts.reverify.WithLabelValues(kind, target, signal).Inc()
}

// CertificatesStand notes the certificates that stand.
func (m *Metrics) CertificatesStand(live []onejob.Certificate) { m.contracts.certificate.set(live) }

// standing are the certificates that stand, by kind and target: of several versions
// of one the one that lasts longest.
type standing struct {
	nowFunc         func() time.Time
	expiry, renewal *prometheus.Desc

	mu   sync.Mutex
	live map[[2]string]onejob.Certificate
}

func (s *standing) set(live []onejob.Certificate) {
	by := make(map[[2]string]onejob.Certificate, len(live))
	for i := range live {
		key := [2]string{live[i].Kind, live[i].TargetName}
		if known, there := by[key]; !there || live[i].ExpiresAt.After(known.ExpiresAt) {
			by[key] = live[i]
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = by
}

// Describe implements [prometheus.Collector].
func (s *standing) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.expiry
	ch <- s.renewal
}

// Collect implements [prometheus.Collector].
func (s *standing) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.nowFunc()
	for key, c := range s.live {
		left := max(0, c.ExpiresAt.Sub(now).Seconds())
		due := 0.0
		if !c.RenewAt.IsZero() && !now.Before(c.RenewAt) {
			due = 1
		}
		ch <- prometheus.MustNewConstMetric(s.expiry, prometheus.GaugeValue, left, key[0], key[1])
		ch <- prometheus.MustNewConstMetric(s.renewal, prometheus.GaugeValue, due, key[0], key[1])
	}
}
