package storetest

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

func happening() []promise {
	return []promise{
		{name: "Incident/ADuplicateEffectIsListedOpen", test: testIncidentOpen},
		{name: "Incident/ALateEffectSaysThatNobodyWon", test: testIncidentLate},
		{name: "Incident/ListsNewestFirstByStateAndOwner", test: testIncidentList},
		{name: "Incident/WhatIsNoneIsNotFound", test: testIncidentMissing},
		{name: "IncidentClose/NeedsANote", test: testIncidentNote},
		{name: "IncidentClose/TheFirstNoteStays", test: testIncidentTwice},
		{name: "IncidentClose/ManyAtOnceCloseOnce", test: testIncidentAtOnce, handles: 2},
		{name: "IncidentClose/AnothersIsAsIfItDidNotExist", test: testIncidentOwner},
		{name: "IncidentClose/LetsThePayloadBePurged", test: testIncidentPurge},
		{name: "IncidentClose/LetsATombstoneShrink", test: testIncidentShrink},
	}
}

func (f *fixture) incidents() onejob.IncidentStore {
	f.Helper()
	s, ok := f.s.(onejob.IncidentStore)
	if !ok {
		f.Fatal("the store is no onejob.IncidentStore")
	}
	return s
}

// duplicated is a job whose effect happened twice, by the attempts lost and won.
func (f *fixture) duplicated(key string, change ...func(*onejob.JobCreateParams)) (lost, won onejob.Attempt) {
	f.Helper()
	lost = f.ruledOut(key, change...)
	won = f.claimAgain()
	f.finish(won, onejob.OutcomeSucceeded)
	f.finish(lost, onejob.OutcomeSucceeded)
	return lost, won
}

func (f *fixture) listIncidents(p onejob.IncidentListParams) []onejob.Incident {
	f.Helper()
	if p.Limit == 0 {
		p.Limit = 200
	}
	var all []onejob.Incident
	for more := true; more; {
		page, err := f.incidents().IncidentList(f.Context(), p)
		f.noError(err)
		if len(page.Incidents) > p.Limit || page.More && len(page.Incidents) == 0 || len(all) > 1000 {
			f.Fatalf("a page of %d holds %d incidents, more %v", p.Limit, len(page.Incidents), page.More)
		}
		all = append(all, page.Incidents...)
		if more = page.More; more {
			last := all[len(all)-1]
			p.Before = &onejob.IncidentCursor{At: last.At, ID: last.ID}
		}
	}
	return all
}

// incidentOf is the one incident of a job.
func (f *fixture) incidentOf(jobID string) onejob.Incident {
	f.Helper()
	for _, i := range f.listIncidents(onejob.IncidentListParams{}) {
		if i.JobID == jobID {
			return i
		}
	}
	f.Fatalf("there is no incident of job %s", jobID)
	return onejob.Incident{}
}

func (f *fixture) closeIncident(id string) onejob.Incident {
	f.Helper()
	i, err := f.incidents().IncidentClose(f.Context(), onejob.IncidentCloseParams{ID: id, Owner: owner, Actor: "olga", Note: "refunded"})
	f.noError(err)
	return i
}

func testIncidentOpen(f *fixture) {
	lost, won := f.duplicated("k1")
	all := f.listIncidents(onejob.IncidentListParams{})
	if len(all) != 1 {
		f.Fatalf("there are %d incidents; want 1", len(all))
	}
	got := all[0]
	part, _, ok := onejob.ParseIncidentID(got.ID)
	want := onejob.Incident{
		ID: got.ID, JobID: lost.JobID, AttemptID: lost.ID, Owner: owner, Kind: onejob.EventDuplicateEffect, At: got.At,
		Detail: onejob.DetailOfIncident(onejob.EventDuplicateEffect, lost.ID, won.ID),
	}
	if !ok || part != lost.Part || got.At.IsZero() || !reflect.DeepEqual(got, want) || got.State() != onejob.IncidentOpen {
		f.Errorf("the incident is %+v; want %+v", got, want)
	}
	if one := f.listIncidents(onejob.IncidentListParams{ID: got.ID, Owner: owner}); !reflect.DeepEqual(one, all) {
		f.Errorf("by its id the incident is %+v; want %+v", one, all)
	}
}

