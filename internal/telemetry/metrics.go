package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/onejob-dev/onejob"
)

// Options tunes [Metrics]. The zero value is ready to use.
type Options struct {
	// Kinds are the known kinds. A job of any other is counted as "other", so
	// that a caller cannot make up labels.
	Kinds []string

	// Version and Revision of the program, for onejob_build_info.
	Version, Revision string

	// StatsFunc counts what is live, on each scrape. Nil: no such gauges.
	StatsFunc func(ctx context.Context) (onejob.Stats, error)

	// NowFunc returns the current time. Nil means [time.Now].
	NowFunc func() time.Time
}

// Metrics counts. An engine, the HTTP API and the sweeps tell it what happens; it
// implements their observers. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	kinds    []string

	jobsCreated      *prometheus.CounterVec
	attempts         *prometheus.CounterVec
	attemptDuration  *prometheus.HistogramVec
	attemptsInflight *prometheus.GaugeVec
	unknownResolved  *prometheus.CounterVec
	races            *prometheus.CounterVec
	guardBlocks      *prometheus.CounterVec
	incidents        *prometheus.CounterVec
	swept            prometheus.Counter
	webhooks         *prometheus.CounterVec
	webhookDuration  *prometheus.HistogramVec
	probes           *prometheus.CounterVec
	peopleAsked      prometheus.Counter
	callbacksRefused *prometheus.CounterVec
	requests         *prometheus.HistogramVec
	contracts        contracts
}

// Buckets of a provider's call, which may take minutes, and of a request of ours.
var (
	attemptBuckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}
	requestBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
)

// NewMetrics returns metrics in a registry of their own, with the process's and
// the Go runtime's.
func NewMetrics(opts Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		kinds:    slices.Clone(opts.Kinds),

		jobsCreated: counters("onejob_jobs_created_total",
			"Submissions by what they found: new, replayed or conflict.", "kind", "result"),
		attempts: counters("onejob_attempts_total",
			"Attempts that ended, by what is proven of them.", "target", "outcome"),
		attemptDuration: histograms("onejob_attempt_duration_seconds",
			"From the mark of an attempt until something was known of it.", attemptBuckets, "target", "outcome"),
		attemptsInflight: gauges("onejob_attempts_inflight",
			"Attempts of this process whose provider is being called.", "target"),
		unknownResolved: counters("onejob_unknown_resolved_total",
			"Unknown attempts that were settled, by whom and as what.", "by", "as"),
		races: counters("onejob_races_total",
			"Successes that found the result slot taken or the job closed, by the target that lost.", "target"),
		guardBlocks: counters("onejob_guard_blocks_total",
			"Jobs that entered blocked, by reason.", "reason"),
		incidents: counters("onejob_incidents_total",
			"Effects that may have happened twice, by kind.", "kind"),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "onejob_attempts_swept_total", Help: "Attempts whose lease had ended and that a sweep settled.",
		}),
		webhooks: counters("onejob_webhook_tries_total",
			"Tries of webhooks by endpoint and what came of them: delivered, retrying, failed or gone.", "endpoint", "result"),
		webhookDuration: histograms("onejob_webhook_try_duration_seconds",
			"Tries of webhooks, from reading the job until it was written down what came of them.", requestBuckets, "endpoint"),
		probes: counters("onejob_probes_total",
			"Questions about attempts in doubt, by how they were asked and what the answer proves; nothing proves nothing.", "target", "method", "outcome"),
		peopleAsked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "onejob_people_asked_total", Help: "Attempts that stayed in doubt for so long that a person was asked to settle them.",
		}),
		callbacksRefused: counters("onejob_callbacks_refused_total",
			"Reports that did not prove where they came from, by reason: token, signature or rate.", "reason"),
		contracts: newContracts(opts.NowFunc),
		requests: histograms("onejob_http_request_duration_seconds",
			"HTTP requests by route, held ones included.", requestBuckets, "method", "route", "status"),
	}
	m.registry.MustRegister(
		m.jobsCreated, m.attempts, m.attemptDuration, m.attemptsInflight, m.unknownResolved,
		m.races, m.guardBlocks, m.incidents, m.swept, m.webhooks, m.webhookDuration,
		m.probes, m.peopleAsked, m.callbacksRefused, m.requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(opts.Version, opts.Revision),
	)
	m.registry.MustRegister(m.contracts.collectors()...)
	if opts.StatsFunc != nil {
		m.registry.MustRegister(newLive(opts.StatsFunc, opts.NowFunc))
	}
	return m
}

