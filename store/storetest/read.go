package storetest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

func reading() []promise {
	return []promise{
		{name: "JobGet/TheInputOnlyOnRequest", test: testGetInput},
		{name: "JobGet/EachRowOfABatchIsJudgedByItself", test: testGetBatch},
		{name: "JobGet/AttemptsOldestFirstWithoutResults", test: testGetAttempts},
		{name: "JobList/NewestFirstInPages", test: testListPages},
		{name: "JobList/Filters", test: testListFilters},
		{name: "JobList/WithoutInputsAndResults", test: testListNarrow},
		{name: "AttemptList/OneByItsID", test: testAttemptByID},
		{name: "AttemptList/OfAJobOldestFirst", test: testAttemptsOfJob},
		{name: "AttemptList/TheUnknownOnesInPages", test: testAttemptPages},
		{name: "AttemptList/ResultsOnlyOnRequest", test: testAttemptResults},
		{name: "Stats/CountsWhatIsLive", test: testStats},
		{name: "Store/AClosedOneAnswersThatItIsUnavailable", test: testClosed},
		{name: "Store/ACallerWhoLeftIsToldNothing", test: testCallerLeft},
		{name: "Store/IsReady", test: testReady},
	}
}

func testGetInput(f *fixture) {
	job := f.create("k1")
	results, err := f.s.JobGet(f.Context(), []onejob.JobGetParams{{ID: job.ID}, {ID: job.ID, WithInput: true}})
	f.noError(err)
	if got := results[0].Job.Input; got != nil {
		f.Errorf("nobody asked for the input, and it is %q", got)
	}
	if got := results[1].Job.Input; !bytes.Equal(got, []byte(`{"amount":7}`)) {
		f.Errorf("the input is %q; want the caller's bytes", got)
	}
}

func testGetBatch(f *fixture) {
	job := f.create("k1")
	results, err := f.s.JobGet(f.Context(), []onejob.JobGetParams{
		{ID: "nonsense"}, {ID: onejob.NewJobID(job.Part, time.UnixMilli(0))}, {ID: ""}, {ID: job.ID},
	})
	f.noError(err)
	for _, r := range results[:3] {
		f.wantCode(r.Err, onejob.CodeNotFound)
	}
	f.noError(results[3].Err)
	if results[3].Job.ID != job.ID {
		f.Errorf("got job %s; want %s", results[3].Job.ID, job.ID)
	}
}

func testGetAttempts(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(second, onejob.OutcomeSucceeded)
	f.finish(first, onejob.OutcomeSucceeded)
	job := f.get(first.JobID)
	if len(job.Attempts) != 2 || job.Attempts[0].ID != first.ID || job.Attempts[1].ID != second.ID {
		f.Fatalf("the job's attempts are %+v; want two, oldest first", job.Attempts)
	}
	for _, a := range job.Attempts {
		if a.Result != nil {
			f.Errorf("attempt %d of the job carries its result", a.Number)
		}
		if want := f.attempt(a.ID); a.State != want.State || a.Outcome != want.Outcome || !reflect.DeepEqual(a.Discarded, want.Discarded) {
			f.Errorf("attempt %d of the job is %+v; want %+v", a.Number, a, want)
		}
	}
}

func (f *fixture) list(p onejob.JobListParams) onejob.JobPage {
	f.Helper()
	if p.Limit == 0 {
		p.Limit = 200
	}
	page, err := f.s.JobList(f.Context(), p)
	f.noError(err)
	return page
}

