package apikey

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// Getter finds a stored key: the part of [onejob.KeyStore] that is needed here.
type Getter interface {
	KeyGet(ctx context.Context, id string) (onejob.APIKey, error)
}

// Options tunes an [Authenticator]. The zero value is ready to use.
type Options struct {
	// TTL is how long a key is remembered, and so how long a revoked one may
	// still be taken. Zero means 3 s.
	TTL time.Duration

	// MaxRemembered bounds how many keys are remembered. Zero means 10,000.
	MaxRemembered int

	// NowFunc returns the current time. Nil means [time.Now].
	NowFunc func() time.Time
}

const (
	defaultTTL           = 3 * time.Second
	defaultMaxRemembered = 10_000
)

// Authenticator says whose key a printed key is. It is safe for concurrent use.
type Authenticator struct {
	keys Getter
	opts Options

	mu         sync.Mutex
	remembered map[string]remembered
}

type remembered struct {
	key   onejob.APIKey
	until time.Time
}

// NewAuthenticator returns an authenticator over the keys of a store.
func NewAuthenticator(keys Getter, opts Options) *Authenticator {
	if opts.TTL <= 0 {
		opts.TTL = defaultTTL
	}
	if opts.MaxRemembered <= 0 {
		opts.MaxRemembered = defaultMaxRemembered
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	return &Authenticator{keys: keys, opts: opts, remembered: map[string]remembered{}}
}

// Authenticate returns the stored key that a printed one is. It returns
// [onejob.CodeUnauthenticated], in the same words, for one that is mistyped, was
// never made, has another secret or is revoked, and [onejob.ErrStoreUnavailable]
// when the store cannot tell.
func (a *Authenticator) Authenticate(ctx context.Context, printed string) (onejob.APIKey, error) {
	parsed, err := Parse(printed)
	if err != nil {
		return onejob.APIKey{}, unauthenticated(err)
	}
	stored, err := a.find(ctx, parsed.ID)
	switch {
	case errors.Is(err, onejob.ErrNotFound):
		// Compared all the same, so that time does not tell which ids exist.
		stored = onejob.APIKey{}
	case err != nil:
		return onejob.APIKey{}, onejob.Unavailable(err)
	}
	if !parsed.Matches(stored) || !stored.RevokedAt.IsZero() {
		return onejob.APIKey{}, unauthenticated(err)
	}
	return stored, nil
}

func unauthenticated(cause error) error {
	return &onejob.Error{Code: onejob.CodeUnauthenticated, Message: "the API key is not valid", Err: cause}
}

// find remembers keys that exist. One that does not is asked for every time, so
// that a key works from the moment it is created.
func (a *Authenticator) find(ctx context.Context, id string) (onejob.APIKey, error) {
	now := a.opts.NowFunc()
	a.mu.Lock()
	r, known := a.remembered[id]
	a.mu.Unlock()
	if known && now.Before(r.until) {
		return r.key, nil
	}
	key, err := a.keys.KeyGet(ctx, id)
	if err != nil {
		return onejob.APIKey{}, err
	}
	a.remember(id, remembered{key: key, until: now.Add(a.opts.TTL)}, now)
	return key, nil
}

func (a *Authenticator) remember(id string, r remembered, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.remembered) >= a.opts.MaxRemembered {
		for old, o := range a.remembered {
			if !now.Before(o.until) {
				delete(a.remembered, old)
			}
		}
	}
	if len(a.remembered) >= a.opts.MaxRemembered {
		clear(a.remembered) // all in use: forgetting costs a look-up each
	}
	a.remembered[id] = r
}