func testIncidentLate(f *fixture) {
	a := f.unknown("k1")
	f.cancel(a.JobID)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	f.finish(a, onejob.OutcomeSucceeded)
	if i := f.incidentOf(a.JobID); i.Kind != onejob.EventLateEffect || i.Detail != onejob.DetailOfIncident(onejob.EventLateEffect, a.ID, "") {
		f.Errorf("the incident is %+v; want a late effect", i)
	}
}

func testIncidentList(f *fixture) {
	var ids []string
	for i, of := range []string{owner, "bob", owner, "bob", owner} {
		lost, _ := f.duplicated(string(rune('a'+i)), withOwner(of))
		f.advance(time.Second)
		ids = append([]string{f.incidentOf(lost.JobID).ID}, ids...)
	}
	f.closeIncident(ids[2])
	for name, c := range map[string]struct {
		p    onejob.IncidentListParams
		want []string
	}{
		"all":             {onejob.IncidentListParams{}, ids},
		"alice's":         {onejob.IncidentListParams{Owner: owner}, []string{ids[0], ids[2], ids[4]}},
		"open":            {onejob.IncidentListParams{States: []onejob.IncidentState{onejob.IncidentOpen}}, []string{ids[0], ids[1], ids[3], ids[4]}},
		"closed":          {onejob.IncidentListParams{States: []onejob.IncidentState{onejob.IncidentClosed}}, ids[2:3]},
		"open or closed":  {onejob.IncidentListParams{States: onejob.IncidentStates()}, ids},
		"in no state":     {onejob.IncidentListParams{States: []onejob.IncidentState{"reopened"}}, nil},
		"bob's closed":    {onejob.IncidentListParams{Owner: "bob", States: []onejob.IncidentState{onejob.IncidentClosed}}, nil},
		"alice's by bobs": {onejob.IncidentListParams{Owner: "bob", ID: ids[0]}, nil},
	} {
		for _, limit := range []int{1, 2, 200} {
			c.p.Limit = limit
			var got []string
			for _, i := range f.listIncidents(c.p) {
				got = append(got, i.ID)
			}
			if !reflect.DeepEqual(got, c.want) {
				f.Errorf("%s, in pages of %d: %v; want %v", name, limit, got, c.want)
			}
		}
	}
}

func testIncidentMissing(f *fixture) {
	f.create("k1") // events that are none
	f.cancel(f.create("k2").ID)
	for _, id := range []string{"", "inc_", "inc_zz1", onejob.NewIncidentID(1, 1), onejob.NewIncidentID(255, 1<<62), "' OR 1 = 1 --"} {
		if id != "" {
			if found := f.listIncidents(onejob.IncidentListParams{ID: id}); len(found) != 0 {
				f.Errorf("id %q finds %+v; want none", id, found)
			}
		}
		_, err := f.incidents().IncidentClose(f.Context(), onejob.IncidentCloseParams{ID: id, Actor: "olga", Note: "n"})
		f.wantCode(err, onejob.CodeNotFound)
	}
	if f.Exec == nil {
		return
	}
	if err := f.Exec("UPDATE events SET closed_at = at, closed_by = 'olga', note = 'n' WHERE kind = 'cancel_requested'"); err == nil {
		f.Error("the database closed an event that is no incident")
	}
}

func testIncidentNote(f *fixture) {
	lost, _ := f.duplicated("k1")
	id := f.incidentOf(lost.JobID).ID
	for _, note := range []string{"", " \n"} {
		_, err := f.incidents().IncidentClose(f.Context(), onejob.IncidentCloseParams{ID: id, Actor: "olga", Note: note})
		f.wantCode(err, onejob.CodeInvalidRequest)
	}
	if i := f.incidentOf(lost.JobID); i.State() != onejob.IncidentOpen {
		f.Errorf("the incident is %+v; want it open", i)
	}
	if f.Exec == nil {
		return
	}
	if err := f.Exec("UPDATE events SET closed_at = at WHERE kind = 'duplicate_effect'"); err == nil {
		f.Error("the database closed an incident without a note")
	}
}

