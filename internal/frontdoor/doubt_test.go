package frontdoor_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/sim"
)

const plain = `{"model":"chat","messages":[{"role":"user","content":"hello"}]}`

// newCallOnly is a world whose providers are heard of by their answers alone. Nobody
// holds a call for as long as they would in it.
func newCallOnly(t *testing.T, script string, change ...func(*frontdoor.Options)) *world {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{sim.AnyModel: {}}})
	provider.Script(sim.MustParse(script)...)
	w := newWorldAt(t, provider.URL(), append([]func(*frontdoor.Options){callOnly}, change...)...)
	w.provider = provider
	return w
}

func callOnly(o *frontdoor.Options) {
	o.Reconcile, o.Hold = map[string]onejob.Reconcile{"gpt": {Lookup: true}}, time.Hour
}

// held makes a call that is not waited for longer than a test can.
func (w *world) held(body string, headers ...string) answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	return w.do(w.request(ctx, chat, body, headers...))
}

func TestDoubtThatNothingWillEndByItselfIsToldAtOnce(t *testing.T) {
	t.Parallel()
	short := strings.Replace(brief, `"brief"`, `"short"`, 1)
	for name, tt := range map[string]struct{ script, body string }{
		"TheConnectionBroke":    {"reset", brief},
		"TheLingerIsOver":       {"silent", short},
		"OfAStream":             {"reset", strings.Replace(brief, "{", `{"stream":true,`, 1)},
		"OfAStreamThatIsSilent": {"silent", strings.Replace(short, "{", `{"stream":true,`, 1)},
		"BeforeASignOfLife":     {"reset", strings.Replace(brief, `"brief"`, `"calm"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCallOnly(t, tt.script, func(o *frontdoor.Options) {
				o.Models["short"] = frontdoor.Model{Kind: "short", API: frontdoor.APIChat}
				o.Models["calm"] = frontdoor.Model{Kind: "brief", API: frontdoor.APIChat, Heartbeat: time.Minute}
			})
			for range 2 {
				got := w.held(tt.body, "Idempotency-Key", "k1")
				got.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
				if got.header.Get("Location") != "/v1/jobs/"+got.header.Get("Onejob-Job-Id") || got.header.Get("X-Should-Retry") != "false" {
					t.Errorf("headers %v", got.header)
				}
			}
		})
	}
}

func TestALateAnswerIsWaitedForWhereNothingElseIsHeard(t *testing.T) {
	t.Parallel()
	w := newCallOnly(t, "late=600ms")
	if got := w.held(brief, "Idempotency-Key", "k1"); got.status != http.StatusOK || got.header.Get("Onejob-Attempts") != "1" {
		t.Errorf("%d %s; want the late answer", got.status, got.body)
	}
}

func TestDoubtThatAProviderCanBeAskedAboutIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]map[string]onejob.Reconcile{
		"BySearching":          {"gpt": {Search: true}},
		"ByAReport":            {"gpt": {Callback: true}},
		"ByAReplay":            {"gpt": {ReplaySafe: true, ReplayFor: time.Hour}},
		"InAWayThatIsNotKnown": {"sonnet": {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRulingWaitedFor(t, how)
		})
	}
}

func wantRulingWaitedFor(t *testing.T, how map[string]onejob.Reconcile) {
	t.Helper()
	w := newCallOnly(t, "reset", func(o *frontdoor.Options) { o.Reconcile = how })
	settled := w.meanwhile(onejob.AttemptUnknown, func(job *onejob.Job) {
		_, _, err := w.client.Resolve(t.Context(), onejob.AttemptResolveParams{
			ID: job.Attempts[0].ID, Owner: "alice", Actor: "ann", Outcome: onejob.OutcomeSucceeded, Evidence: "seen",
			Result: &onejob.Result{Body: []byte(`{"choices":[]}`), ContentType: "application/json"},
		})
		if err != nil {
			t.Error(err)
		}
	})
	got := w.held(brief, "Idempotency-Key", "k1")
	<-settled
	if got.status != http.StatusOK || string(got.body) != `{"choices":[]}` {
		t.Errorf("%d %s; want what was found out", got.status, got.body)
	}
}

// A lease that ended while the store was away says nothing of a call that goes on here.
func TestALeaseThatIsOverEndsNoCallOfThisProcess(t *testing.T) {
	t.Parallel()
	lost := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-lost
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}]}`)
	}))
	defer provider.Close()
	answered := sync.OnceFunc(func() { close(lost) })
	defer answered()
	w := newWorldAt(t, provider.URL, callOnly, func(o *frontdoor.Options) {
		holds := o.HeldFunc
		o.HeldFunc = func(jobID string) bool {
			defer answered()
			return holds(jobID)
		}
	})
	done := w.meanwhile(onejob.AttemptRunning, w.loseLease)
	got := w.held(plain, "Idempotency-Key", "k1")
	<-done
	if got.status != http.StatusOK {
		t.Errorf("%d %s; want the answer of the call", got.status, got.body)
	}
}

