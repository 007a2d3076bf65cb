package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

func waiting() []promise {
	return []promise{
		{name: "WaiterTake/FromWhoLeftAndOnce", test: testTakeLeft, handles: 2},
		{name: "WaiterTake/NotWhileSomebodyWaits", test: testTakeHeld},
		{name: "WaiterTake/FromWhoDiedOnceTheLeaseIsOver", test: testTakeDead},
		{name: "WaiterTake/NeverWhatWasDelivered", test: testTakeDelivered},
		{name: "WaiterTake/NeverWhatIsNotAlike", test: testTakeAlike},
		{name: "WaiterTake/OnlySoLongAfterTheyLeft", test: testTakeWindow},
		{name: "WaiterTake/OnlySoLongAfterTheLease", test: testTakeDeadWindow},
		{name: "WaiterTake/LongestGoneFirst", test: testTakeOrder},
		{name: "WaiterTake/ARepeatTakesTheSame", test: testTakeRepeated},
		{name: "WaiterTake/WhoTookOverMayLeaveToo", test: testTakeAgain},
		{name: "WaiterTake/NothingOfAJobThatNobodyWaitedFor", test: testTakeNone},
		{name: "WaiterTake/NothingOfWhatWasNotRecorded", test: testTakeRefused},
		{name: "WaiterTake/ALostAcknowledgementOfTheJobLosesNobody", test: testTakeUnacknowledged},
		{name: "WaiterRenew/OnlyForWhoWaits", test: testRenewWaiting},
		{name: "WaiterEnd/OnlyForWhoWaits", test: testEndWaiting},
		{name: "WaiterEnd/EachRowOfABatchIsJudgedByItself", test: testEndBatch},
		{name: "JobPurge/ForgetsWhoHasLongGone", test: testPurgeWaiters},
		{name: "Concurrent/EachRetryTakesAnotherJob", test: testRaceTake, handles: 3},
		{name: "Concurrent/WhoComesBackOrIsTakenOver", test: testRaceTakeRenew, handles: 3},
	}
}

// Figures of those who wait.
const (
	route      = "/v1/chat"
	waitLease  = 30 * time.Second
	takeWithin = 15 * time.Minute
)

// waiters returns a handle's waiters, or skips.
func (f *fixture) waiters(s onejob.Store) onejob.WaiterStore {
	f.Helper()
	w, ok := s.(onejob.WaiterStore)
	if !ok {
		f.Skip("the store knows no waiters")
	}
	return w
}

func awaited(p *onejob.JobCreateParams) {
	p.Waiter = &onejob.WaiterCreateParams{Route: route, Token: onejob.NewToken(), Lease: waitLease}
}

// await records an intent whose creator waits. Those with one input are alike, and lie
// in one part.
func (f *fixture) await(key string, change ...func(*onejob.JobCreateParams)) onejob.Waiter {
	f.Helper()
	f.waiters(f.s)
	p := f.alike(key, append(change, awaited)...)
	r := f.submit(p)
	f.noError(r.Err)
	return onejob.Waiter{JobRef: onejob.JobRef{Part: p.Part, ID: p.ID}, Token: p.Waiter.Token}
}

// alike is an intent under a key of its own that lies in the part of all of them.
func (f *fixture) alike(key string, change ...func(*onejob.JobCreateParams)) onejob.JobCreateParams {
	f.Helper()
	p := f.intent(key, change...)
	p.Part = alikePart
	p.ID = onejob.NewJobID(p.Part, time.UnixMilli(0))
	return p
}

const alikePart = 7

// takeOf is a retry of what f.await records.
func (f *fixture) takeOf() onejob.WaiterTakeParams {
	f.Helper()
	return onejob.WaiterTakeParams{
		Part: alikePart, Owner: owner, Route: route, Fingerprint: f.intent("any").Fingerprint,
		Token: onejob.NewToken(), Lease: waitLease, Within: takeWithin,
	}
}

// take takes over a job, whose waiter it returns; the zero one: there was none.
func (f *fixture) take(change ...func(*onejob.WaiterTakeParams)) onejob.Waiter {
	f.Helper()
	p := f.takeOf()
	for _, c := range change {
		c(&p)
	}
	ref, taken, err := f.waiters(f.s).WaiterTake(f.Context(), p)
	f.noError(err)
	if !taken {
		return onejob.Waiter{}
	}
	return onejob.Waiter{JobRef: ref, Token: p.Token}
}

