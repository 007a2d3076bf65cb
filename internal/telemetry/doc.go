// Package telemetry is what a process says about itself: its log and its
// metrics. Every metric name is in metrics.go. No label ever holds an owner, a
// key or the id of a job: they are without bound, and none of a scraper's business.
package telemetry
