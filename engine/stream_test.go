package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

const theEnd = "[done]"

// streams shows pieces, one each pause, and ends as end says. A piece that nobody wants
// ends it.
func streams(pause time.Duration, pieces []string, end behaviour) behaviour {
	return func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
		r.Sent()
		for _, piece := range pieces {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return cutOff(ctx, r)
			}
			if err := r.Chunk([]byte(piece)); err != nil {
				return onejob.Answer{}, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return cutOff(ctx, r)
		}
		return end(ctx, r)
	}
}

// wholeOf answers with pieces and the end, which nobody was shown.
func wholeOf(pieces ...string) behaviour {
	return func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{Body: []byte(strings.Join(pieces, "") + theEnd), ContentType: "text/event-stream"}, nil
	}
}

func ends(outcome onejob.Outcome) behaviour {
	return func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{Outcome: outcome, Failure: &onejob.Failure{Code: "test", Message: "it ended so"}}, nil
	}
}

func cutOff(ctx context.Context, _ onejob.Request) (onejob.Answer, error) {
	return onejob.Answer{}, ctx.Err()
}

var hello = []string{"hel", "lo", " world"}

// follow returns all that is shown of a job until it has an answer, or only somebody
// else can give one.
func (w *world) follow(id string) (shown string, f *onejob.Follower) {
	w.t.Helper()
	f = w.client.Follow("o", w.get(id))
	defer f.Stop()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	for {
		piece, err := f.Next(ctx, func(j *onejob.Job) bool { return j.State.Terminal() || j.State == onejob.JobBlocked })
		if err != nil {
			w.t.Fatal(err)
		}
		if len(piece) == 0 {
			break
		}
		shown += string(piece)
	}
	if f.Job().State == onejob.JobSucceeded {
		rest, err := f.Rest()
		if err != nil {
			w.t.Fatal(err)
		}
		shown += string(rest)
	}
	return shown, f
}

func (w *world) kept(job *onejob.Job) string {
	w.t.Helper()
	list, err := w.store.(onejob.StreamStore).ChunkList(w.t.Context(), onejob.ChunkListParams{Job: onejob.JobRef{Part: job.Part, ID: job.ID}})
	if err != nil {
		w.t.Fatal(err)
	}
	var all string
	for _, body := range list.Bodies {
		all += string(body)
	}
	return all
}

func TestAnAnswerIsShownAsItComesAndAgainFromItsFirstByte(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": streams(time.Second, hello, wholeOf(hello...))}}, func(w *world) {
		job := w.submit("1")
		f := w.client.Follow("o", job)
		defer f.Stop()
		for _, want := range hello {
			piece, err := f.Next(w.t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() })
			if string(piece) != want || err != nil {
				t.Fatalf("%q, %v was shown; want %q", piece, err, want)
			}
			if again := w.client.Follow("o", job); true {
				all, err := again.Next(w.t.Context(), func(*onejob.Job) bool { return true })
				again.Stop()
				if !strings.HasSuffix(string(all), want) || !strings.HasPrefix(string(all), hello[0]) || err != nil {
					t.Errorf("who comes now is shown %q, %v; want all until %q", all, err, want)
				}
			}
		}
		if a := f.Attempt(); a == nil || a.Number != 1 || a.Target != "a" {
			t.Errorf("shown is attempt %+v; want the first, at a", a)
		}
		job = w.until(job.ID, onejob.JobSucceeded)
		piece, err := f.Next(w.t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() })
		rest, restErr := f.Rest()
		if len(piece) != 0 || err != nil || restErr != nil || string(rest) != theEnd {
			t.Errorf("at the end %q and %q, %v, %v; want the end alone", piece, rest, err, restErr)
		}
		time.Sleep(time.Second)
		if kept := w.kept(job); kept != "" {
			t.Errorf("beside the result %q is still kept", kept)
		}
		if shown, _ := w.follow(job.ID); shown != "hello world"+theEnd {
			t.Errorf("a repeat is shown %q", shown)
		}
	})
}

