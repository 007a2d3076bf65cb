package frontdoor

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// Ways in which an intent was recognised, as Onejob-Intent says.
const (
	intentKeyed   = "keyed"
	intentNew     = "new"
	intentClaimed = "retry-claimed" // by a retry without a key, which found what its first try made
)

// call serves a call of an API, whose answer comes whole or as a stream.
func (d *doors) call(api API) func(http.ResponseWriter, *http.Request, httpapi.Visit) error {
	return func(w http.ResponseWriter, r *http.Request, v httpapi.Visit) error {
		body, err := v.ReadJSON(w, r)
		if err != nil {
			return err
		}
		key, err := v.Key(r.Header)
		if err != nil {
			return err
		}
		asked, err := read(body, api)
		if err != nil {
			return err
		}
		m, refuse := d.find(asked.Model, api)
		p := onejob.SubmitParams{Owner: v.Owner, Key: key, Kind: m.Kind, Target: m.Target, Input: body, Refuse: refuse}
		switch {
		case key != "":
			return d.keyed(w, r, v, m, asked, p)
		case refuse != nil:
			return refuse
		case m.RequireKey:
			return &onejob.Error{Code: onejob.CodeKeyMissing, Message: "this model takes only calls with an Idempotency-Key"}
		}
		return d.keyless(w, r, v, m, asked, p)
	}
}

// request is what the door itself reads of a body; the rest is the provider's.
type request struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	// Background is true of a response that is to be asked for later. An image has
	// another one.
	Background jsontext.Value `json:"background"`
	// StreamOptions may ask for the usage at the end of a stream.
	StreamOptions jsontext.Value `json:"stream_options"`
}

func read(body []byte, api API) (request, error) {
	var asked request
	if err := json.Unmarshal(body, &asked); err != nil {
		return asked, whyUnread(body, err)
	}
	switch {
	case jsontext.Value(body).Kind() != '{': // null
		return asked, errNoObject
	case asked.Model == "":
		return asked, &onejob.Error{Code: onejob.CodeInvalidRequest, Message: `the member "model" is required: the name of a kind or a target`}
	case asked.Stream && (api == APIEmbeddings || api == APIImages):
		return asked, &onejob.Error{Code: onejob.CodeInvalidJob, Message: `"stream" is not served here: the answer comes whole`}
	}
	return asked, nil
}

var errNoObject = &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "the body is not a JSON object"}

// whyUnread says what is wrong with a body that cannot be read.
func whyUnread(body []byte, err error) error {
	if _, err := onejob.Canonical(body); err != nil {
		return err
	}
	if jsontext.Value(body).Kind() != '{' {
		return errNoObject
	}
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: `the member "model" is not a string, or "stream" not a boolean`, Err: err}
}

// keyed serves a call that names its intent.
func (d *doors) keyed(w http.ResponseWriter, r *http.Request, v httpapi.Visit, m Model, asked request, p onejob.SubmitParams) error {
	job, existed, watch, err := d.opts.Client.SubmitWatched(r.Context(), p)
	v.Submitted(p.Kind, existed, err)
	if err != nil {
		return err
	}
	defer watch.Stop()
	_, err = d.serve(w, r, v, recognised{intent: intentKeyed, asked: asked, model: m, job: job, existed: existed, watch: watch})
	return err
}

// recognised is the job of a call, and how it was found.
type recognised struct {
	intent  string
	asked   request
	model   Model
	job     *onejob.Job
	existed bool
	watch   *onejob.Watch
}