func TestALeaseThatIsOverCutsNoStreamOfThisProcess(t *testing.T) {
	t.Parallel()
	m, looked := newMouth(t), make(chan struct{})
	seen := sync.OnceFunc(func() { close(looked) })
	w := newWorldAt(t, m.URL, callOnly, func(o *frontdoor.Options) {
		holds := o.HeldFunc
		o.HeldFunc = func(jobID string) bool {
			defer seen()
			return holds(jobID)
		}
	})
	m.say(t, head, word("hel"))
	got := w.read(chat, streamed, "Idempotency-Key", "k1")
	got.want(head + word("hel"))
	<-w.meanwhile(onejob.AttemptRunning, w.loseLease)
	w.signals.JobChanged(got.resp.Header.Get("Onejob-Job-Id"))
	select {
	case <-looked:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody looked whether the call goes on")
	}
	m.say(t, word("lo"), stop, theEnd)
	close(m.says)
	got.want(word("lo") + stop + theEnd)
}

// newSettling is a world in which a call is settled between the reading of its job and the
// question whether it goes on: who asks is answered once it does not any more, and the job
// as it was read says that its lease is over.
func newSettling(t *testing.T) *world {
	t.Helper()
	asked := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		streams := strings.Contains(string(body), `"stream":true`)
		if streams {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, head+word("hi"))
			_ = http.NewResponseController(w).Flush()
		}
		<-asked
		if streams {
			_, _ = io.WriteString(w, stop+theEnd)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}]}`)
	}))
	t.Cleanup(provider.Close)
	settle := sync.OnceFunc(func() { close(asked) })
	t.Cleanup(settle)
	var w *world
	w = newWorldAt(t, provider.URL, callOnly, func(o *frontdoor.Options) {
		o.Models["calm"] = frontdoor.Model{Kind: "chat", API: frontdoor.APIChat, Heartbeat: 20 * time.Millisecond}
		holds := o.HeldFunc
		o.HeldFunc = func(jobID string) bool {
			settle()
			job, err := w.client.WatchUntil(t.Context(), "alice", jobID, func(j *onejob.Job) bool { return j.State.Terminal() })
			if err != nil || job.State != onejob.JobSucceeded {
				t.Errorf("the call is not settled: %v", err)
			}
			for t.Context().Err() == nil && holds(jobID) {
				runtime.Gosched() // it lets go at once
			}
			return holds(jobID)
		}
	})
	return w
}

func TestACallThatIsSettledWhileItIsAskedForIsNoDoubt(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"OfAWholeAnswer":         plain,
		"OfOneBehindSignsOfLife": strings.Replace(plain, `"chat"`, `"calm"`, 1),
		"OfAStreamThatHasBegun":  streamed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSettling(t)
			lost := w.meanwhile(onejob.AttemptRunning, w.loseLease)
			got := w.held(body, "Idempotency-Key", "k1")
			<-lost
			if got.status != http.StatusOK || !strings.Contains(string(got.body), "hi") || strings.Contains(string(got.body), string(onejob.CodeOutcomeUnknown)) {
				t.Errorf("%d %s; want the answer of the call", got.status, got.body)
			}
		})
		t.Run(name+"/AskedForAgain", func(t *testing.T) {
			t.Parallel()
			w := newSettling(t)
			lost := w.meanwhile(onejob.AttemptRunning, w.loseLease)
			w.held(body, "Idempotency-Key", "k1", "Prefer", "respond-async")
			<-lost
			got := w.held(body, "Idempotency-Key", "k1")
			if got.status != http.StatusOK || !strings.Contains(string(got.body), "hi") || strings.Contains(string(got.body), string(onejob.CodeOutcomeUnknown)) {
				t.Errorf("%d %s; want the answer of the call", got.status, got.body)
			}
		})
	}
}

func TestWhatWasLostWithAnotherProcessIsDoubtAtOnce(t *testing.T) {
	t.Parallel()
	w := newCallOnly(t, "hold", func(o *frontdoor.Options) { o.HeldFunc = nil })
	defer w.provider.Release()
	lost := w.meanwhile(onejob.AttemptRunning, w.loseLease)
	w.held(plain, "Idempotency-Key", "k1").wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	<-lost
	w.held(plain, "Idempotency-Key", "k1").wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
}

// meanwhile does something once the attempt of the job that alice has is in a state. It returns what is
// closed when that is done.
func (w *world) meanwhile(state onejob.AttemptState, do func(*onejob.Job)) <-chan struct{} {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var page onejob.JobPage
		var err error
		for err == nil && len(page.Jobs) == 0 && ctx.Err() == nil {
			page, err = w.client.List(ctx, onejob.JobListParams{Owner: "alice", Limit: 1})
		}
		if err != nil || len(page.Jobs) == 0 {
			w.t.Errorf("%d jobs, %v; want one", len(page.Jobs), err)
			return
		}
		job, err := w.client.WatchUntil(ctx, "alice", page.Jobs[0].ID, func(j *onejob.Job) bool { return len(j.Attempts) > 0 && j.Attempts[0].State == state })
		if err != nil || ctx.Err() != nil {
			w.t.Errorf("its attempt is not %s: %v", state, err)
			return
		}
		do(job)
	}()
	return done
}

// loseLease ends the lease of a job's attempt as that of a process that is gone.
func (w *world) loseLease(job *onejob.Job) {
	w.t.Helper()
	a := job.Attempts[0]
	w.store.advance(time.Hour)
	expired, err := w.store.AttemptExpire(w.t.Context(), []onejob.AttemptRef{{Part: a.Part, JobID: job.ID, ID: a.ID}})
	if err != nil || len(expired) != 1 {
		w.t.Errorf("%d leases ended, %v; want 1", len(expired), err)
	}
}
