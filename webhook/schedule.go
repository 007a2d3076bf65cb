package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds how long an endpoint may put a webhook off.
const maxRetryAfter = 24 * time.Hour

// pauseAfter returns how long to wait after so many tries, this one counted. It
// reports false when the schedule is at its end.
func pauseAfter(schedule []time.Duration, tries int, asked time.Duration) (time.Duration, bool) {
	if tries > len(schedule) {
		return 0, false
	}
	return max(jittered(schedule[tries-1]), min(asked, maxRetryAfter)), true
}

// jittered is d, longer or shorter by up to a fifth, so that what failed together
// does not come back together.
func jittered(d time.Duration) time.Duration {
	const most = 0.2
	return time.Duration(float64(d) * (1 - most + 2*most*rand.Float64()))
}

// retryAfter reads how long an endpoint asks to be left alone: in seconds, or until a
// date. Zero: it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