func TestAFailureAfterSomethingWasShownIsTheEndAndBeforeItIsNot(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{hello, "failed: 1@a=failed"},
		{nil, "succeeded: 1@a=failed 2@b=succeeded"},
	} {
		t.Run(c.want, func(t *testing.T) {
			targets := map[string]behaviour{"a": streams(time.Second, c.pieces, ends(onejob.OutcomeExecutedFailed)), "b": streams(time.Second, hello, wholeOf(hello...))}
			in(t, setting{policy: policy, targets: targets}, func(w *world) {
				id := w.submit("1").ID
				shown, f := w.follow(id)
				if got := states(f.Job()); got != c.want {
					t.Errorf("%s; want %s", got, c.want)
				}
				if f.Job().State == onejob.JobFailed && (shown != "hello world" || f.Job().Error.Code != onejob.FailureExecutedFailed) {
					t.Errorf("%q was shown, error %+v; want all that came, and that it was executed and failed", shown, f.Job().Error)
				}
			})
		})
	}
}

func TestAnAnswerThatBreaksItsContractIsNotShownToItsEnd(t *testing.T) {
	targets := map[string]behaviour{"a": streams(time.Millisecond, hello, wholeOf("broken")), "b": answers(`1`)}
	in(t, setting{policy: underContract(onejob.EffectNone, "a", "b"), targets: targets, engine: engine.Options{Contracts: &held{}}}, func(w *world) {
		shown, f := w.follow(w.submit("1").ID)
		if got, want := states(f.Job()), "failed: 1@a=failed"; got != want || strings.Contains(shown, theEnd) {
			t.Errorf("%s, shown %q; want %s, and no end", got, shown, want)
		}
	})
}

// A cut stream is no success: what came is there, and nothing is done again by itself.
func TestACutAnswerIsKeptAndStaysInDoubt(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	targets := map[string]behaviour{"a": streams(time.Millisecond, hello, ends(onejob.OutcomeResultLost)), "b": answers(`1`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		shown, f := w.follow(id)
		if got, want := states(f.Job()), "blocked: 1@a=unknown"; got != want || shown != "hello world" {
			t.Errorf("%s, shown %q; want %s and all that came", got, shown, want)
		}
		time.Sleep(24 * time.Hour)
		if again, _ := w.follow(id); again != "hello world" || w.calls.count() != 1 {
			t.Errorf("a day later %q is shown, %d calls; want the same and one", again, w.calls.count())
		}
	})
}

func TestTheFirstPieceDecidesARaceAndTheLoserIsLeft(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, RaceAfter: time.Second, Timeout: time.Hour}
	targets := map[string]behaviour{
		"slow": streams(10*time.Second, hello, wholeOf(hello...)),
		"fast": streams(3*time.Second, []string{"hi", " there", "!"}, wholeOf("hi there!")),
	}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		shown, f := w.follow(id)
		if shown != "hi there!"+theEnd {
			t.Errorf("%q was shown; want the answer of the second lane", shown)
		}
		time.Sleep(time.Minute)
		job := w.get(id)
		if got, want := states(job), "succeeded: 1@slow=cancelled 2@fast=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		if a := f.Attempt(); a == nil || a.Target != "fast" {
			t.Errorf("shown was %+v; want the attempt at fast", a)
		}
	})
}

// The lane that has said nothing is hung up on too, and starts no other.
func TestTheFirstPieceEndsTheLanesThatAreSilent(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "silent", "c"}, Lanes: 3, RaceAfter: 10 * time.Second, Timeout: time.Hour}
	targets := map[string]behaviour{"a": streams(12*time.Second, hello, wholeOf(hello...)), "silent": answersAfter(30*time.Minute, `1`), "c": answers(`1`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(15 * time.Second)
		if got, want := states(w.get(id)), "running: 1@a=running 2@silent=cancelled"; got != want {
			t.Errorf("3 s after the first piece: %s; want %s", got, want)
		}
		if shown, f := w.follow(id); shown != "hello world"+theEnd || w.calls.count() != 2 {
			t.Errorf("%s, %q was shown, %d calls; want the first lane's answer and two", states(f.Job()), shown, w.calls.count())
		}
	})
}

