package storetest

import (
	"context"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

func auditing() []promise {
	return []promise{
		{name: "Audit/TellsOfARuling", test: testAuditResolve},
		{name: "Audit/TellsOfACancelAndOnce", test: testAuditCancel},
		{name: "Audit/TellsOfAnUnblock", test: testAuditUnblock},
		{name: "Audit/TellsOfTheFallbackButtonAndOnce", test: testAuditButton},
		{name: "Audit/TellsOfKeys", test: testAuditKeys},
		{name: "Audit/TellsNothingOfTheMachine", test: testAuditMachine},
		{name: "Audit/TellsNothingOfWhatWasRefused", test: testAuditRefused},
		{name: "Audit/HoldsNoSecretAndNoPayload", test: testAuditSecret},
		{name: "Audit/NothingIsDoneThatItDoesNotTell", test: testAuditAtomic},
		{name: "Audit/ABatchIsOneChainForEachOwner", test: testAuditBatch},
		{name: "Audit/ManyAtOnceMakeOneChain", test: testAuditAtOnce, handles: 4},
		{name: "Audit/ListsNewestFirst", test: testAuditList},
		{name: "Audit/NeverGoesBackInTime", test: testAuditTime},
		{name: "Audit/OnlyGrows", test: testAuditAppendOnly},
		{name: "Audit/AChangeAroundTheDatabaseIsFound", test: testAuditTampered},
		{name: "Audit/OnlyAnAnchorFindsACutEnd", test: testAuditCut},
		{name: "Audit/OnlyAnAnchorFindsAChainThatIsGone", test: testAuditGone},
	}
}

func (f *fixture) audits() onejob.AuditStore {
	f.Helper()
	a, ok := f.s.(onejob.AuditStore)
	if !ok {
		f.Fatal("the store is no onejob.AuditStore")
	}
	return a
}

// chain reads an owner's chain, which must hold.
func (f *fixture) chain(of string) []onejob.AuditEntry {
	f.Helper()
	if faults := f.faults(); len(faults) > 0 {
		f.Fatalf("the audit does not hold: %v", faults)
	}
	var entries []onejob.AuditEntry
	for e, err := range onejob.AuditChains(f.Context(), f.audits(), of) {
		f.noError(err)
		entries = append(entries, e)
	}
	return entries
}

// faults verifies every chain against its own end and against anchors.
func (f *fixture) faults(anchors ...onejob.AuditHead) []onejob.AuditFault {
	f.Helper()
	heads, err := f.audits().AuditHeads(f.Context(), "")
	f.noError(err)
	var all []onejob.AuditAnchor
	for _, h := range heads {
		all = append(all, onejob.AuditAnchor{AuditHead: h, From: "the store"})
	}
	for _, h := range anchors {
		all = append(all, onejob.AuditAnchor{AuditHead: h, From: "the anchor"})
	}
	verified, faults, err := onejob.VerifyAudit(onejob.AuditChains(f.Context(), f.audits(), ""), all)
	f.noError(err)
	if len(faults) == 0 && len(verified) != len(heads) {
		f.Errorf("%d chains were verified, and %d have an end", len(verified), len(heads))
	}
	return faults
}

// wantEntry checks an entry but for its time and hashes.
func (f *fixture) wantEntry(got onejob.AuditEntry, want onejob.AuditEntry) {
	f.Helper()
	if got.At.IsZero() || len(got.Hash) != 32 {
		f.Errorf("the entry %+v has no time or no hash", got)
	}
	got.At, got.Prev, got.Hash = time.Time{}, nil, nil
	if !reflect.DeepEqual(got, want) {
		f.Errorf("the audit says\n%+v; want\n%+v", got, want)
	}
}

func (f *fixture) wantEntries(of string, want ...onejob.AuditEntry) {
	f.Helper()
	entries := f.chain(of)
	if len(entries) != len(want) {
		f.Fatalf("%s's audit has %d entries; want %d: %+v", of, len(entries), len(want), entries)
	}
	for i := range want {
		want[i].Owner, want[i].Seq = of, int64(i+1)
		f.wantEntry(entries[i], want[i])
	}
}

func testAuditResolve(f *fixture) {
	a := f.undeclared("k1")
	f.advance(sendWithin + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted, acknowledgeRisk)
	f.wantEntries(owner, onejob.AuditEntry{
		Actor: "olga", Action: onejob.AuditResolve, Subject: a.ID, Detail: "not_executed (risk acknowledged): the provider's books",
	})
}

func testAuditCancel(f *fixture) {
	id := f.create("k1").ID
	f.cancel(id)
	f.cancel(id)
	f.wantEntries(owner, onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: id})
}

