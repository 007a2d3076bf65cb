package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	atPrimary  figure = "executions_at_primary"
	atBackup   figure = "executions_at_backup"
	executions figure = "executions"
	givenCode  figure = "status"
	answeredMS figure = "answered_ms"
)

// primaryTakes is how long the primary works; it is given a second.
const primaryTakes = 2500 * time.Millisecond

// timeouts is about how often the work of one call is done when its provider is slow.
func timeouts() contest {
	return contest{
		name: "timeouts", title: "One call, whose provider is slow", once: true,
		about: fmt.Sprintf("One call, with a key. The primary answers after %s, the time for a call is a second, and another provider would answer at once. "+
			"Counted is how often the providers did the work, once everything has come to rest: a provider finishes what it has begun.", primaryTakes),
		columns: []column{
			{executions, "executions", "%.0f"},
			{atPrimary, "at the primary", "%.0f"},
			{atBackup, "at the other", "%.0f"},
			{givenCode, "the caller got", "%.0f"},
			{answeredMS, "after ms", "%.0f"},
		},
		entries: func(settings) []contestant {
			fallback := portkeyConfig{Timeout: 1000, Strategy: portkeyStrategy{"fallback"}}
			retries := fallback
			retries.Retry = &portkeyRetry{Attempts: 2, On: []int{408, 429, 500, 502, 503, 504}}
			return []contestant{
				slowly(contestant{name: "onejob, effect external", on: onSQLite}, frontDoorWith("external", "")),
				slowly(contestant{name: "onejob, effect external, not waiting for late answers", on: onSQLite}, frontDoorWith("external", "linger: 200ms, ")),
				slowly(contestant{name: "onejob, effect none, a race after 500 ms", on: onSQLite}, frontDoorWith("none", "race: {after: 500ms, lanes: 2}, ")),
				slowly(bifrost(contestant{name: "Bifrost core, 2 retries and a fallback"}), bifrostWith("-timeout", "1", "-retries", "2")),
				slowly(portkey(contestant{name: "Portkey, a fallback"}), portkeyWith(fallback)),
				slowly(portkey(contestant{name: "Portkey, 2 retries and a fallback"}), portkeyWith(retries)),
				slowly(goModel(contestant{name: "GoModel, 3 retries and a fallback"}), startGoModelWithBackup),
			}
		},
	}
}

// startPair starts a door with a primary and a backup.
type startPair func(ctx context.Context, s *services, primary, backup string) (*door, error)

func slowly(c contestant, start startPair) contestant {
	c.turn = func(ctx context.Context, s *services, _ time.Duration) (sample, error) {
		primary, err := startProvider(ctx)
		if err != nil {
			return nil, err
		}
		defer stop(primary.cmd)
		backup, err := startProvider(ctx)
		if err != nil {
			return nil, err
		}
		defer stop(backup.cmd)
		at, err := start(ctx, s, primary.url, backup.url)
		if err != nil {
			return nil, err
		}
		defer at.close()
		if err := primary.take(ctx, primaryTakes); err != nil {
			return nil, err
		}
		return at.callOnce(ctx, primary, backup)
	}
	return c
}

// callOnce makes one call and counts what the providers did for it.
func (d *door) callOnce(ctx context.Context, primary, backup *provider) (sample, error) {
	before, err := backup.executions(ctx) // what it was tried with
	if err != nil {
		return nil, err
	}
	d.Prefix = "once"
	began := time.Now()
	status, _, err := d.send(ctx, &http.Client{Timeout: time.Minute}, 1, d.body())
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	first, err := primary.executions(ctx)
	second, alsoErr := backup.executions(ctx)
	return sample{
		executions: float64(first + second - before), atPrimary: float64(first), atBackup: float64(second - before),
		givenCode: float64(status), answeredMS: milliseconds(took),
	}, errors.Join(err, alsoErr)
}