// atOnce answers with pieces and the end at one time.
func atOnce(after time.Duration, pieces ...string) behaviour {
	return func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
		r.Sent()
		time.Sleep(after)
		_ = r.Chunk([]byte(strings.Join(pieces, ""))) // it has come whole
		a, err := wholeOf(pieces...)(ctx, r)
		a.CostMicros, a.Currency = 7, "EUR"
		return a, err
	}
}

func TestAnAnswerThatCameWholeDoesNotTakeAJobWhoseCallerIsShownAnother(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "late"}, Lanes: 2, RaceAfter: time.Second, Timeout: time.Hour}
	for _, ends := range []time.Duration{3 * time.Second, 9 * time.Second} { // beside the first piece, and later
		t.Run(ends.String(), func(t *testing.T) {
			targets := map[string]behaviour{"slow": streams(4*time.Second, hello, wholeOf(hello...)), "late": atOnce(ends, "hi", "!")}
			in(t, setting{policy: policy, targets: targets}, func(w *world) {
				id := w.submit("1").ID
				shown, f := w.follow(id)
				time.Sleep(time.Minute)
				for _, a := range w.get(id).Attempts {
					switch want := map[string]string{"slow": "hello world", "late": "hi!"}[a.Target] + theEnd; {
					case a.ID != f.Job().CompletedBy && a.State != onejob.AttemptCancelled:
						t.Errorf("the attempt at %s is %s; want it cancelled", a.Target, a.State)
					case a.ID == f.Job().CompletedBy && shown != want:
						t.Errorf("%q was shown, and the answer is that of %s; want %q", shown, a.Target, want)
					case a.Target == "late" && a.CostMicros != 7:
						t.Errorf("what came whole cost %d; want 7, whoever was shown", a.CostMicros)
					}
				}
			})
		})
	}
}

// An answer that came whole before any other was shown is the one.
func TestAnAnswerThatCameWholeWinsARaceInWhichNobodyIsShown(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "late"}, Lanes: 2, RaceAfter: time.Second, Timeout: time.Hour}
	targets := map[string]behaviour{"slow": streams(time.Minute, hello, wholeOf(hello...)), "late": atOnce(time.Second, "hi", "!")}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		shown, _ := w.follow(id)
		time.Sleep(time.Second)
		if got, want := states(w.get(id)), "succeeded: 1@slow=cancelled 2@late=succeeded"; shown != "hi!"+theEnd || got != want {
			t.Errorf("%s, %q was shown; want %s and the answer of the second", got, shown, want)
		}
	})
}

func TestNobodyRacesAgainstAnAnswerThatIsShown(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Lanes: 2, RaceAfter: 10 * time.Second, Timeout: time.Hour}
	targets := map[string]behaviour{"a": streams(6*time.Second, hello, wholeOf(hello...)), "b": answers(`1`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		w.until(w.submit("1").ID, onejob.JobSucceeded)
		if n := w.calls.count(); n != 1 {
			t.Errorf("%d calls; want 1", n)
		}
	})
}

func TestSilenceCountsFromTheLastPiece(t *testing.T) {
	pieces := strings.Split(strings.Repeat("word ", 20), " ")
	targets := map[string]behaviour{"a": inOrder(
		streams(9*time.Second, pieces[:20], wholeOf(pieces[:20]...)),
		streams(9*time.Second, pieces[:3], answersAfter(time.Minute, "late")),
	)}
	in(t, setting{policy: onejob.Policy{Timeout: 10 * time.Second, Linger: time.Hour}, targets: targets}, func(w *world) {
		w.until(w.submit("1").ID, onejob.JobSucceeded)
		id := w.submit("2").ID
		if got := states(w.until(id, onejob.JobBlocked)); got != "blocked: 1@a=unknown" {
			t.Errorf("%s; want it unknown once nothing more comes", got)
		}
		w.until(id, onejob.JobSucceeded)
	})
}