func testAuditUnblock(f *fixture) {
	a := f.unknown("k1")
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeCancelled)
	for range 2 {
		_, err := f.tryUnblock(onejob.JobUnblockParams{ID: a.JobID, Actor: "otto", Reason: "looked at"})
		f.noError(err)
	}
	f.wantEntries(owner,
		onejob.AuditEntry{Actor: "olga", Action: onejob.AuditResolve, Subject: a.ID, Detail: "cancelled: the provider's books"},
		onejob.AuditEntry{Actor: "otto", Action: onejob.AuditUnblock, Subject: a.JobID, Detail: "looked at"},
	)
}

func testAuditButton(f *fixture) {
	f.wantCode(f.tryStart(buttonOf(f.blockedAtA("k1").ID, "click", "b")).Err, onejob.CodeFailoverNotCertified)
	job := f.awaitingB("k2")
	p := buttonOf(job.ID, "click", "c")
	attempt := f.start(p)
	if again := f.tryStart(p); !again.Existed {
		f.Fatalf("the second click answers %+v; want a repeat", again)
	}
	f.wantEntries(owner, onejob.AuditEntry{
		Actor: "olga", Action: onejob.AuditStart, Subject: attempt.ID, Detail: "job " + job.ID + " at target c",
	})
}

func testAuditKeys(f *fixture) {
	keys := f.keyStore()
	f.noError(keys.KeyCreate(f.Context(), made(apiKey("key1", time.UnixMilli(1)))))
	if err := keys.KeyCreate(f.Context(), made(apiKey("key1", time.UnixMilli(2)))); err == nil {
		f.Error("an id that exists was created again")
	}
	f.noError(keys.KeyRevoke(f.Context(), revoked("key1")))
	f.noError(keys.KeyRevoke(f.Context(), revoked("key1")))
	f.wantCode(keys.KeyRevoke(f.Context(), revoked("key2")), onejob.CodeNotFound)
	f.wantEntries(owner,
		onejob.AuditEntry{Actor: "olga", Action: onejob.AuditKeyCreate, Subject: "key1", Detail: "role operator, may act for sub-owners"},
		onejob.AuditEntry{Actor: "otto", Action: onejob.AuditKeyRevoke, Subject: "key1"},
	)
}

func testAuditMachine(f *fixture) {
	first, _ := f.twoLanes("k1")
	f.finish(first, onejob.OutcomeSucceeded)
	a := f.unknown("k2")
	f.advance(quarantine + time.Second)
	f.probe(answer(a, onejob.OutcomeNotExecuted, absent))
	_, err := f.tryCancel(onejob.JobCancelParams{ID: f.create("k3").ID})
	f.noError(err)
	f.wantEntries(owner)
}

func testAuditRefused(f *fixture) {
	a, done := f.unknown("k1"), f.running("k2")
	f.finish(done, onejob.OutcomeSucceeded)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted)).Err, onejob.CodeQuarantined)
	_, err := f.tryUnblock(onejob.JobUnblockParams{ID: a.JobID, Actor: "olga", Reason: "now"})
	f.wantCode(err, onejob.CodeAttemptUnresolved)
	f.wantCode(f.tryStart(buttonOf(a.JobID, "click", "a")).Err, onejob.CodeAttemptUnresolved)
	results, err := f.s.JobCancel(f.Context(), []onejob.JobCancelParams{
		{ID: done.JobID, Actor: "olga"}, {ID: "job_none", Actor: "olga"}, {ID: a.JobID, Owner: "bob", Actor: "olga"},
	})
	f.noError(err)
	for _, r := range results {
		if r.Err == nil {
			f.Errorf("a cancel that must be refused answered %+v", r.Job)
		}
	}
	f.wantEntries(owner)
}

