package httpcall

import (
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

// Options describe one endpoint. Only URL is required. Expressions are CEL over
// status, headers (names in lower case) and body (parsed JSON, or null).
type Options struct {
	// Method is POST, PUT, PATCH, DELETE or GET. Empty: POST. A GET carries no
	// body unless Body is given.
	Method string
	// URL is where every attempt goes: http or https, without credentials.
	URL string
	// Headers are sent as they are. Content-Type and Accept default to JSON.
	Headers map[string]string
	// SecretHeaders are further headers, whose values are kept out of errors,
	// evidence and the digest.
	SecretHeaders map[string]onejob.Secret

	// Body is a Jinja template of the request body over input, job.id, attempt.id,
	// attempt.number, metadata, provider_key and callback_url. What it puts out is
	// escaped for the request's Content-Type. Empty: the input, byte for byte.
	Body string
	// CallbackURLFunc tells where the provider may report an attempt. Nil: a
	// template cannot ask for callback_url.
	CallbackURLFunc func(onejob.Request) string

	// IdempotencyHeader carries the provider key. Empty: it is not sent.
	IdempotencyHeader string

	// ResultType is the media type that a success must have. Empty:
	// application/json; "*/*" takes anything, an empty body included.
	ResultType string
	// Outcomes override what an answer proves; the first that holds decides.
	Outcomes []wire.Rule

	// Accepted recognises an asynchronous submit. Nil: the target has none.
	Accepted *Accepted
	// Lookup asks the provider about an attempt. Nil: it cannot be asked.
	Lookup *Lookup
	// Callback reads what the provider reports by itself. Nil: nothing.
	Callback *Callback
	// Cancel asks the provider to give an attempt up. Nil: it cannot be asked.
	Cancel *Cancel

	// Cost gives the price in millionths of Currency. Empty: no price is told.
	Cost     string
	Currency string // empty with Cost: USD
	// Usage gives what the provider counted. Empty: the member usage of the body.
	Usage string

	// MaxResponseBytes caps an answer. Zero or less: [wire.DefaultMaxResponseBytes].
	MaxResponseBytes int64
	// DialTimeout bounds the connection. Zero or less: [wire.DefaultDialTimeout].
	DialTimeout time.Duration
	// StreamsBody says that the endpoint acts on a body before its end.
	StreamsBody bool
	// NowFunc is the clock that SendBy is held against. Nil: [time.Now].
	NowFunc func() time.Time
}