// flaky is a store that does not confirm pieces, though it may have kept them.
type flaky struct {
	onejob.Store
	onejob.StreamStore
	calls atomic.Int32
}

func (s *flaky) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	n := s.calls.Add(1)
	if n%3 == 1 {
		return nil, onejob.Unavailable(errNoAnswer)
	}
	results, err := s.StreamStore.ChunkAppend(ctx, params)
	if n%3 == 2 {
		return nil, onejob.Unavailable(errNoAnswer)
	}
	return results, err
}

func TestAPieceThatWasNotConfirmedIsThereOnce(t *testing.T) {
	pieces := strings.SplitAfter("one two three four five six seven eight nine ten", " ")
	wrap := func(s onejob.Store) onejob.Store { return &flaky{Store: s, StreamStore: s.(onejob.StreamStore)} }
	targets := map[string]behaviour{"a": streams(time.Second, pieces, ends(onejob.OutcomeResultLost))}
	in(t, setting{targets: targets, wrap: wrap}, func(w *world) {
		shown, _ := w.follow(w.submit("1").ID)
		if shown != strings.Join(pieces, "") {
			t.Errorf("%q was shown; want each piece once, in order", shown)
		}
	})
}

func TestWhatWasShownOfOneAttemptIsNotWentOnWithAnothers(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test", SendWithin: time.Second}
	targets := map[string]behaviour{"a": streams(time.Second, hello, ends(onejob.OutcomeResultLost)), "b": streams(time.Second, []string{"hi"}, wholeOf("hi"))}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		shown, f := w.follow(id)
		time.Sleep(time.Hour)
		_, _, err := w.client.Resolve(w.t.Context(), onejob.AttemptResolveParams{ID: f.Job().Attempts[0].ID, Owner: "o", Actor: "ann", Outcome: onejob.OutcomeExecutedFailed, Evidence: "seen in their log"})
		if err != nil {
			t.Fatal(err)
		}
		again := w.client.Follow("o", w.get(id))
		defer again.Stop()
		first, err := again.Next(w.t.Context(), func(*onejob.Job) bool { return true })
		if string(first) != shown || err != nil {
			t.Fatalf("%q, %v is shown after the ruling; want %q", first, err, shown)
		}
		w.until(id, onejob.JobSucceeded)
		if piece, err := again.Next(w.t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() }); len(piece) > 0 || err != nil {
			t.Errorf("%q, %v was shown; want nothing more", piece, err)
		}
		if rest, err := again.Rest(); !errors.Is(err, onejob.ErrAnotherAnswer) {
			t.Errorf("the rest is %q, %v; want that another attempt has answered", rest, err)
		}
		if whole, _ := w.follow(id); whole != "hi"+theEnd {
			t.Errorf("who comes now is shown %q; want the answer", whole)
		}
	})
}

// forgetful is a store that keeps pieces and never says so.
type forgetful struct {
	onejob.Store
	onejob.StreamStore
}

func (s *forgetful) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	_, err := s.StreamStore.ChunkAppend(ctx, params)
	return nil, errors.Join(err, onejob.Unavailable(errNoAnswer))
}

// Who follows may have seen a piece that was kept and not confirmed.
func TestAfterAPieceThatMayBeThereNoOtherTargetTakesOver(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	wrap := func(s onejob.Store) onejob.Store { return &forgetful{Store: s, StreamStore: s.(onejob.StreamStore)} }
	targets := map[string]behaviour{"a": streams(time.Second, hello[:1], ends(onejob.OutcomeExecutedFailed)), "b": answers(`1`)}
	in(t, setting{policy: policy, targets: targets, wrap: wrap}, func(w *world) {
		shown, f := w.follow(w.submit("1").ID)
		if got, want := states(f.Job()), "failed: 1@a=failed"; got != want || shown != hello[0] {
			t.Errorf("%s, shown %q; want %s and the piece", got, shown, want)
		}
	})
}