func idsOf(jobs []*onejob.Job) []string {
	ids := []string{}
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func testListPages(f *fixture) {
	var want []string
	for i := range 7 {
		want = append(want, f.create(fmt.Sprintf("k%d", i)).ID)
		if i%2 == 0 && f.Advance != nil { // some share their time
			f.Advance(time.Second)
		}
	}
	all := f.list(onejob.JobListParams{Owner: owner})
	if all.More || len(all.Jobs) != len(want) {
		f.Fatalf("the list has %d jobs, more %t; want %d, false", len(all.Jobs), all.More, len(want))
	}
	for i := range all.Jobs[1:] {
		if a, b := all.Jobs[i], all.Jobs[i+1]; a.CreatedAt.Before(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && a.ID <= b.ID {
			f.Errorf("the list has %s ahead of %s; want newest first, then by id", a.ID, b.ID)
		}
	}
	var paged []string
	p := onejob.JobListParams{Owner: owner, Limit: 3}
	for {
		page := f.list(p)
		paged = append(paged, idsOf(page.Jobs)...)
		if !page.More {
			break
		}
		last := page.Jobs[len(page.Jobs)-1]
		p.Before = &onejob.JobCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	if !slices.Equal(paged, idsOf(all.Jobs)) {
		f.Errorf("the pages hold\n%q\nwant\n%q", paged, idsOf(all.Jobs))
	}
}

func testListFilters(f *fixture) {
	failed := f.running("failed", targets("a", "b"))
	f.finish(failed, onejob.OutcomeRefused, withNext(onejob.NextNowhere))
	f.advance(time.Minute)
	refund := f.create("refund", func(p *onejob.JobCreateParams) { p.Kind, p.Target = "refund", "b" })
	f.advance(time.Minute)
	bobs := f.create("k", withOwner("bob"))
	hash := f.intent("refund").KeyHash
	for name, c := range map[string]struct {
		p    onejob.JobListParams
		want []string
	}{
		"everything":        {onejob.JobListParams{}, []string{bobs.ID, refund.ID, failed.JobID}},
		"owner":             {onejob.JobListParams{Owner: owner}, []string{refund.ID, failed.JobID}},
		"state":             {onejob.JobListParams{States: []onejob.JobState{onejob.JobFailed, onejob.JobBlocked}}, []string{failed.JobID}},
		"kind":              {onejob.JobListParams{Kind: "refund"}, []string{refund.ID}},
		"target asked for":  {onejob.JobListParams{Target: "b"}, []string{refund.ID}},
		"target of a try":   {onejob.JobListParams{Target: "a"}, []string{failed.JobID}},
		"key":               {onejob.JobListParams{Owner: owner, KeyHash: hash}, []string{refund.ID}},
		"another's key":     {onejob.JobListParams{Owner: "bob", KeyHash: hash}, []string{}},
		"error":             {onejob.JobListParams{ErrorCode: onejob.FailureRefused}, []string{failed.JobID}},
		"created after":     {onejob.JobListParams{CreatedAfter: refund.CreatedAt.Add(-time.Second)}, []string{bobs.ID, refund.ID}},
		"created before":    {onejob.JobListParams{CreatedBefore: refund.CreatedAt.Add(time.Second)}, []string{refund.ID, failed.JobID}},
		"nothing like that": {onejob.JobListParams{Kind: "refund", States: []onejob.JobState{onejob.JobFailed}}, []string{}},
	} {
		if got := idsOf(f.list(c.p).Jobs); !slices.Equal(got, c.want) {
			f.Errorf("by %s: got %q; want %q", name, got, c.want)
		}
	}
}

func testListNarrow(f *fixture) {
	id := reachSucceeded(f)
	page := f.list(onejob.JobListParams{Owner: owner})
	if len(page.Jobs) != 1 || page.Jobs[0].ID != id || page.Jobs[0].Input != nil || page.Jobs[0].Result != nil {
		f.Errorf("the list has %+v; want the one job, without its input and result", page.Jobs)
	}
}

func (f *fixture) attempts(p onejob.AttemptListParams) onejob.AttemptPage {
	f.Helper()
	if p.Limit == 0 {
		p.Limit = 200
	}
	page, err := f.s.AttemptList(f.Context(), p)
	f.noError(err)
	return page
}

func testAttemptByID(f *fixture) {
	a := f.running("k1")
	f.running("k2")
	page := f.attempts(onejob.AttemptListParams{ID: a.ID, Owner: owner})
	if len(page.Attempts) != 1 || page.Attempts[0].ID != a.ID || page.Attempts[0].JobID != a.JobID || page.More {
		f.Errorf("asked for %s and got %+v", a.ID, page)
	}
	for _, id := range []string{onejob.NewAttemptID(a.JobID, a.Number), "nonsense"} {
		if page := f.attempts(onejob.AttemptListParams{ID: id}); len(page.Attempts) != 0 {
			f.Errorf("asked for %s and got %+v; want none", id, page)
		}
	}
}

func testAttemptsOfJob(f *fixture) {
	first := f.running("k1")
	f.finish(first, onejob.OutcomeRefused, withNext(onejob.NextAgain))
	second := f.claimAgain()
	f.running("k2")
	page := f.attempts(onejob.AttemptListParams{JobID: first.JobID})
	if len(page.Attempts) != 2 || page.Attempts[0].ID != first.ID || page.Attempts[1].ID != second.ID {
		f.Errorf("the job's attempts are %+v; want both, oldest first", page.Attempts)
	}
}

func testAttemptPages(f *fixture) {
	var want []string
	for i := range 5 {
		want = append(want, f.unknown(fmt.Sprintf("k%d", i)).ID)
		f.advance(time.Second)
	}
	slices.Reverse(want)
	f.running("other")
	p := onejob.AttemptListParams{States: []onejob.AttemptState{onejob.AttemptUnknown}, Limit: 2}
	var got []string
	for {
		page := f.attempts(p)
		for _, a := range page.Attempts {
			got = append(got, a.ID)
			p.Before = &onejob.JobCursor{CreatedAt: a.StartedAt, ID: a.ID}
		}
		if !page.More {
			break
		}
	}
	if !slices.Equal(got, want) {
		f.Errorf("the pages hold\n%q\nwant\n%q", got, want)
	}
}

func testAttemptResults(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeSucceeded)
	if got := f.attempts(onejob.AttemptListParams{ID: a.ID}).Attempts[0].Result; got != nil {
		f.Errorf("nobody asked for the result, and it is %+v", got)
	}
	got := f.attempts(onejob.AttemptListParams{ID: a.ID, WithResult: true}).Attempts[0].Result
	if got == nil || string(got.Body) != "result of "+a.ID {
		f.Errorf("the result is %+v; want what the provider answered", got)
	}
}

func testStats(f *fixture) {
	unknown := f.unknown("k1")
	f.running("k2")
	f.blockedAtA("k3")
	f.cancel(f.create("k4").ID)
	queued := f.create("k5")
	waits := f.ended("k6")
	f.advance(time.Minute)
	f.ended("k7")
	delivered := f.ended("k8", withOwner("bob"))
	f.noError(f.record(tried(delivered, onejob.DeliveryDelivered)))
	stats, err := f.s.Stats(f.Context())
	f.noError(err)
	if stats.Jobs[onejob.JobQueued] != 1 || stats.Jobs[onejob.JobRunning] != 1 || stats.Jobs[onejob.JobBlocked] != 2 || stats.Jobs[onejob.JobCancelled] != 0 {
		f.Errorf("counted jobs %v; want 1 queued, 1 running, 2 blocked and no finished", stats.Jobs)
	}
	if stats.Blocked[onejob.BlockAttemptUnknown] != 1 || stats.Blocked[onejob.BlockFailoverNotCertified] != 1 {
		f.Errorf("counted blocked %v; want one for each reason", stats.Blocked)
	}
	if stats.UnknownByTarget["a"] != 1 || stats.OldestUnknown.Before(unknown.StartedAt) || stats.OldestUnknown.After(queued.CreatedAt) {
		f.Errorf("counted unknown %v, the oldest since %s; want 1 at a since it fell silent", stats.UnknownByTarget, stats.OldestUnknown)
	}
	if !stats.OldestQueued.Equal(queued.RunAfter) {
		f.Errorf("the job longest due waits since %s; want %s", stats.OldestQueued, queued.RunAfter)
	}
	if stats.PendingDeliveries != 2 || !stats.OldestDelivery.Equal(waits.CreatedAt) {
		f.Errorf("counted %d pending deliveries, the oldest since %s; want 2 since %s", stats.PendingDeliveries, stats.OldestDelivery, waits.CreatedAt)
	}
}

func testClosed(f *fixture) {
	p := f.intent("k1")
	f.noError(f.s.Close())
	_, err := f.s.JobCreate(f.Context(), []onejob.JobCreateParams{p})
	f.wantCode(err, onejob.CodeStoreUnavailable)
	_, err = f.s.AttemptClaim(f.Context(), onejob.AttemptClaimParams{StartParams: claimer(), Max: 1})
	f.wantCode(err, onejob.CodeStoreUnavailable)
	if err := f.s.Check(f.Context()); err == nil {
		f.Error("a closed store says that it can be written to")
	}
	f.noError(f.s.Close())
}

func testCallerLeft(f *fixture) {
	p := f.intent("k1")
	ctx, leave := context.WithCancel(f.Context())
	leave()
	if _, err := f.s.JobCreate(ctx, []onejob.JobCreateParams{p}); err != nil {
		f.wantCode(err, onejob.CodeStoreUnavailable) // nothing is known, so that repeating is the way to find out
	}
	r := f.submit(p)
	f.noError(r.Err)
	if r.Existed || r.Job.ID != p.ID {
		f.Errorf("the repeat answered %s, existed %t; want %s as our own creation", r.Job.ID, r.Existed, p.ID)
	}
}

func testReady(f *fixture) {
	for _, s := range f.Stores {
		f.noError(s.Check(f.Context()))
	}
}
