package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// What keeps one owner's backlog from delaying the others.
func takingTurns() []promise {
	return []promise{
		{name: "Claim/OwnersTakeTurns", test: testTurns},
		{name: "Claim/EveryOwnerIsServedInOneRound", test: testTurnsOfMany},
		{name: "Claim/PriorityOrdersWithinAnOwner", test: testTurnsPriority},
		{name: "Claim/TakesTheRestFromWhoeverHasMore", test: testTurnsFill},
		{name: "Claim/UnservedTargetsDelayNobody", test: testTurnsTargets},
		{name: "Claim/OtherKindsDelayNobody", test: testTurnsKinds},
		{name: "Claim/WhatComesDueTakesItsTurn", test: testTurnsLater},
		{name: "Claim/WhatIsOverdueIsNotLeftForAPoll", test: testTurnsOverdue},
		{name: "Claim/NothingTwiceNothingForgotten", test: testTurnsRace, handles: 3},
	}
}

// backlog records n jobs of an owner.
func (f *fixture) backlog(who string, n int, change ...func(*onejob.JobCreateParams)) {
	f.Helper()
	params := make([]onejob.JobCreateParams, n)
	for i := range params {
		params[i] = f.intent(fmt.Sprint("k", i), append([]func(*onejob.JobCreateParams){withOwner(who)}, change...)...)
	}
	for _, r := range f.submitAll(params...) {
		f.noError(r.Err)
	}
}

// turns claims as one claimer does, most at a time, and counts whose jobs it got.
func (f *fixture) turns(p onejob.AttemptClaimParams, most, claims int) map[string]int {
	f.Helper()
	had := map[string]int{}
	p.StartParams, p.Max = claimer(), most
	for range claims {
		r := f.claimWith(p)
		p.AfterOwner = r.LastOwner
		for _, c := range r.Claimed {
			had[c.Job.Owner]++
		}
	}
	return had
}

func testTurns(f *fixture) {
	f.backlog("big", 1000)
	f.create("k", withOwner("small"))
	if had := f.turns(onejob.AttemptClaimParams{}, 1, 2); had["small"] != 1 {
		f.Errorf("two claims behind a backlog had %v; want the small owner's job among them", had)
	}
	f.create("k", withOwner("a-small"))
	f.create("k", withOwner("z-small"))
	if had := f.turns(onejob.AttemptClaimParams{}, 16, 1); had["a-small"] != 1 || had["z-small"] != 1 || had["big"] != 14 {
		f.Errorf("a claim of 16 had %v; want one of each small owner's, and the rest of the big one's", had)
	}
}

func testTurnsOfMany(f *fixture) {
	const owners, most = 300, 64
	for i := range owners {
		f.backlog(fmt.Sprint("owner-", i), 2)
	}
	had := f.turns(onejob.AttemptClaimParams{AfterOwner: "owner-2"}, most, (owners+most-1)/most)
	if len(had) != owners {
		f.Errorf("in one round of claims %d owners of %d were served", len(had), owners)
	}
	for who, n := range had {
		if n > 2 {
			f.Errorf("%s had %d turns in one round", who, n)
		}
	}
}

func testTurnsPriority(f *fixture) {
	urgent := func(p *onejob.JobCreateParams) { p.Priority = 100 }
	f.backlog("big", 20, urgent)
	f.create("low", withOwner("small"), func(p *onejob.JobCreateParams) { p.Priority = -100 })
	high := f.create("high", withOwner("small"), func(p *onejob.JobCreateParams) { p.Priority = -99 })
	r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 2})
	var owners []string
	for _, c := range r.Claimed {
		owners = append(owners, c.Job.Owner)
	}
	if slices.Sort(owners); !slices.Equal(owners, []string{"big", "small"}) {
		f.Fatalf("a claim of 2 had jobs of %q; want one of each owner's, whatever their priorities", owners)
	}
	for _, c := range r.Claimed {
		if c.Job.Owner == "small" && c.Job.ID != high.ID {
			f.Errorf("of the small owner's jobs the claim had %s; want the one of higher priority", c.Job.ID)
		}
	}
}

func testTurnsFill(f *fixture) {
	f.backlog("big", 50)
	f.backlog("middle", 5)
	f.create("k", withOwner("small"))
	want := map[string]int{"big": 10, "middle": 5, "small": 1}
	if had := f.turns(onejob.AttemptClaimParams{AfterOwner: "big"}, 16, 1); !maps.Equal(had, want) {
		f.Errorf("a claim of 16 had %v; want %v", had, want)
	}
	if had := f.turns(onejob.AttemptClaimParams{AfterOwner: "zzz"}, 64, 1); had["big"] != 40 {
		f.Errorf("a claim of 64 had %v; want the 40 that are left", had)
	}
}

