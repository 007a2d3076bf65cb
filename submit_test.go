package onejob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestADoubleClickIsOneJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const clicks = 50
	ids, created := make([]string, clicks), make([]bool, clicks)
	var wg sync.WaitGroup
	for i := range clicks {
		wg.Go(func() {
			job, existed, err := w.client.Submit(t.Context(), drawing(fmt.Sprintf(`{ "n":1%s, "prompt":"a cat"}`, strings.Repeat(" ", i))))
			if err != nil {
				t.Errorf("click %d: %v", i, err)
				return
			}
			ids[i], created[i] = job.ID, !existed
		})
	}
	wg.Wait()
	firsts := 0
	for i := range clicks {
		if created[i] {
			firsts++
		}
		if ids[i] != ids[0] {
			t.Errorf("click %d is job %s; want %s", i, ids[i], ids[0])
		}
	}
	if firsts != 1 {
		t.Errorf("%d of %d clicks say that they created the job; want 1", firsts, clicks)
	}
}

// An optimisation made checks of the payload stop working in one state of the first
// request or another, silently (aws-powertools/powertools-lambda-python#3781).
func TestAKeyAnswersInEveryStateOfItsJob(t *testing.T) {
	t.Parallel()
	for _, s := range onejob.JobStates() {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			job := w.leadTo(s, "k1")

			again, existed := w.submit(drawing(`{"prompt" : "a \u0063at"}`))
			if again.ID != job.ID || !existed || again.State != s {
				t.Errorf("the repeat is job %s (%s), existed %t; want %s (%s), true", again.ID, again.State, existed, job.ID, s)
			}
			_, existed, err := w.client.Submit(t.Context(), drawing(`{"prompt":"a dog"}`))
			if e := wantError(t, err, onejob.CodeKeyConflict); e.JobID != job.ID || !existed {
				t.Errorf("the conflict names job %q, existed %t; want %s, true", e.JobID, existed, job.ID)
			}
			if after := w.get(job.ID); len(after.Attempts) != len(job.Attempts) || after.State != s {
				t.Errorf("the repeats left %d attempts, %s; want %d, %s", len(after.Attempts), after.State, len(job.Attempts), s)
			}
		})
	}
}

func TestAKeyIsJudgedByItsFingerprintAfterThePurgeToo(t *testing.T) {
	t.Parallel()
	for _, s := range onejob.JobStates() {
		if !s.Terminal() {
			continue
		}
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			job := w.leadTo(s, "k1")
			w.advance(2 * time.Hour)
			if n, err := w.store.JobPurge(t.Context(), onejob.JobPurgeParams{PayloadAge: time.Hour, Limit: 1}); n != 1 || err != nil {
				t.Fatalf("purged %d jobs, %v; want 1", n, err)
			}
			_, _, err := w.client.Submit(t.Context(), drawing(`{"prompt":"a cat"}`))
			if e := wantError(t, err, onejob.CodeKeyExpired); e.JobID != job.ID {
				t.Errorf("the expired key names job %q; want %q", e.JobID, job.ID)
			}
			_, _, err = w.client.Submit(t.Context(), drawing(`{"prompt":"a dog"}`))
			if e := wantError(t, err, onejob.CodeKeyConflict); e.JobID != job.ID {
				t.Errorf("the conflict names job %q; want %q", e.JobID, job.ID)
			}
		})
	}
}

func TestAnOwnersKeysAreTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alices, _ := w.submit(drawing(`1`))
	p := drawing(`2`)
	p.Owner = "bob"
	bobs, existed := w.submit(p)
	if existed || bobs.ID == alices.ID {
		t.Errorf("bob's first use of the key is job %s, existed %t; want one of his own", bobs.ID, existed)
	}
	_, err := w.client.Get(t.Context(), "bob", alices.ID)
	missing, errMissing := w.client.Get(t.Context(), "bob", onejob.NewJobID(1, noon))
	if missing != nil || !errors.Is(err, onejob.ErrNotFound) || !errors.Is(errMissing, onejob.ErrNotFound) {
		t.Errorf("alice's job answers bob %v, one that does not exist %v; want not-found for both", err, errMissing)
	}
}

// Each intent has the fault that is looked for next, and every later one too.
func TestTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	p := onejob.SubmitParams{Owner: "", Key: "\x00", Kind: "unknown", Input: []byte(strings.Repeat("[", 2000)), Priority: 999}
	for _, step := range []struct {
		code onejob.Code
		mend func()
	}{
		{onejob.CodeInvalidArgument, func() { p.Owner = onejob.InstanceOwner }},
		{onejob.CodeInvalidArgument, func() { p.Owner = "alice" }},
		{onejob.CodePayloadTooLarge, func() { p.Input = []byte(`{"a":1,"a":2}`) }},
		{onejob.CodeKeyInvalid, func() { p.Key = "" }},
		{onejob.CodeKeyMissing, func() { p.Key = "k1" }},
		{onejob.CodePayloadNotCanonical, func() { p.Input = []byte(`{"a":1}`) }},
		{onejob.CodeInvalidJob, func() { p.Kind = "draw" }},
		{onejob.CodeInvalidJob, func() { p.Priority = 100 }},
		{onejob.CodeInvalidJob, func() { p.Input = []byte(`{"prompt":"a cat"}`) }},
		{onejob.CodeQuotaExceeded, nil},
	} {
		w := newWorld(t, func(_ *world, o *onejob.Options) {
			o.MaxInputBytes = 1000
			kind := o.Kinds["draw"]
			kind.CheckFunc = func(input []byte) error {
				if !strings.Contains(string(input), "prompt") {
					return errors.New("prompt is missing")
				}
				return nil
			}
			o.Kinds["draw"] = kind
			o.AdmitFunc = func(context.Context, string, int) *onejob.Error { return &onejob.Error{Code: onejob.CodeQuotaExceeded} }
		})
		job, existed, err := w.client.Submit(t.Context(), p)
		if onejob.CodeOf(err) != step.code || job != nil || existed {
			t.Fatalf("Submit(%+v) = %v, %t, %v; want code %s", p, job, existed, err, step.code)
		}
		if step.mend != nil {
			step.mend()
		}
	}
}