func (f *fixture) wantTaken(when string, got onejob.Waiter, want ...onejob.Waiter) {
	f.Helper()
	var ref onejob.JobRef
	if len(want) > 0 {
		ref = want[0].JobRef
	}
	if got.JobRef != ref {
		f.Errorf("%s, job %q was taken over; want %q", when, got.ID, ref.ID)
	}
}

func (f *fixture) stop(w onejob.Waiter, change ...func(*onejob.WaiterEndParams)) bool {
	f.Helper()
	p := onejob.WaiterEndParams{Waiter: w}
	for _, c := range change {
		c(&p)
	}
	ended, err := f.waiters(f.s).WaiterEnd(f.Context(), []onejob.WaiterEndParams{p})
	f.noError(err)
	return ended[0]
}

func delivered(p *onejob.WaiterEndParams) { p.Delivered = true }

func (f *fixture) renew(w onejob.Waiter) bool {
	f.Helper()
	held, err := f.waiters(f.s).WaiterRenew(f.Context(), []onejob.WaiterRenewParams{{Waiter: w, Lease: waitLease}})
	f.noError(err)
	return held[0]
}

func testTakeLeft(f *fixture) {
	w := f.await("k1")
	if !f.stop(w) {
		f.Error("who waits could not leave")
	}
	f.wantTaken("after they left", f.take(), w)
	for i, s := range f.Stores {
		if ref, taken, err := f.waiters(s).WaiterTake(f.Context(), f.takeOf()); taken || err != nil {
			f.Errorf("handle %d then took %q over, %v; want nothing", i, ref.ID, err)
		}
	}
}

func testTakeHeld(f *fixture) {
	w := f.await("k1")
	f.wantTaken("while they wait", f.take())
	for range 5 {
		f.advance(waitLease - time.Second)
		if !f.renew(w) {
			f.Error("who waits could not renew")
		}
	}
	f.wantTaken("while they renew", f.take())
}

func testTakeDead(f *fixture) {
	w := f.await("k1")
	f.advance(waitLease - time.Second)
	f.wantTaken("a second before the end of the lease", f.take())
	f.advance(2 * time.Second)
	f.wantTaken("after the lease", f.take(), w)
}

func testTakeDelivered(f *fixture) {
	w := f.await("k1")
	if !f.stop(w, delivered) {
		f.Error("who waits could not be answered")
	}
	f.wantTaken("after the answer", f.take())
	f.advance(waitLease + time.Second)
	f.wantTaken("after the answer and the lease", f.take())
}

func testTakeAlike(f *fixture) {
	w := f.await("k1")
	f.stop(w)
	for what, other := range map[string]func(*onejob.WaiterTakeParams){
		"owner":       func(p *onejob.WaiterTakeParams) { p.Owner = "bob" },
		"sub-owner":   func(p *onejob.WaiterTakeParams) { p.Owner = owner + "/sub" },
		"no owner":    func(p *onejob.WaiterTakeParams) { p.Owner = "" },
		"route":       func(p *onejob.WaiterTakeParams) { p.Route = "/v1/messages" },
		"fingerprint": func(p *onejob.WaiterTakeParams) { p.Fingerprint = f.intent("k", withInput("other")).Fingerprint },
		"none":        func(p *onejob.WaiterTakeParams) { p.Fingerprint = nil },
		"part":        func(p *onejob.WaiterTakeParams) { p.Part++ },
		"NUL":         func(p *onejob.WaiterTakeParams) { p.Route += "\x00" },
	} {
		f.wantTaken("by another "+what, f.take(other))
	}
	f.wantTaken("by one that is alike", f.take(), w)
}

func testTakeWindow(f *fixture) {
	w := f.await("k1")
	for range 2 * int(takeWithin/waitLease) { // they waited longer than the window is
		f.advance(waitLease / 2)
		f.renew(w)
	}
	f.stop(w)
	f.advance(takeWithin - time.Second)
	again := f.take()
	f.wantTaken("a second before the end of the window", again, w)
	f.stop(again)
	f.advance(takeWithin + time.Second)
	f.wantTaken("a second after the window", f.take())
}