func testAuditSecret(f *fixture) {
	a := f.unknown("k1", withInput(`{"card":"canary"}`))
	f.resolve(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptResolveParams) {
		p.Result = &onejob.Result{Body: []byte(`"canary"`)}
	})
	if keys, ok := f.s.(onejob.KeyStore); ok {
		key := apiKey("key1", time.UnixMilli(1))
		key.Hash = []byte("canary")
		f.noError(keys.KeyCreate(f.Context(), made(key)))
	}
	for _, e := range f.chain(owner) {
		if strings.Contains(fmt.Sprintf("%+v", e), "canary") || strings.Contains(e.Detail, hex.EncodeToString([]byte("canary"))) {
			f.Errorf("the audit holds a secret or a payload: %+v", e)
		}
	}
}

// testAuditAtomic takes the audit away: nobody does with power what it cannot tell.
func testAuditAtomic(f *fixture) {
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	a := f.unknown("k1")
	queued := f.create("k2")
	f.noError(f.Exec("ALTER TABLE audit RENAME TO audit_gone"))
	if results, err := f.s.JobCancel(f.Context(), []onejob.JobCancelParams{{ID: queued.ID, Actor: "olga"}}); err == nil && results[0].Err == nil {
		f.Error("a job was cancelled without the audit")
	}
	if results, err := f.s.AttemptResolve(f.Context(), []onejob.AttemptResolveParams{rulingOf(a, onejob.OutcomeSucceeded)}); err == nil && results[0].Err == nil {
		f.Error("an attempt was ruled without the audit")
	}
	f.noError(f.Exec("ALTER TABLE audit_gone RENAME TO audit"))
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	f.wantJob(queued.ID, onejob.JobQueued)
	f.cancel(queued.ID)
	f.wantEntries(owner, onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: queued.ID})
}

func testAuditBatch(f *fixture) {
	owners := []string{"carol", owner, "bob"}
	var params []onejob.JobCancelParams
	for i := range 9 {
		id := f.create(fmt.Sprint("k", i), withOwner(owners[i%3])).ID
		params = append(params, onejob.JobCancelParams{ID: id, Actor: "olga"})
	}
	results, err := f.s.JobCancel(f.Context(), params)
	f.noError(err)
	for _, r := range results {
		f.noError(r.Err)
	}
	for i, of := range owners {
		f.wantEntries(of,
			onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: params[i].ID},
			onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: params[i+3].ID},
			onejob.AuditEntry{Actor: "olga", Action: onejob.AuditCancel, Subject: params[i+6].ID},
		)
	}
}

// testAuditAtOnce adds to the same chains from many sides, in batches that name
// their owners in different orders.
func testAuditAtOnce(f *fixture) {
	const sides, rounds = 8, 6
	owners := []string{owner, "bob", "carol"}
	batches := make([][]onejob.JobCancelParams, sides)
	for side := range sides {
		for i := range rounds * len(owners) {
			of := owners[(i*(side%2*2-1)+len(owners)*rounds)%len(owners)]
			id := f.create(fmt.Sprint("k", side, "-", i), withOwner(of)).ID
			batches[side] = append(batches[side], onejob.JobCancelParams{ID: id, Actor: fmt.Sprint("side ", side)})
		}
	}
	var wg sync.WaitGroup
	for side, batch := range batches {
		wg.Go(func() {
			for len(batch) > 0 {
				n := min(len(owners), len(batch))
				results, err := f.handle(side).JobCancel(context.WithoutCancel(f.Context()), batch[:n])
				for i := 0; err == nil && i < n; i++ {
					err = results[i].Err
				}
				if err != nil {
					f.Errorf("side %d: %v", side, err)
					return
				}
				batch = batch[n:]
			}
		})
	}
	wg.Wait()
	for _, of := range owners {
		if n := len(f.chain(of)); n != sides*rounds {
			f.Errorf("%s's chain has %d entries; want %d", of, n, sides*rounds)
		}
	}
}

