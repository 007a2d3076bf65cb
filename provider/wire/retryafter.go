package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds what a provider can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the header of that name, in seconds or as a date, which is
// held against the answer's own Date when it has one. Zero: unsaid, unreadable
// or past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return bound(seconds)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return bound(at.Sub(now).Seconds())
}

func bound(seconds float64) time.Duration {
	if !(seconds > 0) { // NaN too
		return 0
	}
	if seconds >= MaxRetryAfter.Seconds() {
		return MaxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}