func testTakeDeadWindow(f *fixture) {
	w := f.await("k1")
	f.advance(waitLease + takeWithin - time.Second)
	f.wantTaken("in the window that begins with the end of the lease", f.take(), w)
	f.advance(waitLease + takeWithin + time.Second)
	f.wantTaken("after that", f.take())
}

func testTakeOrder(f *fixture) {
	first, second, third := f.await("k1"), f.await("k2"), f.await("k3")
	f.stop(second)
	f.advance(time.Second)
	f.stop(third)
	f.advance(time.Second)
	f.stop(first)
	f.wantTaken("of three", f.take(), second)
	f.wantTaken("of two", f.take(), third)
	f.wantTaken("of one", f.take(), first)
	f.wantTaken("of none", f.take())
}

func testTakeRepeated(f *fixture) {
	first, second := f.await("k1"), f.await("k2")
	f.stop(first)
	f.advance(time.Second)
	f.stop(second)
	token := func(p *onejob.WaiterTakeParams) { p.Token = "the same" }
	f.wantTaken("at first", f.take(token), first)
	f.wantTaken("by the same again", f.take(token), first)
	f.wantTaken("by another", f.take(), second)
}

// A library that tries three times has two retries, and each may lose its connection.
func testTakeAgain(f *fixture) {
	w := f.await("k1")
	f.stop(w)
	for range 3 {
		taken := f.take()
		f.wantTaken("after they left again", taken, w)
		f.wantTaken("while the retry waits", f.take())
		f.stop(taken)
	}
	f.stop(f.take(), delivered)
	f.wantTaken("after the answer", f.take())
}

func testTakeNone(f *fixture) {
	f.waiters(f.s)
	f.noError(f.submit(f.alike("k1")).Err)
	f.advance(waitLease + time.Second)
	f.wantTaken("of a job under a key", f.take())
}

func testTakeRefused(f *fixture) {
	f.waiters(f.s)
	refused := f.alike("k1", awaited)
	refused.Refuse = &onejob.Error{Code: onejob.CodeQuotaExceeded}
	f.wantCode(f.submit(refused).Err, onejob.CodeQuotaExceeded)
	f.noError(f.submit(f.alike("k2")).Err)
	f.noError(f.submit(f.alike("k2", awaited)).Err) // a repeat
	f.advance(waitLease + time.Second)
	f.wantTaken("of a job that was not recorded", f.take())
}

func testTakeUnacknowledged(f *fixture) {
	f.waiters(f.s)
	p := f.alike("k1", awaited)
	for range 2 { // the second is the same call once more
		r := f.submit(p)
		f.noError(r.Err)
		if r.Existed {
			f.Error("a creation that is repeated was answered as another's")
		}
	}
	w := onejob.Waiter{JobRef: onejob.JobRef{Part: p.Part, ID: p.ID}, Token: p.Waiter.Token}
	if !f.stop(w) {
		f.Error("who waits could not leave")
	}
	f.wantTaken("after they left", f.take(), w)
	f.wantTaken("after that", f.take())
}

func testRenewWaiting(f *fixture) {
	w := f.await("k1")
	stranger := w
	stranger.Token = onejob.NewToken()
	nobody := w
	nobody.Token = ""
	if f.renew(stranger) || f.renew(nobody) {
		f.Error("a stranger renewed a waiting")
	}
	f.stop(w)
	if f.renew(w) || f.renew(nobody) {
		f.Error("who left renewed their waiting")
	}
	taken := f.take()
	if f.renew(w) {
		f.Error("who was taken over from renewed their waiting")
	}
	if !f.renew(taken) {
		f.Error("who took over could not renew")
	}
}

func testEndWaiting(f *fixture) {
	w := f.await("k1")
	f.stop(w)
	if f.stop(w, delivered) {
		f.Error("who had left was answered")
	}
	taken := f.take()
	f.wantTaken("after they left", taken, w)
	if f.stop(w) || f.stop(w, delivered) {
		f.Error("who was taken over from ended the waiting of who took over")
	}
	nobody := w
	nobody.Token = ""
	if f.stop(nobody, delivered) {
		f.Error("nobody in particular ended a waiting")
	}
	if !f.stop(taken, delivered) {
		f.Error("who took over could not be answered")
	}
}

