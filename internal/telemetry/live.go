package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onejob-dev/onejob"
)

// statsTimeout bounds how long a scrape waits for the store.
const statsTimeout = 5 * time.Second

// live is what is counted in the store when somebody asks.
type live struct {
	statsFunc func(ctx context.Context) (onejob.Stats, error)
	nowFunc   func() time.Time

	jobs, blocked, unknown, oldestUnknown, oldestQueued, webhooks, oldestWebhook, up *prometheus.Desc
}

func newLive(statsFunc func(ctx context.Context) (onejob.Stats, error), nowFunc func() time.Time) *live {
	if nowFunc == nil {
		nowFunc = time.Now
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &live{
		statsFunc: statsFunc, nowFunc: nowFunc,
		jobs:          desc("onejob_jobs_live", "Jobs that are not terminal, by state.", "state"),
		blocked:       desc("onejob_jobs_blocked", "Blocked jobs, by reason.", "reason"),
		unknown:       desc("onejob_unknown_attempts", "Attempts whose outcome is unknown.", "target"),
		oldestUnknown: desc("onejob_unknown_oldest_age_seconds", "How long the oldest unknown attempt has been unknown; 0: there is none."),
		oldestQueued:  desc("onejob_jobs_oldest_due_age_seconds", "How long the job that is longest due has been due; 0: there is none."),
		webhooks:      desc("onejob_webhooks_pending", "Webhooks that are to be sent, those to disabled endpoints too."),
		oldestWebhook: desc("onejob_webhooks_oldest_pending_age_seconds", "How long the oldest webhook that is to be sent has waited since it was made or resent; 0: there is none."),
		up:            desc("onejob_store_up", "1 when the store answered this scrape."),
	}
}

// Describe implements [prometheus.Collector].
func (l *live) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.jobs, l.blocked, l.unknown, l.oldestUnknown, l.oldestQueued, l.webhooks, l.oldestWebhook, l.up} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. A store that does not answer leaves
// its gauges out: a number that is not known is not zero.
func (l *live) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	stats, err := l.statsFunc(ctx)
	if err != nil {
		gauge(l.up, 0)
		return
	}
	gauge(l.up, 1)
	for _, state := range onejob.JobStates() {
		if !state.Terminal() {
			gauge(l.jobs, float64(stats.Jobs[state]), string(state))
		}
	}
	for _, reason := range onejob.BlockReasons() {
		gauge(l.blocked, float64(stats.Blocked[reason]), string(reason))
	}
	for target, n := range stats.UnknownByTarget {
		gauge(l.unknown, float64(n), target)
	}
	gauge(l.oldestUnknown, l.age(stats.OldestUnknown))
	gauge(l.oldestQueued, l.age(stats.OldestQueued))
	gauge(l.webhooks, float64(stats.PendingDeliveries))
	gauge(l.oldestWebhook, l.age(stats.OldestDelivery))
}

// age is in seconds; clocks that disagree make it no less than zero.
func (l *live) age(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, l.nowFunc().Sub(since).Seconds())
}