// A kind removed yesterday must not deny a job that was acknowledged.
func TestAKnownKeyAnswersAheadOfWhatGuardsTheInsert(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*onejob.Options){
		"TheKindIsGone":   func(o *onejob.Options) { delete(o.Kinds, "draw") },
		"TheTargetIsGone": func(o *onejob.Options) { o.Kinds["draw"] = onejob.Kind{Policy: o.Kinds["charge"].Policy} },
		"TheSchemaChanged": func(o *onejob.Options) {
			o.Kinds["draw"] = onejob.Kind{Policy: o.Kinds["draw"].Policy, CheckFunc: func([]byte) error { return errors.New("no") }}
		},
		"TheQuotaIsSpent": func(o *onejob.Options) {
			o.AdmitFunc = func(context.Context, string, int) *onejob.Error {
				return &onejob.Error{Code: onejob.CodeQuotaExceeded, Message: "tomorrow"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := drawing(`{"prompt":"a cat"}`)
			p.Target = "b"
			job, _ := w.submit(p)
			now := newWorld(t, func(v *world, o *onejob.Options) {
				v.store = w.store
				spoil(o)
			})
			again, existed := now.submit(p)
			if again.ID != job.ID || !existed {
				t.Errorf("the repeat is job %s, existed %t; want %s, true", again.ID, existed, job.ID)
			}
			other := p
			other.Input = []byte(`{"prompt":"a dog"}`)
			_, _, err := now.client.Submit(t.Context(), other)
			wantCode(t, err, onejob.CodeKeyConflict)
			other.Key = "k2"
			if _, _, err := now.client.Submit(t.Context(), other); err == nil || onejob.CodeOf(err) == onejob.CodeKeyConflict {
				t.Errorf("a new job is answered with %v; want it refused", err)
			}
		})
	}
}

func TestARefusalLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*onejob.SubmitParams){
		"NotCanonical":   func(p *onejob.SubmitParams) { p.Input = []byte(`{"a":1,"a":2}`) },
		"NotJSON":        func(p *onejob.SubmitParams) { p.Input = []byte(`{`) },
		"UnknownKind":    func(p *onejob.SubmitParams) { p.Kind = "unknown" },
		"UnknownTarget":  func(p *onejob.SubmitParams) { p.Target = "elsewhere" },
		"BadPriority":    func(p *onejob.SubmitParams) { p.Priority = -101 },
		"BadMetadata":    func(p *onejob.SubmitParams) { p.Metadata = []byte(`{"a":1,"a":2}`) },
		"MetadataNoJSON": func(p *onejob.SubmitParams) { p.Metadata = []byte(`x`) },
		"MetadataNoObject": func(p *onejob.SubmitParams) {
			p.Metadata = []byte(` [1]`)
		},
		"SupersedesNothing": func(p *onejob.SubmitParams) { p.Supersedes = onejob.NewJobID(1, noon) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := drawing(`{"prompt":"a cat"}`)
			spoil(&p)
			if job, existed, err := w.client.Submit(t.Context(), p); err == nil || job != nil || existed {
				t.Fatalf("Submit = %v, %t, %v; want a refusal", job, existed, err)
			}
			if _, existed := w.submit(drawing(`{"prompt":"a cat"}`)); existed {
				t.Error("the refused intent took the key")
			}
		})
	}
}

func TestAQuotedKeyIsTheBareKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare, _ := w.submit(drawing(`1`))
	p := drawing(`1`)
	p.Key = `"k1"`
	if quoted, existed := w.submit(p); quoted.ID != bare.ID || !existed {
		t.Errorf("the quoted key is job %s, existed %t; want %s, true", quoted.ID, existed, bare.ID)
	}
}

func TestTheProviderGetsTheCallersOwnBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const input = `{ "b" : 1.0, "a":"\u0061" }`
	job, _ := w.submit(drawing(input))
	results, err := w.store.JobGet(t.Context(), []onejob.JobGetParams{{ID: job.ID, WithInput: true}})
	w.noError(err)
	if got := string(results[0].Job.Input); got != input {
		t.Errorf("the job works on %s; want %s", got, input)
	}
}

func TestWhatAJobPins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *onejob.Options) {
		kind := o.Kinds["draw"]
		kind.Policy.Deadline = time.Hour
		o.Kinds["draw"] = kind
	})
	p := drawing(`1`)
	p.Metadata, p.Priority, p.Trace = []byte(`{"page":7}`), 100, "00-trace"
	job, _ := w.submit(p)
	if part, _ := onejob.PartOfID(job.ID); job.Part != part || part != onejob.PartOf("alice", "k1") {
		t.Errorf("the job lies in part %d, its id says %d; want %d", job.Part, part, onejob.PartOf("alice", "k1"))
	}
	if job.Policy.MaxAttempts != onejob.DefaultMaxAttempts || job.Policy.Effect != onejob.EffectNone {
		t.Errorf("the job pins %+v; want the kind's policy with its defaults", job.Policy)
	}
	if !job.Deadline.Equal(noon.Add(time.Hour)) || job.Priority != 100 || string(job.Metadata) != `{"page":7}` || job.Trace != "00-trace" {
		t.Errorf("deadline %s, priority %d, metadata %s, trace %q", job.Deadline, job.Priority, job.Metadata, job.Trace)
	}
}