// serve holds the call until it is answered. It reports whether that is all that the
// call can ask for: the job's own answer, a failure included, and not that it is to
// come back.
func (d *doors) serve(w http.ResponseWriter, r *http.Request, v httpapi.Visit, c recognised) (whole bool, err error) {
	w.Header().Set("Onejob-Intent", c.intent)
	if c.existed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	job := c.job
	tell(w.Header(), job) // whatever comes of the waiting, the job is recorded
	if v.WantsNoWait(r.Header) {
		w.Header().Set("Preference-Applied", "respond-async")
		err := v.WriteJob(w, job)
		return err == nil, err
	}
	if c.asked.Stream {
		return d.stream(w, r, v, c)
	}
	if c.model.API == APIResponses && string(c.asked.Background) == "true" {
		err := giveResponse(w, job)
		return err == nil, err
	}
	job, over, err := conclude(r.Context(), job, d.answerable, c.watch.Look)
	switch {
	case err != nil:
		return false, err
	case over:
		return job.State.Terminal(), answer(w, job)
	}
	longest, doubtful := d.longest(v, r.Header), job.State == onejob.JobBlocked
	if doubtful && c.model.Heartbeat > 0 { // it is told by a status, which a sign of life would take
		longest = min(longest, c.model.Heartbeat)
	}
	ctx, done, err := v.Hold(w, r, longest)
	if err != nil {
		return false, err
	}
	defer done()
	if c.model.Heartbeat <= 0 || doubtful {
		if job, _, err = d.hold(ctx, c.watch); err != nil {
			return false, err
		}
		return job.State.Terminal(), answer(w, job)
	}
	b := &beating{w: w, every: c.model.Heartbeat}
	job, err = b.until(ctx, func(ctx context.Context) (*onejob.Job, bool, error) { return d.hold(ctx, c.watch) })
	switch {
	case err != nil && b.begun:
		panic(http.ErrAbortHandler)
	case err != nil:
		return false, err
	case b.begun:
		return job.State.Terminal(), b.answer(job)
	}
	return job.State.Terminal(), answer(w, job)
}

// hold waits until holding on brings nothing of a job, which it reports, or ctx ends.
func (d *doors) hold(ctx context.Context, w *onejob.Watch) (job *onejob.Job, over bool, err error) {
	for {
		if job, err = w.Until(ctx, d.answerable); err != nil {
			return nil, false, err
		}
		job, over, err = conclude(ctx, job, d.answerable, w.Look)
		if err != nil || over || ctx.Err() != nil {
			return job, over, err
		}
	}
}

// conclude reports whether holding on brings nothing, as enough says of a job, and
// returns the job of which that was found.
//
// Doubt that nothing seems to end is looked at a second time. Whether a call is under way
// here is asked after the job was read, so that it may have been settled in between. But
// the engine lets go of a call only once what came of it is recorded: who finds that none
// is under way, and reads the job then, sees what came of the last one.
func conclude(ctx context.Context, job *onejob.Job, enough func(*onejob.Job) bool, look func(context.Context) (*onejob.Job, error)) (*onejob.Job, bool, error) {
	over := enough(job)
	if !over || job.State.Terminal() {
		return job, over, nil
	}
	job, err := look(ctx)
	if err != nil {
		return nil, false, err
	}
	return job, enough(job), nil
}

// longest is how long a call is held at most.
func (d *doors) longest(v httpapi.Visit, h http.Header) time.Duration {
	longest := d.opts.Hold
	if wait := v.Wait(h); wait > 0 {
		longest = min(longest, wait)
	}
	return cmp.Or(longest, time.Second)
}

// answerable reports whether holding on brings nothing: the job has ended, or only a
// person or a certificate helps.
func (d *doors) answerable(job *onejob.Job) bool {
	switch {
	case job.State != onejob.JobBlocked:
		return job.State.Terminal()
	case job.Blocked == nil || job.Blocked.Reason != onejob.BlockAttemptUnknown:
		return true
	}
	return len(job.Attempts) > 0 && !slices.ContainsFunc(job.Attempts, d.awaited)
}

// awaited reports whether an attempt may still be heard of by itself: its call has not
// ended, and may linger for a late answer, or somebody asks about it or is told. Who
// does not know waits.
func (d *doors) awaited(a onejob.Attempt) bool {
	if a.State != onejob.AttemptUnknown {
		return a.State.InDoubt()
	}
	ended := a.Evidence.EndedMS > 0 || !a.LeaseOverAt.IsZero() && !d.opts.HeldFunc(a.JobID)
	how, known := d.opts.Reconcile[a.Target]
	return !ended || !known || how.Hears(&a)
}