func testAuditList(f *fixture) {
	for i := range 6 {
		f.cancel(f.create(fmt.Sprint("k", i), withOwner([]string{owner, "bob"}[i%2])).ID)
		f.advance(time.Second)
	}
	for of, want := range map[string]int{"": 6, owner: 3, "bob": 3, "nobody": 0} {
		for _, limit := range []int{1, 2, 200} {
			var got []onejob.AuditEntry
			p := onejob.AuditListParams{Owner: of, Limit: limit}
			for more := true; more; {
				page, err := f.audits().AuditList(f.Context(), p)
				f.noError(err)
				if len(page.Entries) > limit || page.More && len(page.Entries) == 0 || len(got) > 1000 {
					f.Fatalf("a page of %d holds %d, more %v", limit, len(page.Entries), page.More)
				}
				got = append(got, page.Entries...)
				if more = page.More; more {
					p.After = got[len(got)-1].Cursor()
				}
			}
			if len(got) != want {
				f.Fatalf("pages of %d list %d entries of %q; want %d", limit, len(got), of, want)
			}
			for i := 1; i < len(got); i++ {
				if !got[i].At.Before(got[i-1].At) {
					f.Errorf("entry %d is from %s and the one before from %s; want newest first", i, got[i].At, got[i-1].At)
				}
			}
		}
	}
}

func testAuditTime(f *fixture) {
	first := f.create("k1")
	f.cancel(first.ID)
	e := f.chain(owner)[0]
	next := onejob.NextAudit(e.Head(), onejob.AuditEntry{Owner: owner, At: e.At.Add(-time.Hour), Action: onejob.AuditCancel})
	if !next.At.Equal(e.At) {
		f.Errorf("the entry after %s is from %s; want no earlier", e.At, next.At)
	}
}

// fiveEntries is a chain to attack.
func (f *fixture) fiveEntries() []onejob.AuditEntry {
	f.Helper()
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	for i := range 5 {
		f.cancel(f.create(fmt.Sprint("k", i)).ID)
		f.advance(time.Second)
	}
	f.cancel(f.create("other", withOwner("bob")).ID)
	return f.chain(owner)
}

const alices = " WHERE owner = 'alice'"

func testAuditAppendOnly(f *fixture) {
	entries := f.fiveEntries()
	insert := "INSERT INTO audit (part, owner, seq, at, actor, action, subject, detail, prev, hash) SELECT part, owner, %s, at, 'mallory', action, subject, detail, prev, hash FROM audit" + alices + " AND seq = %d"
	for _, attack := range []string{
		"UPDATE audit SET detail = 'nothing'" + alices,
		"UPDATE audit SET seq = seq + 1" + alices + " AND seq = 5",
		"DELETE FROM audit" + alices,
		"DELETE FROM audit" + alices + " AND seq = 5",
		"DELETE FROM audit_heads" + alices,
		"UPDATE audit_heads SET seq = 3" + alices,
		"UPDATE audit_heads SET owner = 'bob2'" + alices,
		fmt.Sprintf(insert, "seq", 5),     // the same place
		fmt.Sprintf(insert, "seq + 1", 5), // what does not follow
		fmt.Sprintf(insert, "seq + 2", 5), // a gap
		"TRUNCATE audit",
		"INSERT OR REPLACE INTO audit SELECT part, owner, seq, at, 'mallory', action, subject, detail, prev, hash FROM audit" + alices + " AND seq = 5",
	} {
		if err := f.Exec(attack); err == nil {
			f.Errorf("the database took %s", attack)
		}
		if dialect := strings.HasPrefix(attack, "TRUNCATE") || strings.HasPrefix(attack, "INSERT OR"); dialect {
			continue
		}
		if err := f.Exec(attack + " AND 1 = 0"); err != nil {
			f.Errorf("the database does not understand %s: %v", attack, err)
		}
	}
	if after := f.chain(owner); !reflect.DeepEqual(after, entries) {
		f.Errorf("the chain is now\n%+v; want\n%+v", after, entries)
	}
}

// unguard takes the database's own guards of the audit away, as only who owns the
// database can.
func (f *fixture) unguard() {
	f.Helper()
	if f.Exec("ALTER TABLE audit DISABLE TRIGGER USER") == nil {
		f.noError(f.Exec("ALTER TABLE audit_heads DISABLE TRIGGER USER"))
		return
	}
	for _, trigger := range []string{"audit_follows", "audit_unchanged", "audit_kept", "audit_heads_forward", "audit_heads_kept"} {
		f.noError(f.Exec("DROP TRIGGER " + trigger))
	}
}

func (f *fixture) wantFault(seq int64, faults []onejob.AuditFault) {
	f.Helper()
	if len(faults) != 1 || faults[0].Owner != owner || faults[0].Seq != seq {
		f.Errorf("the faults are %v; want one, at entry %d of %s", faults, seq, owner)
	}
}