func testEndBatch(f *fixture) {
	left, answered, held := f.await("k1"), f.await("k2"), f.await("k3")
	stranger := held
	stranger.Token = onejob.NewToken()
	ended, err := f.waiters(f.s).WaiterEnd(f.Context(), []onejob.WaiterEndParams{
		{Waiter: answered, Delivered: true},
		{Waiter: stranger},
		{Waiter: left},
		{Waiter: left},
		{Waiter: onejob.Waiter{JobRef: onejob.JobRef{Part: 1, ID: onejob.NewJobID(1, time.UnixMilli(0))}, Token: "t"}},
	})
	f.noError(err)
	if fmt.Sprint(ended) != "[true false true false false]" {
		f.Errorf("the batch was answered %v; want [true false true false false]", ended)
	}
	f.wantTaken("after the batch", f.take(), left)
	f.wantTaken("after that", f.take())
	if !f.renew(held) {
		f.Error("who waits could not renew")
	}
}

func testPurgeWaiters(f *fixture) {
	const age = 24 * time.Hour
	for i := range 5 {
		f.stop(f.await(fmt.Sprintf("k%d", i)))
	}
	f.advance(age / 2)
	later := f.await("k9")
	f.stop(later)
	f.advance(age/2 + time.Second)
	for _, want := range []int{2, 2, 1, 0} {
		if n := f.purge(onejob.JobPurgeParams{WaiterAge: age, Limit: 2}); n != want {
			f.Errorf("with limit 2, %d waiters were forgotten; want %d", n, want)
		}
	}
	ever := func(p *onejob.WaiterTakeParams) { p.Within = 10 * age }
	f.wantTaken("of those who are left", f.take(ever), later)
	f.wantTaken("of those who were forgotten", f.take(ever))
	f.advance(10 * age)
	if n := f.purge(onejob.JobPurgeParams{}); n != 0 {
		f.Errorf("%d waiters were forgotten though all are kept", n)
	}
}

// A hash of the request with a window of time merged five wanted samples into one.
func testRaceTake(f *fixture) {
	const jobs, callers = 5, 12
	for round := range rounds() / 2 {
		left := map[string]int{}
		for i := range jobs {
			w := f.await(fmt.Sprintf("k%d-%d", round, i))
			f.stop(w)
			left[w.ID] = 0
		}
		var mu sync.Mutex
		taken := 0
		takes := make([]onejob.WaiterTakeParams, callers)
		for i := range takes {
			takes[i] = f.takeOf()
		}
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			ref, ok, err := f.waiters(s).WaiterTake(ctx, takes[i])
			mu.Lock()
			defer mu.Unlock()
			if ok {
				left[ref.ID]++
				taken++
			}
			return err
		})
		for id, n := range left {
			if n > 1 {
				f.Errorf("round %d: job %s was taken over %d times; want once", round, id, n)
			}
		}
		for range jobs - taken { // what a caller passed over because another held it
			left[f.take().ID]++
		}
		for id, n := range left {
			if n != 1 {
				f.Errorf("round %d: job %q was taken over %d times; want once", round, id, n)
			}
		}
	}
}

// One whose lease is over comes back while others would take over: either they wait
// on, or one of those does.
func testRaceTakeRenew(f *fixture) {
	for round := range rounds() / 3 {
		w := f.await(fmt.Sprintf("k%d", round))
		f.advance(waitLease + time.Second)
		const callers = 4
		waits := make([]bool, callers)
		takes := make([]onejob.WaiterTakeParams, callers)
		for i := range takes {
			takes[i] = f.takeOf()
		}
		f.race(callers, func(ctx context.Context, i int, s onejob.Store) error {
			var err error
			if i == 0 {
				_, err = f.waiters(s).WaiterRenew(ctx, []onejob.WaiterRenewParams{{Waiter: w, Lease: waitLease}})
			} else {
				_, waits[i], err = f.waiters(s).WaiterTake(ctx, takes[i])
			}
			return err
		})
		waits[0] = f.stop(w, delivered) // and not what the renewal said before another took over
		n := 0
		for i, waiting := range waits {
			if waiting {
				n++
				f.stop(onejob.Waiter{JobRef: w.JobRef, Token: takes[i].Token}, delivered)
			}
		}
		if n != 1 {
			f.Errorf("round %d: %d callers wait for one job; want 1", round, n)
		}
	}
}
