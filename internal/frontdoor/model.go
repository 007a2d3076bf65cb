package frontdoor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// API is a route that a model answers at.
type API string

// The APIs that models answer at.
const (
	APIChat       API = "chat"       // chat completions
	APIResponses  API = "responses"  // responses
	APIEmbeddings API = "embeddings" // embeddings
	APIImages     API = "images"     // images/generations
	APIMessages   API = "messages"   // Anthropic's messages
)

// routes is where the APIs are served.
var routes = map[API]string{
	APIChat: "/openai/v1/chat/completions", APIResponses: "/openai/v1/responses", APIEmbeddings: "/openai/v1/embeddings",
	APIImages: "/openai/v1/images/generations", APIMessages: "/anthropic/v1/messages",
}

// Model is what a caller may name as one: a kind, or one target of it.
type Model struct {
	Kind   string
	Target string // empty: the kind's first
	API    API    // of its targets
	// RequireKey refuses calls without an idempotency key.
	RequireKey bool
	// TakeOver lets a call without a key that does not count its tries take over a job
	// whose caller went without the answer, as one that counts may that is a retry.
	TakeOver bool
	// TakeOverWithin is as in [Options], for this model. Zero: what that says.
	TakeOverWithin time.Duration
	// Heartbeat is how often a call that is held for a whole answer is shown a sign of
	// life, white space before it. Zero: never. See [Options] for streams.
	Heartbeat time.Duration
	// EventsFunc makes the stream of an answer that came whole though a stream was asked
	// for, with its usage at the end if that was asked for too. Nil: it is given whole.
	EventsFunc func(whole []byte, withUsage bool) ([]byte, error)
	// Counter counts the tokens of a request. Nil: it cannot be asked.
	Counter onejob.TokenCounter
}

// Options of the doors. Client is required.
type Options struct {
	Client *onejob.Client
	// Models by the name that callers give.
	Models map[string]Model
	// Hold is the longest a call is held. Zero means 290 s: Node.js gives up a call
	// without an answer after 300, and calls again.
	Hold time.Duration
	// Heartbeat is how long a stream may be silent before a sign of life, a comment, is
	// sent. Zero means 15 s.
	Heartbeat time.Duration
	// TakeOverWithin is how long after its caller went without the answer the job of a
	// call without a key may be taken over by a retry of it. Zero means 15 min, since
	// libraries wait for up to 10; at most [onejob.MaxTakeOverWithin].
	TakeOverWithin time.Duration
	// Lease is how long a caller without a key is taken to be there if nothing is heard
	// of this process. Zero means [onejob.DefaultWaiterLease].
	Lease time.Duration
	// Reconcile says how an attempt in doubt can be found out about, by target. What is in
	// doubt at a target that is not here is waited for, as if there were a way.
	Reconcile map[string]onejob.Reconcile
	// HeldFunc reports whether a call of the job's is under way in this process, whatever
	// became of its lease. Nil: none ever is.
	HeldFunc func(jobID string) bool
	// Since is what /models says of when models were made. Zero: 1970.
	Since time.Time
}

const (
	defaultHold           = 290 * time.Second
	defaultHeartbeat      = 15 * time.Second
	defaultTakeOverWithin = 15 * time.Minute
)

// New returns the doors. It returns [onejob.CodeInvalidArgument] for options that
// cannot be.
func New(opts Options) ([]httpapi.Door, error) {
	if err := opts.check(); err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	opts.Hold = cmp.Or(opts.Hold, defaultHold)
	opts.Heartbeat = cmp.Or(opts.Heartbeat, defaultHeartbeat)
	opts.TakeOverWithin = cmp.Or(opts.TakeOverWithin, defaultTakeOverWithin)
	opts.Lease = cmp.Or(opts.Lease, onejob.DefaultWaiterLease)
	if opts.HeldFunc == nil {
		opts.HeldFunc = func(string) bool { return false }
	}
	d := &doors{opts: opts, waiting: newKeeper(opts.Client, opts.Lease)}
	all := []httpapi.Door{
		{Pattern: "GET /openai/v1/models", Role: onejob.RoleViewer, Serve: d.listModels},
		{Pattern: "POST /anthropic/v1/messages/count_tokens", Role: onejob.RoleSubmitter, Serve: d.countTokens},
	}
	all = append(all, d.responses()...)
	for _, api := range slices.Sorted(maps.Keys(routes)) {
		all = append(all, httpapi.Door{Pattern: "POST " + routes[api], Role: onejob.RoleSubmitter, Serve: d.call(api)})
	}
	return all, nil
}

func (o *Options) check() error {
	switch {
	case o.Client == nil:
		return errors.New("Client is nil")
	case o.Hold < 0 || o.Heartbeat < 0 || o.Lease < 0 || o.TakeOverWithin < 0:
		return errors.New("Hold, Heartbeat, Lease or TakeOverWithin is negative")
	case o.TakeOverWithin > onejob.MaxTakeOverWithin || slices.ContainsFunc(slices.Collect(maps.Values(o.Models)), func(m Model) bool { return m.TakeOverWithin > onejob.MaxTakeOverWithin }):
		return fmt.Errorf("TakeOverWithin is longer than %s", onejob.MaxTakeOverWithin)
	}
	return nil
}

type doors struct {
	opts    Options
	waiting *keeper
}

// find returns the model of a name, and why a call at api may not make a job of it. One
// that is not known is taken for a kind that was: a job of it answers to its key.
func (d *doors) find(name string, api API) (Model, *onejob.Error) {
	m, known := d.opts.Models[name]
	switch {
	case !known:
		return Model{Kind: name, API: api}, &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("there is no model %q; a model is the name of a kind or a target", name)}
	case m.API == "":
		return m, &onejob.Error{Code: onejob.CodeInvalidJob, Message: fmt.Sprintf("the targets of %q have different APIs", name)}
	case m.API != api:
		return m, &onejob.Error{Code: onejob.CodeInvalidJob, Message: fmt.Sprintf("the model %q answers at %s", name, routes[m.API])}
	}
	return m, nil
}

// names lists what a caller may name, sorted.
func (d *doors) names() []string { return slices.Sorted(maps.Keys(d.opts.Models)) }
