package production_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

func TestEveryOutputIsJudgedAsTheRawTextItIs(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for output, class := range map[string]contract.Class{
		good:                                   "",
		bad:                                    contract.ClassInvariant,
		"```json\n" + good + "\n```":           contract.ClassFenced,
		strings.Replace(good, "50", "50.0", 1): contract.ClassInteger,
		strings.Replace(good, `{"sev`, `{"summary":"x","sev`, 1): contract.ClassDuplicateName,
	} {
		f := w.judge(body(answer{Output: output}))
		if class == "" && f != nil || class != "" && (f == nil || !strings.HasPrefix(f.Message, string(class)) || f.Code != onejob.FailureContractViolation) {
			t.Errorf("%s is judged %+v; want class %q", output, f, class)
		}
	}
	if f := w.judge(&onejob.Result{Body: []byte(`{"error":"busy"}`)}); f == nil || !strings.HasPrefix(f.Message, string(contract.ClassErrorBody)) {
		t.Errorf("what is no answer is judged %+v", f)
	}
	if got := w.noted.list(&w.noted.violated); len(got) != 5 || !slices.Contains(got, "triage_ticket gpt fenced") {
		t.Errorf("the observer was told %q", got)
	}
}

func TestAJobIsJudgedByTheVersionThatItPins(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	old := triage(t)
	old.Invariants = nil
	kept, err := old.Body()
	if err != nil {
		t.Fatal(err)
	}
	// Body keeps the file's text, so the old version is made by its text.
	var text map[string]any
	if err := json.Unmarshal(kept, &text); err != nil {
		t.Fatal(err)
	}
	text["text"] = strings.Replace(text["text"].(string), `  - {id: refund_cap, cel: "output.refund_cents <= input.order_total_cents"}`+"\n", "", 1)
	kept, _ = json.Marshal(text)
	read, err := contract.ParseBody(kept)
	if err != nil {
		t.Fatal(err)
	}
	oldDigest := digestOf(t, read)
	w.store.versions[oldDigest] = kept

	job := w.job()
	job.Policy.Contract.Digest = oldDigest
	for n := range 3 {
		if f, err := w.line.JudgeOutput(t.Context(), job, w.attempt(n), body(answer{Output: bad})); f != nil || err != nil {
			t.Fatalf("by its own contract it is %+v, %v", f, err)
		}
	}
	if w.store.reads != 1 {
		t.Errorf("the version was read %d times", w.store.reads)
	}
	job.Policy.Contract.Digest = "v1:gone"
	if f, err := w.line.JudgeOutput(t.Context(), job, w.attempt(9), body(answer{Output: good})); err != nil || f == nil {
		t.Errorf("what nobody can judge is %+v, %v", f, err)
	}
	w.store.setDown(true)
	job.Policy.Contract.Digest = "v1:other"
	if _, err := w.line.JudgeOutput(t.Context(), job, w.attempt(9), body(answer{Output: good})); err == nil {
		t.Error("while the store is away there is a verdict")
	}
}

func TestAPersonMayHandInTheOutputAlone(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for text, fits := range map[string]bool{good: true, bad: false, string(body(answer{Output: good}).Body): true, string(body(answer{Output: bad}).Body): false} {
		f, err := w.line.JudgeRuling(t.Context(), w.job(), w.attempt(1), &onejob.Result{Body: []byte(text)})
		if err != nil || (f == nil) != fits {
			t.Errorf("%s is judged %+v, %v", text, f, err)
		}
	}
	if got := w.noted.list(&w.noted.violated); len(got) != 0 {
		t.Errorf("a person's word counts as the target's: %q", got)
	}
}

func TestOutputsAreToldOnceASecondAndViolationsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		for range 40 {
			w.judge(body(answer{Output: good}))
		}
		time.Sleep(1100 * time.Millisecond)
		observed, _ := w.store.look()
		if len(observed) != 1 || observed[0].Outputs != 40 || len(observed[0].Violations) != 0 {
			t.Fatalf("told %+v", observed)
		}
		p := observed[0]
		if p.ContractDigest != w.digest || p.TargetDigest != "v1:gpt" || p.Environment != "default" || p.SuspendAfter != 2 || p.Window != 50 {
			t.Errorf("told %+v", p)
		}
		w.judge(body(answer{Output: good}))
		w.judge(body(answer{Output: bad}))
		synctest.Wait()
		observed, _ = w.store.look()
		if last := observed[len(observed)-1]; len(observed) != 2 || last.Outputs != 2 || !slices.Equal(last.Violations, []int{2}) || !strings.HasPrefix(last.Detail, "invariant") {
			t.Errorf("told %+v", observed[1:])
		}
	})
}

func TestOneAttemptIsCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		for range 3 {
			if _, err := w.line.JudgeOutput(t.Context(), w.job(), w.attempt(1), body(answer{Output: bad})); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if observed, _ := w.store.look(); len(observed) != 1 || observed[0].Outputs != 1 {
			t.Errorf("told %+v", observed)
		}
	})
}

func TestWhatTheStoreDidNotHearIsToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.store.setDown(true)
		w.judge(body(answer{Output: good}))
		w.judge(body(answer{Output: bad}))
		time.Sleep(3 * time.Second)
		w.judge(body(answer{Output: bad}))
		w.store.setDown(false)
		stop() // what is left is told on the way out
		observed, _ := w.store.look()
		if len(observed) != 1 || observed[0].Outputs != 3 || !slices.Equal(observed[0].Violations, []int{2, 3}) {
			t.Errorf("told %+v", observed)
		}
	})
}

func TestAnotherModelSuspendsAndAnotherFingerprintAsks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		says        answer
		ended, asks []string
	}{
		{"Same", answer{Output: good, Model: "gpt-1", Fingerprint: "fp_1"}, nil, nil},
		{"NotSaid", answer{Output: good}, nil, nil},
		{"Model", answer{Output: good, Model: "gpt-2"}, []string{"triage_ticket gpt suspended_drift"}, nil},
		{"Fingerprint", answer{Output: good, Model: "gpt-1", Fingerprint: "fp_2"}, nil, []string{"triage_ticket gpt system_fingerprint"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.certify(onejob.Observed{Model: "gpt-1", Fingerprint: "fp_1"})
				defer w.run()()
				synctest.Wait()
				for range 3 {
					w.judge(body(tt.says))
					time.Sleep(time.Second)
				}
				_, ended := w.store.look()
				if got := w.noted.list(&w.noted.ended); !slices.Equal(got, tt.ended) || len(ended) != len(tt.ended) {
					t.Errorf("ended %q by %+v; want %q", got, ended, tt.ended)
				}
				if len(ended) > 0 && (ended[0].Status != onejob.CertificateSuspended || !strings.Contains(ended[0].Detail, `from "gpt-1" to "gpt-2"`)) {
					t.Errorf("ended by %+v", ended[0])
				}
				if got := w.noted.list(&w.noted.asked); !slices.Equal(got, tt.asks) {
					t.Errorf("asked %q; want %q", got, tt.asks)
				}
			})
		})
	}
}

func TestANewCertificateIsNotEndedByAnOldBaseline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.certify(onejob.Observed{Model: "gpt-1"})
		defer w.run()()
		synctest.Wait()
		w.certify(onejob.Observed{Model: "gpt-2"}) // verified again, a moment before the next look
		w.judge(body(answer{Output: good, Model: "gpt-2"}))
		time.Sleep(2 * time.Second)
		if _, ended := w.store.look(); len(ended) != 0 {
			t.Errorf("ended %+v", ended)
		}
	})
}
