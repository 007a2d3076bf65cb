// Package loadgen puts a load on a onejob server over HTTP and says what became of
// it: what was accepted, replayed and refused, how long that took, whether every
// repeat was answered with its own job, and whether every acknowledged job is there.
//
// A closed loop has callers who wait for one answer before they ask again, and shows
// what a server can do. An open loop asks at a rate, whatever the server does, and
// shows how long users wait: latency counts from the moment at which a request was
// to be sent, so that a stall is not hidden by the requests that it held up.
package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// Mode says what makes a caller ask.
type Mode string

// The modes.
const (
	Closed Mode = "closed" // the answer to what it asked before
	Open   Mode = "open"   // the clock
)

// MaxCallers bounds the callers, and with them the open connections.
const MaxCallers = 4096

// Plan is what is asked of what. Server, Kind and For are required.
type Plan struct {
	Server *url.URL
	Key    onejob.Secret // the API key
	Client *http.Client  // its transport must be bounded

	Kind string
	// Input is the JSON that every job gets, with each {{key}} in it replaced by the
	// job's own idempotency key.
	Input string

	Mode    Mode
	Callers int           // at once; in an open loop the most
	Rate    float64       // submissions a second, in an open loop
	For     time.Duration // how long
	Wait    time.Duration // how long to wait for each result; zero: not at all

	KeyPrefix string
	// RepeatFraction is the share of submissions that repeat an earlier key, 0 to 1.
	RepeatFraction float64
}

// Check returns all that is wrong with the plan.
func (p *Plan) Check() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(p.Kind == "", "a kind is needed")
	wrong(p.Mode != Closed && p.Mode != Open, "there is no mode %q; there are closed and open", p.Mode)
	wrong(p.Callers < 1 || p.Callers > MaxCallers, "there may be 1 to %d callers", MaxCallers)
	wrong(p.Mode == Open && (p.Rate <= 0 || p.Rate > 1e6), "an open loop needs a rate, above zero and up to a million a second")
	wrong(p.Mode == Closed && p.Rate != 0, "a closed loop has no rate; the answers set the pace")
	wrong(p.For <= 0, "how long must be above zero")
	wrong(p.Wait < 0, "the wait is negative")
	wrong(p.RepeatFraction < 0 || p.RepeatFraction > 1, "the share of repeats is between 0 and 1")
	wrong(len(p.KeyPrefix) > maxPrefix || !plain.MatchString(p.KeyPrefix), "the prefix of keys has at most %d letters, digits and any of . _ : -", maxPrefix)
	wrong(!json.Valid([]byte(p.input("k"))), "the input is not one JSON value")
	return errors.Join(errs...)
}

const maxPrefix = 200

var plain = regexp.MustCompile(`^[A-Za-z0-9._:-]*$`)

// Payload returns an input of about a number of bytes, which carries its key.
func Payload(bytes int) string {
	const around = len(`{"key":"{{key}}","pad":""}`)
	return `{"key":"{{key}}","pad":"` + strings.Repeat("x", max(0, bytes-around)) + `"}`
}

// key names the n-th new intent.
func (p *Plan) key(n int64) string { return fmt.Sprintf("%s%d", p.KeyPrefix, n) }

// body is the request of the intent with a key.
func (p *Plan) body(key string) string {
	kind, _ := json.Marshal(p.Kind) // a string
	return `{"kind":` + string(kind) + `,"input":` + p.input(key) + `}`
}

func (p *Plan) input(key string) string { return strings.ReplaceAll(p.Input, "{{key}}", key) }