func testIncidentTwice(f *fixture) {
	lost, _ := f.duplicated("k1")
	before := len(f.chain(owner))
	first := f.closeIncident(f.incidentOf(lost.JobID).ID)
	if first.State() != onejob.IncidentClosed || first.ClosedBy != "olga" || first.Note != "refunded" || first.ClosedAt.Before(first.At) {
		f.Errorf("the closed incident is %+v; want by whom, when and with which note", first)
	}
	f.advance(time.Minute)
	again, err := f.incidents().IncidentClose(f.Context(), onejob.IncidentCloseParams{ID: first.ID, Actor: "otto", Note: "another"})
	f.noError(err)
	if !reflect.DeepEqual(again, first) || !reflect.DeepEqual(f.incidentOf(lost.JobID), first) {
		f.Errorf("the repeat answers %+v; want the first close, %+v", again, first)
	}
	entries := f.chain(owner)
	if len(entries) != before+1 {
		f.Fatalf("two closes made %d entries of the audit; want 1", len(entries)-before)
	}
	f.wantEntry(entries[before], onejob.AuditEntry{
		Owner: owner, Seq: int64(before + 1), Actor: "olga", Action: onejob.AuditIncidentClose, Subject: first.ID, Detail: "refunded",
	})
}

func testIncidentAtOnce(f *fixture) {
	lost, _ := f.duplicated("k1")
	id, before := f.incidentOf(lost.JobID).ID, len(f.chain(owner))
	notes := make([]string, 8)
	var wg sync.WaitGroup
	for i := range notes {
		wg.Go(func() {
			s, _ := f.handle(i).(onejob.IncidentStore)
			closed, err := s.IncidentClose(context.WithoutCancel(f.Context()), onejob.IncidentCloseParams{ID: id, Actor: "olga", Note: string(rune('a' + i))})
			if err != nil {
				f.Errorf("IncidentClose: %v", err)
			}
			notes[i] = closed.Note
		})
	}
	wg.Wait()
	for _, note := range notes {
		if note == "" || note != notes[0] {
			f.Errorf("the closers were answered the notes %q; want one of them for all", notes)
			break
		}
	}
	if n := len(f.chain(owner)) - before; n != 1 {
		f.Errorf("%d entries of the audit tell of the close; want 1", n)
	}
}

func testIncidentOwner(f *fixture) {
	lost, _ := f.duplicated("k1")
	id, none := f.incidentOf(lost.JobID).ID, onejob.NewIncidentID(lost.Part, 1<<40)
	closeAs := func(id string) error {
		_, err := f.incidents().IncidentClose(f.Context(), onejob.IncidentCloseParams{ID: id, Owner: "bob", Actor: "bob", Note: "mine"})
		return err
	}
	f.sameRefusal("IncidentClose", closeAs(id), closeAs(none), id, none)
	if i := f.incidentOf(lost.JobID); i.State() != onejob.IncidentOpen {
		f.Errorf("the incident is %+v; want it open", i)
	}
}

func testIncidentPurge(f *fixture) {
	lost, _ := f.duplicated("k1")
	i := f.incidentOf(lost.JobID)
	f.advance(payloadAge + time.Second)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 {
		f.Errorf("%d jobs with an open incident were purged; want none", n)
	}
	f.closeIncident(i.ID)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 1 || !f.get(lost.JobID).Purged() {
		f.Errorf("%d jobs were purged once the incident was closed; want 1", n)
	}
	if got := f.incidentOf(lost.JobID); got.Note != "refunded" {
		f.Errorf("the purged job's incident is %+v; want it kept", got)
	}
}

// testIncidentShrink has the success come when the payload is gone already.
func testIncidentShrink(f *fixture) {
	a := f.ruledOut("k1")
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded)
	f.purgeAll()
	f.finish(a, onejob.OutcomeSucceeded)
	i := f.incidentOf(a.JobID)
	f.advance(keyAge)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge}); n != 0 {
		f.Errorf("%d tombstones with an open incident shrank; want none", n)
	}
	f.closeIncident(i.ID)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge}); n != 1 {
		f.Errorf("%d tombstones shrank once the incident was closed; want 1", n)
	}
	if left := f.listIncidents(onejob.IncidentListParams{}); len(left) != 0 {
		f.Errorf("of the shrunk job %+v is left; want nothing", left)
	}
}
