package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// Figures of the suite's own world.
const (
	owner        = "alice"
	worker       = "worker-1"
	lease        = 30 * time.Second
	sendWithin   = 5 * time.Second
	maxExecution = 10 * time.Minute
	quarantine   = 2*sendWithin + maxExecution // from the mark
)

// fixture is one promise's database and the shorthand to talk to it. Every
// method fails the test rather than return an error it was not asked about.
type fixture struct {
	*testing.T
	Opened
	s onejob.Store // the first handle

	certified map[string]bool // targets of the contract that racing jobs pin
}

func newFixture(t *testing.T, o Opened) *fixture {
	t.Helper()
	if len(o.Stores) == 0 {
		t.Fatal("open returned no store")
	}
	return &fixture{T: t, Opened: o, s: o.Stores[0], certified: map[string]bool{}}
}

// handle spreads concurrent callers over the handles.
func (f *fixture) handle(i int) onejob.Store { return f.Stores[i%len(f.Stores)] }

func (f *fixture) advance(d time.Duration) {
	f.Helper()
	if f.Advance == nil {
		f.Skip("the store's clock cannot be moved")
	}
	f.Advance(d)
}

func (f *fixture) noError(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("the store answered %v; want no error", err)
	}
}

// wantCode checks an error's code, and that it is an [*onejob.Error] at all.
func (f *fixture) wantCode(err error, code onejob.Code) {
	f.Helper()
	_ = f.wantError(err, code)
}

// wantError is wantCode for those who look at the rest of the error, too.
func (f *fixture) wantError(err error, code onejob.Code) *onejob.Error {
	f.Helper()
	var e *onejob.Error
	if !errors.As(err, &e) || e.Code != code {
		f.Fatalf("got error %v; want code %q", err, code)
	}
	return e
}

// policy is a kind with an effect and one target, defaults filled in.
func (f *fixture) policy(change func(*onejob.Policy)) onejob.Policy {
	f.Helper()
	p := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}
	if change != nil {
		change(&p)
	}
	p, err := p.WithDefaults()
	f.noError(err)
	return p
}

// intent is a new intent under key, of a caller who has never seen an answer.
func (f *fixture) intent(key string, change ...func(*onejob.JobCreateParams)) onejob.JobCreateParams {
	f.Helper()
	p := onejob.JobCreateParams{
		Owner: owner, KeyPrefix: key[:min(len(key), 8)], FingerprintVersion: 1,
		Kind: "charge", Input: []byte(`{"amount":7}`), Policy: f.policy(nil),
	}
	for _, c := range change {
		c(&p)
	}
	if c := p.Policy.Contract; c != nil && c.Digest == raceContract {
		f.certifyRace(p.Policy.Targets)
	}
	hash := sha256.Sum256([]byte(key))
	p.KeyHash = hash[:]
	p.Part = onejob.PartOf(p.Owner, key)
	p.ID = onejob.NewJobID(p.Part, time.UnixMilli(0))
	p.Token = onejob.NewToken()
	if p.Fingerprint == nil {
		p.Fingerprint = fingerprint(p)
	}
	return p
}

// fingerprint stands in for the keyed one: over what an intent is made of.
func fingerprint(p onejob.JobCreateParams) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %v %v", p.Kind, p.Target, p.Input, p.Supersedes, p.RunAfter, p.Deadline))
	return sum[:]
}

func withPolicy(change func(*onejob.Policy)) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { change(&p.Policy) }
}

func withInput(input string) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { p.Input = []byte(input) }
}

func withOwner(name string) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { p.Owner = name }
}

// submit records one intent and returns the store's whole answer.
func (f *fixture) submit(p onejob.JobCreateParams) onejob.JobCreateResult {
	f.Helper()
	return f.submitAll(p)[0]
}

func (f *fixture) submitAll(params ...onejob.JobCreateParams) []onejob.JobCreateResult {
	f.Helper()
	results, err := f.s.JobCreate(f.Context(), params)
	f.noError(err)
	if len(results) != len(params) {
		f.Fatalf("%d intents had %d answers", len(params), len(results))
	}
	return results
}

// create records one intent that must be new.
func (f *fixture) create(key string, change ...func(*onejob.JobCreateParams)) *onejob.Job {
	f.Helper()
	r := f.submit(f.intent(key, change...))
	f.noError(r.Err)
	if r.Existed {
		f.Fatalf("the first use of key %q was answered as a repeat", key)
	}
	return r.Job
}

func (f *fixture) get(id string) *onejob.Job {
	f.Helper()
	job, err := f.lookup(id, "")
	f.noError(err)
	return job
}

func (f *fixture) lookup(id, asking string) (*onejob.Job, error) {
	f.Helper()
	results, err := f.s.JobGet(f.Context(), []onejob.JobGetParams{{ID: id, Owner: asking, WithInput: true}})
	f.noError(err)
	return results[0].Job, results[0].Err
}

func (f *fixture) attempt(id string) onejob.Attempt {
	f.Helper()
	page, err := f.s.AttemptList(f.Context(), onejob.AttemptListParams{ID: id, Limit: 1, WithResult: true})
	f.noError(err)
	if len(page.Attempts) != 1 {
		f.Fatalf("there are %d attempts %q; want 1", len(page.Attempts), id)
	}
	return page.Attempts[0]
}

// events reads what was written down about a job, or skips.
func (f *fixture) events(job *onejob.Job) []onejob.JobEvent {
	f.Helper()
	reader, ok := f.s.(EventReader)
	if !ok {
		f.Skip("the store does not show its events")
	}
	events, err := reader.JobEvents(f.Context(), onejob.JobRef{Part: job.Part, ID: job.ID})
	f.noError(err)
	return events
}

// eventsOf counts the events of one kind.
func (f *fixture) eventsOf(job *onejob.Job, kind onejob.EventKind) int {
	f.Helper()
	n := 0
	for _, e := range f.events(job) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// wantJob checks where a job stands, and why when it is blocked.
func (f *fixture) wantJob(id string, state onejob.JobState, reason ...onejob.BlockReason) *onejob.Job {
	f.Helper()
	job := f.get(id)
	got := onejob.BlockReason("")
	if job.Blocked != nil {
		got = job.Blocked.Reason
	}
	want := onejob.BlockReason("")
	if len(reason) > 0 {
		want = reason[0]
	}
	if job.State != state || got != want {
		f.Fatalf("the job is %s %s; want %s %s", job.State, got, state, want)
	}
	return job
}

func (f *fixture) wantAttempt(id string, state onejob.AttemptState) onejob.Attempt {
	f.Helper()
	a := f.attempt(id)
	if a.State != state {
		f.Fatalf("attempt %d at %s is %s; want %s", a.Number, a.Target, a.State, state)
	}
	return a
}
