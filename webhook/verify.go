package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/onejob-dev/onejob"
)

// What is wrong with a webhook that [Verify] refuses. Answer it with status 400 or
// 401 and do nothing that it says.
var (
	// ErrHeader : a header is missing or is not what it should be.
	ErrHeader = errors.New("not the headers of a webhook")
	// ErrTimestamp : it was signed too long ago, or by a clock that is ahead.
	ErrTimestamp = errors.New("the webhook's timestamp is too far from now")
	// ErrSignature : none of its signatures was made with any of the secrets for
	// this id, this time and these bytes.
	ErrSignature = errors.New("no signature of the webhook matches")
)

// DefaultTolerance is how far a webhook's timestamp may be from now, either way.
const DefaultTolerance = 5 * time.Minute

// VerifyParams is a webhook that was received, and what to hold it against.
type VerifyParams struct {
	// Secrets that it may have been signed with: at least one, and two while one
	// replaces the other.
	Secrets []onejob.Secret
	Header  http.Header
	// Body is exactly what was received. What was decoded and encoded again has
	// other bytes and does not verify.
	Body []byte

	// Now is the time to compare with. Zero means the time of the call.
	Now time.Time
	// Tolerance is how far the timestamp may be from Now, either way. Zero means
	// [DefaultTolerance].
	Tolerance time.Duration
}

// Verify returns the id of a webhook that is genuine, and an error that says what is
// wrong with any other: [ErrHeader], [ErrTimestamp], [ErrSignature], and [ErrSecret]
// if it cannot tell. It compares in a time that does not depend on how far a forged
// signature was right.
//
// The same webhook may come again, under the same id.
func Verify(p VerifyParams) (id string, err error) {
	keys, err := keysOf(p.Secrets)
	if err != nil {
		return "", err
	}
	id, at, err := readHeader(p.Header)
	if err != nil {
		return "", err
	}
	if err := p.checkTime(at); err != nil {
		return "", err
	}
	for _, key := range keys {
		verifier, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return "", err
		}
		if verifier.VerifyIgnoringTimestamp(p.Body, p.Header) == nil { // checked above, by a clock that is given
			return id, nil
		}
	}
	return "", ErrSignature
}

func readHeader(h http.Header) (id string, at time.Time, err error) {
	for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
		switch values := h.Values(name); {
		case len(values) == 0 || values[0] == "":
			return "", at, fmt.Errorf("%w: %s is missing", ErrHeader, name)
		case len(values) > 1:
			return "", at, fmt.Errorf("%w: %s is there twice", ErrHeader, name)
		}
	}
	id = h.Get(HeaderID)
	if err := checkID(id); err != nil {
		return "", at, err
	}
	seconds, err := strconv.ParseInt(h.Get(HeaderTimestamp), 10, 64)
	if err != nil {
		return "", at, fmt.Errorf("%w: %s is not a number of seconds", ErrHeader, HeaderTimestamp)
	}
	return id, time.Unix(seconds, 0), nil
}

// checkID refuses ids that would let what is signed be read in two ways: its parts
// are joined by full stops.
func checkID(id string) error {
	if id == "" || strings.Contains(id, ".") {
		return fmt.Errorf("%w: %s is empty or has a full stop in it", ErrHeader, HeaderID)
	}
	return nil
}

func (p *VerifyParams) checkTime(at time.Time) error {
	now, tolerance := p.Now, p.Tolerance
	if now.IsZero() {
		now = time.Now()
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	switch {
	case at.Before(now.Add(-tolerance)):
		return fmt.Errorf("%w: it is more than %s in the past; compare the clocks, or it is a replay", ErrTimestamp, tolerance)
	case at.After(now.Add(tolerance)):
		return fmt.Errorf("%w: it is more than %s in the future; compare the clocks", ErrTimestamp, tolerance)
	}
	return nil
}
