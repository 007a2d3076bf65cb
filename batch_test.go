package onejob_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestEachIntentOfABatchIsJudgedByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known, _ := w.submit(onejob.SubmitParams{Owner: "alice", Key: "known", Kind: "draw", Input: []byte(`1`)})
	item := func(key, input string) onejob.SubmitParams {
		return onejob.SubmitParams{Owner: "alice", Key: key, Kind: "draw", Input: []byte(input)}
	}
	wrongKind := item("k4", `1`)
	wrongKind.Kind = "unknown"
	results := w.client.SubmitBatch(t.Context(), []onejob.SubmitParams{
		item("k1", `1`), item("", `1`), item("k1", ` 1`), item("k1", `2`), item("known", `1`), wrongKind, item("k5", `{`), item("k6", `1`),
	})
	for i, want := range []struct {
		code    onejob.Code // empty: a job
		existed bool
	}{
		{"", false},
		{onejob.CodeKeyMissing, false},
		{"", true}, // the first of its key wins
		{onejob.CodeKeyConflict, true},
		{"", true},
		{onejob.CodeInvalidJob, false},
		{onejob.CodeInvalidRequest, false},
		{"", false},
	} {
		r := results[i]
		switch {
		case want.code == "" && (r.Err != nil || r.Job == nil):
			t.Errorf("item %d has job %v, error %v; want a job", i, r.Job, r.Err)
		case want.code != "" && (r.Job != nil || onejob.CodeOf(r.Err) != want.code):
			t.Errorf("item %d has job %v, error %v; want code %s", i, r.Job, r.Err, want.code)
		}
		if r.Existed != want.existed {
			t.Errorf("item %d existed %t; want %t", i, r.Existed, want.existed)
		}
	}
	if results[2].Job.ID != results[0].Job.ID || results[4].Job.ID != known.ID {
		t.Errorf("the repeats are jobs %s and %s; want %s and %s", results[2].Job.ID, results[4].Job.ID, results[0].Job.ID, known.ID)
	}
}

func TestABatchOfNothingAsksTheStoreNothing(t *testing.T) {
	t.Parallel()
	client, err := onejob.New(nil, onejob.Options{Secret: instanceSecret, Kinds: kinds()})
	if err != nil {
		t.Fatal(err)
	}
	if got := client.SubmitBatch(t.Context(), nil); len(got) != 0 {
		t.Errorf("no intents have %d answers", len(got))
	}
	if got := client.SubmitBatch(t.Context(), []onejob.SubmitParams{{Owner: "alice"}}); onejob.CodeOf(got[0].Err) != onejob.CodeKeyMissing {
		t.Errorf("an intent without a key is answered with %v", got[0].Err)
	}
}
