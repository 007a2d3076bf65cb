package sim

import (
	"net/http"
	"time"
)

// MaxBodyBytes bounds a request body; a larger one is answered 413 and not
// executed.
const MaxBodyBytes = 8 << 20

// Options says how a provider behaves. The zero value is a healthy one.
type Options struct {
	// Default is the behaviour towards requests for which nothing else is said.
	Default Step

	// Latency is how long the answer to a healthy execution takes, after the
	// work is done. Zero or less: none.
	Latency time.Duration

	// HonourIdempotency makes the provider keep the promise of the
	// Idempotency-Key header: a repeated key gets the first answer without a new
	// execution, and 409 while the first request still runs. False by default, so
	// that duplicates show.
	HonourIdempotency bool

	// IntentFunc names the intent of a request, by which executions are counted;
	// empty is a name like any other. It may read r.Body, which the provider can
	// read again. Nil: the Idempotency-Key header. See [IntentHeader] and
	// [IntentMember].
	IntentFunc func(r *http.Request) string

	// ReferenceFunc finds the caller's own reference for the work in a request, as
	// IntentFunc finds the intent; empty is none. A look-up by GET finds a charge by
	// its reference as by its id. Nil: charges have none.
	ReferenceFunc func(r *http.Request) string

	// ReplyFunc writes the text of a chat completion by a model without a mind. Nil: it
	// repeats the prompt, the text of the last message.
	ReplyFunc func(model, prompt string) string

	// Models are the models that have a mind, by name; see [AnyModel] for the rest. Once
	// there is one, models are what the chat, responses, messages and embeddings APIs
	// answer by, they can be listed, requests can be counted, and an unknown model is
	// refused. Nil: every model answers as ReplyFunc says.
	Models map[string]Mind

	// CostMicros is the cost of one execution in millionths of the currency, as
	// plain answers state it. Zero: free.
	CostMicros int64

	// LedgerFile keeps the ledger in a file of JSON lines, read back at the
	// start, so that the death of the process forgets no execution. It grows by
	// about a kilobyte and the answer per request until a reset. Empty: memory only.
	LedgerFile string

	// MaxEntries bounds the entries kept in memory; the oldest are forgotten
	// first and the counts stay exact. Zero or less: 10,000.
	MaxEntries int

	// MaxIntents bounds the intents, idempotency keys and charges kept in memory,
	// the oldest forgotten first. The answers kept for look-ups and replays take
	// 64 MiB at most. Zero or less: 100,000.
	MaxIntents int

	// EntryFunc is called at the end of each request, from its goroutine. It may
	// be called concurrently. Nil: nothing.
	EntryFunc func(Entry)

	// NowFunc is the clock of the ledger. Nil: [time.Now]. Delays are real time.
	NowFunc func() time.Time
}
