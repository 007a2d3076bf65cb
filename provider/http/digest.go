package httpcall

import (
	"maps"
	"slices"

	"github.com/onejob-dev/onejob/provider/wire"
)

// Digest addresses the configuration by content: whatever could change what an
// attempt does or proves. Of secret headers it holds the names only.
func (p *Provider) Digest() string {
	o := p.opts
	return wire.Digest("http", o.Method, o.URL, o.Headers, slices.Sorted(maps.Keys(o.SecretHeaders)), o.Body,
		o.IdempotencyHeader, o.ResultType, o.Outcomes, o.Accepted, o.Lookup, o.Callback, o.Cancel, o.StreamsBody)
}

// UsesAttempt reports whether the body's template names the attempt or its
// callback, so that two attempts differ in their bytes. It must not be so where
// an idempotency header is sent: one key would stand for different requests.
func (p *Provider) UsesAttempt() bool { return p.body != nil && p.body.usesAttempt }
