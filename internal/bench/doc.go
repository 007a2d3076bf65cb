// Package bench measures whole lives of jobs on real stores: created, marked,
// tried, finished, everything durable. `make bench` runs it.
//
// Read ratios within one run, never absolute figures across machines.
package bench