// testAuditTampered undoes each change before the next.
func testAuditTampered(f *fixture) {
	f.fiveEntries()
	f.unguard()
	put := func(seq int) string { return fmt.Sprintf(" WHERE owner = 'alice' AND seq = %d", seq) }
	for _, c := range []struct {
		name         string
		change, undo []string
		at           int64
	}{
		{"an edit", []string{"UPDATE audit SET detail = 'x'" + put(3)}, []string{"UPDATE audit SET detail = ''" + put(3)}, 3},
		{"another actor of the first", []string{"UPDATE audit SET actor = 'mallory'" + put(1)}, []string{"UPDATE audit SET actor = 'olga'" + put(1)}, 1},
		{"another subject of the last", []string{"UPDATE audit SET subject = subject || 'x'" + put(5)}, []string{"UPDATE audit SET subject = substr(subject, 1, length(subject) - 1)" + put(5)}, 5},
		{"another action", []string{"UPDATE audit SET action = 'job.unblock'" + put(2)}, []string{"UPDATE audit SET action = 'job.cancel'" + put(2)}, 2},
		{"another time", []string{
			"CREATE TABLE keep AS SELECT at FROM audit" + put(2),
			"UPDATE audit SET at = (SELECT a.at FROM audit a WHERE a.owner = 'alice' AND a.seq = 4)" + put(2),
		}, []string{"UPDATE audit SET at = (SELECT at FROM keep)" + put(2)}, 2},
		{"two exchanged", []string{
			"UPDATE audit SET seq = 102" + put(2), "UPDATE audit SET seq = 2" + put(3), "UPDATE audit SET seq = 3" + put(102),
		}, []string{
			"UPDATE audit SET seq = 102" + put(2), "UPDATE audit SET seq = 2" + put(3), "UPDATE audit SET seq = 3" + put(102),
		}, 2},
		{"one taken out", []string{
			"CREATE TABLE taken AS SELECT * FROM audit" + put(3), "DELETE FROM audit" + put(3),
		}, []string{"INSERT INTO audit SELECT * FROM taken"}, 3},
		{"the end cut off", []string{
			"CREATE TABLE cut AS SELECT * FROM audit WHERE owner = 'alice' AND seq > 3", "DELETE FROM audit WHERE owner = 'alice' AND seq > 3",
		}, []string{"INSERT INTO audit SELECT * FROM cut"}, 4}, // its end still tells
	} {
		for _, sql := range c.change {
			f.noError(f.Exec(sql))
		}
		faults := f.faults()
		if len(faults) != 1 || faults[0].Owner != owner || faults[0].Seq != c.at {
			f.Errorf("%s: the faults are %v; want one, at entry %d of %s", c.name, faults, c.at, owner)
		}
		for _, sql := range c.undo {
			f.noError(f.Exec(sql))
		}
		if faults := f.faults(); len(faults) != 0 {
			f.Fatalf("after %s was undone the faults are %v", c.name, faults)
		}
	}
}

// testAuditCut shows the limit of a chain: who cuts its end, and what remembers
// that, leaves one that holds. What was written down elsewhere tells.
func testAuditCut(f *fixture) {
	entries := f.fiveEntries()
	f.unguard()
	f.noError(f.Exec("DELETE FROM audit" + alices + " AND seq > 3"))
	f.noError(f.Exec("UPDATE audit_heads SET seq = 3, hash = (SELECT hash FROM audit" + alices + " AND seq = 3)" + alices))
	if faults := f.faults(); len(faults) != 0 {
		f.Errorf("a chain that was cut has faults by itself: %v", faults)
	}
	f.wantFault(4, f.faults(entries[4].Head()))
	f.wantFault(4, f.faults(entries[3].Head()))
	if faults := f.faults(entries[2].Head()); len(faults) != 0 {
		f.Errorf("an anchor from before the cut finds %v; want nothing", faults)
	}
}

func testAuditGone(f *fixture) {
	entries := f.fiveEntries()
	f.unguard()
	f.noError(f.Exec("DELETE FROM audit" + alices))
	f.wantFault(1, f.faults()) // the end still tells
	f.noError(f.Exec("DELETE FROM audit_heads" + alices))
	if faults := f.faults(); len(faults) != 0 {
		f.Errorf("a chain that is gone has faults by itself: %v", faults)
	}
	f.wantFault(1, f.faults(entries[1].Head()))
}