// Handler serves the metrics in Prometheus's formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		// A store that is down costs the gauges that need it, not the scrape.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// JobSubmitted counts a submission; result is new, replayed or conflict.
func (m *Metrics) JobSubmitted(kind, result string) {
	if !slices.Contains(m.kinds, kind) {
		kind = "other"
	}
	m.jobsCreated.WithLabelValues(kind, result).Inc()
}

// AttemptStarted counts an attempt whose provider is about to be called.
func (m *Metrics) AttemptStarted(target string) { m.attemptsInflight.WithLabelValues(target).Inc() }

// AttemptEnded counts an attempt of which something is known after took.
func (m *Metrics) AttemptEnded(target string, outcome onejob.Outcome, took time.Duration) {
	m.attemptsInflight.WithLabelValues(target).Dec()
	m.attempts.WithLabelValues(target, string(outcome)).Inc()
	m.attemptDuration.WithLabelValues(target, string(outcome)).Observe(took.Seconds())
}

// RaceLost counts a success of target that found the result slot taken.
func (m *Metrics) RaceLost(target string) { m.races.WithLabelValues(target).Inc() }

// Incident counts an effect that may have happened twice.
func (m *Metrics) Incident(kind onejob.EventKind) { m.incidents.WithLabelValues(string(kind)).Inc() }

// Blocked counts a job that entered blocked.
func (m *Metrics) Blocked(reason onejob.BlockReason) {
	m.guardBlocks.WithLabelValues(string(reason)).Inc()
}

// Swept counts n attempts that a sweep settled.
func (m *Metrics) Swept(n int) { m.swept.Add(float64(n)) }

// ProbeAnswered counts a question about an attempt in doubt, and what its answer
// proves. Empty: nothing.
func (m *Metrics) ProbeAnswered(target string, method onejob.ProbeMethod, outcome onejob.Outcome) {
	m.probes.WithLabelValues(target, string(method), cmp.Or(string(outcome), "nothing")).Inc()
}

// PeopleAsked counts n attempts that people were asked about.
func (m *Metrics) PeopleAsked(n int) { m.peopleAsked.Add(float64(n)) }

// CallbackRefused counts a report that did not prove where it came from; reason is
// token, signature or rate.
func (m *Metrics) CallbackRefused(reason string) { m.callbacksRefused.WithLabelValues(reason).Inc() }

// UnknownResolved counts an unknown attempt that was settled: by is operator,
// provider_lookup, late_answer or callback, and as the outcome.
func (m *Metrics) UnknownResolved(by string, as onejob.Outcome) {
	m.unknownResolved.WithLabelValues(by, string(as)).Inc()
}

// WebhookTried counts one try of a webhook to an endpoint, by its id; result is
// delivered, retrying, failed or gone.
func (m *Metrics) WebhookTried(endpoint, result string, took time.Duration) {
	m.webhooks.WithLabelValues(endpoint, result).Inc()
	m.webhookDuration.WithLabelValues(endpoint).Observe(took.Seconds())
}

// RequestServed counts one HTTP request. route is a pattern, never a path.
func (m *Metrics) RequestServed(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	const growth, most = 1.1, 100 // of native buckets, beside the classic ones
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: growth, NativeHistogramMaxBucketNumber: most,
	}, labels)
}

func buildInfo(version, revision string) prometheus.Collector {
	g := gauges("onejob_build_info", "Always 1; its labels say what runs.", "version", "revision")
	g.WithLabelValues(version, revision).Set(1)
	return g
}
