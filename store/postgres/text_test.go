package postgres_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
)

// What a text column cannot hold is in no row: nothing is found by it, and nobody
// is told that the store is unavailable.
var unstorable = []string{"a\x00b", "\xff"}

func TestListsFindNothingByWhatNoRowCanHold(t *testing.T) {
	t.Parallel()

	s := open(t, schema(t))
	create(t, s, intent(t, "k"))
	for _, text := range unstorable {
		for name, p := range map[string]onejob.JobListParams{
			"owner": {Owner: text}, "kind": {Kind: text}, "target": {Target: text}, "error code": {ErrorCode: text},
			"state": {States: []onejob.JobState{onejob.JobState(text)}},
		} {
			if page, err := s.JobList(t.Context(), p); err != nil || len(page.Jobs) != 0 || page.More {
				t.Errorf("jobs by %s %q: %+v, %v; want none", name, text, page, err)
			}
		}
		for name, p := range map[string]onejob.AttemptListParams{
			"owner": {Owner: text}, "id": {ID: text}, "job": {JobID: text},
			"state": {States: []onejob.AttemptState{onejob.AttemptState(text)}},
		} {
			if page, err := s.AttemptList(t.Context(), p); err != nil || len(page.Attempts) != 0 || page.More {
				t.Errorf("attempts by %s %q: %+v, %v; want none", name, text, page, err)
			}
		}
	}
}

func TestRowsWithTextThatNoColumnHoldsAreRefusedByName(t *testing.T) {
	t.Parallel()

	s := open(t, schema(t))
	for _, text := range unstorable {
		for name, change := range map[string]func(*onejob.JobCreateParams){
			"kind":   func(p *onejob.JobCreateParams) { p.Kind = text },
			"target": func(p *onejob.JobCreateParams) { p.Target = text },
			"owner":  func(p *onejob.JobCreateParams) { p.Owner = text },
			"a refusal": func(p *onejob.JobCreateParams) {
				p.Owner, p.Refuse = text, &onejob.Error{Code: onejob.CodeQuotaExceeded}
			},
		} {
			p := intent(t, name+text)
			change(&p)
			r := create(t, s, p, intent(t, "beside "+name+text))
			wantCode(t, r[0].Err, onejob.CodeInvalidArgument, "does not take")
			if r[1].Err != nil {
				t.Errorf("%s %q: the neighbour was answered %v; want a job", name, text, r[1].Err)
			}
		}
	}
}

func TestRowsAboutTextThatNoColumnHoldsAreAnswered(t *testing.T) {
	t.Parallel()

	s := open(t, schema(t))
	p := intent(t, "k")
	p.Start = &starter
	a := create(t, s, p)[0].Started.Attempt
	ref := onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
	for _, text := range unstorable {
		marked, err := s.AttemptMark(t.Context(), []onejob.AttemptMarkParams{{Ref: ref, ClaimToken: text}})
		if err != nil || onejob.CodeOf(marked[0].Err) != onejob.CodeClaimLost {
			t.Errorf("the mark under %q answered %+v, %v; want claim-lost", text, marked, err)
		}
		renewed, err := s.AttemptRenew(t.Context(), []onejob.AttemptRenewParams{{Ref: ref, ClaimToken: text}})
		if err != nil || onejob.CodeOf(renewed[0].Err) != onejob.CodeClaimLost {
			t.Errorf("the renewal under %q answered %+v, %v; want claim-lost", text, renewed, err)
		}
		finishing := finish(a, onejob.OutcomeSucceeded)
		finishing.ClaimToken = text
		finished, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{finishing})
		if err != nil || onejob.CodeOf(finished[0].Err) != onejob.CodeClaimLost {
			t.Errorf("the finish under %q answered %+v, %v; want claim-lost", text, finished, err)
		}
		started, err := s.AttemptStart(t.Context(), []onejob.AttemptStartParams{{JobID: a.JobID, Target: text, StartParams: starter}})
		if err != nil || started[0].Err == nil || onejob.CodeOf(started[0].Err) == onejob.CodeStoreUnavailable {
			t.Errorf("the press for target %q answered %+v, %v; want a refusal", text, started, err)
		}
		jobs, err := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: a.JobID, Owner: text}, {ID: text}})
		if err != nil || onejob.CodeOf(jobs[0].Err) != onejob.CodeNotFound || onejob.CodeOf(jobs[1].Err) != onejob.CodeNotFound {
			t.Errorf("jobs of %q: %+v, %v; want not-found", text, jobs, err)
		}
	}
}