// A rule of the target's may say of the end that nothing was done; what was shown says otherwise.
func TestWhatWasShownWasExecuted(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"a", "b"}, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	for _, proof := range []error{onejob.ErrRefused, onejob.ErrNotSent} {
		t.Run(proof.Error(), func(t *testing.T) {
			targets := map[string]behaviour{"a": streams(time.Second, hello, fails(proof, onejob.NextAgain)), "b": answers(`1`)}
			in(t, setting{policy: policy, targets: targets}, func(w *world) {
				job := w.until(w.submit("1").ID, onejob.JobFailed)
				if a := job.Attempts[0]; len(job.Attempts) != 1 || a.Outcome != onejob.OutcomeExecutedFailed {
					t.Errorf("%s, outcome %s; want one attempt that was executed and failed", states(job), a.Outcome)
				}
			})
		})
	}
}

// A question may find out another answer of the attempt that was shown: by its id, or
// sent once more.
func TestTheEndOfAnotherAnswerIsNotShownAfterTheBeginOfTheFirst(t *testing.T) {
	targets := map[string]behaviour{"a": streams(time.Second, hello, ends(onejob.OutcomeResultLost))}
	in(t, setting{targets: targets}, func(w *world) {
		id := w.submit("1").ID
		shown, f := w.follow(id)
		again := w.client.Follow("o", w.get(id))
		defer again.Stop()
		if first, err := again.Next(w.t.Context(), func(*onejob.Job) bool { return true }); string(first) != shown || err != nil {
			t.Fatalf("%q, %v is shown; want %q", first, err, shown)
		}
		results, err := w.store.(onejob.ProbeStore).ProbeRecord(w.t.Context(), []onejob.ProbeRecordParams{{
			Ref: onejob.AttemptRef{Part: f.Job().Part, JobID: id, ID: f.Job().Attempts[0].ID}, Method: onejob.ProbeReplay, Outcome: onejob.OutcomeSucceeded,
			Result: &onejob.Result{Body: []byte("an answer of other words" + theEnd), ContentType: "text/event-stream"}, Detail: "test",
		}})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
		job := w.until(id, onejob.JobSucceeded)
		if job.CompletedBy != f.Attempt().ID {
			t.Fatalf("the winner is %s; want the attempt that was shown", job.CompletedBy)
		}
		if piece, err := again.Next(w.t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() }); len(piece) > 0 || err != nil {
			t.Errorf("%q, %v was shown; want nothing more", piece, err)
		}
		if rest, err := again.Rest(); !errors.Is(err, onejob.ErrAnotherAnswer) {
			t.Errorf("the rest is %q, %v; want that this is another answer", rest, err)
		}
	})
}

// counting is a store that counts who looks for pieces.
type counting struct {
	onejob.Store
	onejob.StreamStore
	looks atomic.Int32
}

func (s *counting) ChunkList(ctx context.Context, p onejob.ChunkListParams) (onejob.Chunks, error) {
	s.looks.Add(1)
	return s.StreamStore.ChunkList(ctx, p)
}

// What is made in this process is told as it comes, so that nobody asks the store in between.
func TestWhoFollowsAnAnswerThatIsMadeHereIsWoken(t *testing.T) {
	targets := map[string]behaviour{"a": streams(time.Minute, hello, wholeOf(hello...))}
	in(t, setting{targets: targets, policy: onejob.Policy{Timeout: time.Hour}}, func(w *world) {
		store := &counting{Store: w.store, StreamStore: w.store.(onejob.StreamStore)}
		client, err := onejob.New(store, onejob.Options{Secret: []byte("a secret of sixteen"), Signals: w.signals, PollInterval: 10 * time.Second, Kinds: map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		f := client.Follow("o", w.submit("1"))
		defer f.Stop()
		for _, want := range hello {
			if piece, err := f.Next(w.t.Context(), func(*onejob.Job) bool { return false }); string(piece) != want || err != nil {
				t.Fatalf("%q, %v was shown; want %q", piece, err, want)
			}
		}
		if n := store.looks.Load(); n > 30 {
			t.Errorf("in three minutes the store was asked %d times for pieces; want no more than every 10 s", n)
		}
	})
}