func testTurnsTargets(f *fixture) {
	for i := range 100 {
		f.backlog(fmt.Sprint("a-big-", i), 3, withPolicy(func(p *onejob.Policy) { p.Targets = []string{"z"} }))
	}
	f.backlog("small", 2)
	if had := f.turns(onejob.AttemptClaimParams{}, 1, 2); had["small"] != 2 {
		f.Errorf("two claims had %v; want the jobs at the one target that is served", had)
	}
}

func testTurnsKinds(f *fixture) {
	for i := range 100 {
		f.backlog(fmt.Sprint("a-big-", i), 3)
	}
	f.backlog("small", 2, withKind("mail"))
	mail := onejob.AttemptClaimParams{Kinds: []string{"mail"}}
	if had := f.turns(mail, 1, 1); had["small"] != 1 {
		f.Errorf("a claim of mail had %v; want it found behind 300 jobs of another kind", had)
	}
	mail.AfterOwner, mail.Owner = "zzz", "small"
	if had := f.turns(mail, 1, 2); had["small"] != 1 {
		f.Errorf("its owner's claims of mail had %v; want the last one", had)
	}
}

func testTurnsLater(f *fixture) {
	at := f.create("clock", func(p *onejob.JobCreateParams) { p.Target = "z" }).CreatedAt.Add(time.Hour).Truncate(time.Second)
	f.backlog("big", 500, func(p *onejob.JobCreateParams) { p.RunAfter = at })
	f.create("k", withOwner("small"), func(p *onejob.JobCreateParams) { p.RunAfter = at.Add(time.Second) })
	if r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 4}); len(r.Claimed) != 0 || !r.NextDue.Equal(at) {
		f.Errorf("%d were claimed before their time, the next due at %s; want none, %s", len(r.Claimed), r.NextDue, at)
	}
	f.advance(2 * time.Hour)
	if had := f.turns(onejob.AttemptClaimParams{}, 4, 8); had["small"] != 1 || had["big"] != 31 {
		f.Errorf("eight claims of 4 had %v; want 32, and the small owner's job among them", had)
	}
}

// Of what is overdue only so much comes due in one claim. Whoever finds nothing of
// its own among that is told that there is more.
func testTurnsOverdue(f *fixture) {
	at := f.create("clock", func(p *onejob.JobCreateParams) { p.Target = "z" }).CreatedAt.Add(time.Hour).Truncate(time.Second)
	f.backlog("big", 500, func(p *onejob.JobCreateParams) { p.RunAfter = at })
	last := at.Add(time.Second)
	f.create("k", withOwner("small"), func(p *onejob.JobCreateParams) { p.RunAfter = last })
	f.advance(2 * time.Hour)
	for range 10 {
		r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1, Owner: "small"})
		if len(r.Claimed) == 1 {
			return
		}
		if r.NextDue.IsZero() || r.NextDue.After(last) {
			f.Fatalf("a claim found nothing of the small owner's, and says that the next is due at %s; want %s", r.NextDue, last)
		}
	}
	f.Error("ten claims in a row did not find the small owner's job behind 500 others")
}

// Several claimers at once, each from where it stands.
func testTurnsRace(f *fixture) {
	want := 0
	for i := range 30 {
		n := 1 + i*i%23
		f.backlog(fmt.Sprint("owner-", i), n)
		want += n
	}
	var mu sync.Mutex
	had := map[string]int{}
	f.race(6, func(ctx context.Context, i int, s onejob.Store) error {
		p := onejob.AttemptClaimParams{StartParams: claimer(), Max: 1 + 5*i, AfterOwner: fmt.Sprint("owner-", i)}
		for {
			r, err := s.AttemptClaim(ctx, p)
			if err != nil || len(r.Claimed) == 0 {
				return err
			}
			p.AfterOwner = r.LastOwner
			mu.Lock()
			for _, c := range r.Claimed {
				had[c.Job.ID]++
			}
			mu.Unlock()
		}
	})
	for id, n := range had {
		if n != 1 {
			f.Errorf("%s was claimed %d times", id, n)
		}
	}
	for _, c := range f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: want}).Claimed {
		had[c.Job.ID]++ // what was another claimer's when each saw nothing
	}
	if len(had) != want {
		f.Errorf("%d jobs of %d were claimed", len(had), want)
	}
}
