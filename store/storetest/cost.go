package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

func summing() []promise {
	return []promise{
		{name: "CostSum/AgreesWithTheAttemptsOfJobs", test: testCostAgrees},
		{name: "CostSum/SaysWhenItIsOnlyTheLeast", test: testCostAtLeast},
		{name: "CostSum/FiltersAndPages", test: testCostFilters},
		{name: "CostSum/ADayIsInUTC", test: testCostDay},
		{name: "CostSum/StaysAtTheLargestAmount", test: testCostLargest},
		{name: "CostSum/OfNothingIsNothing", test: testCostNothing},
		{name: "Cost/IsKeptWhateverBecomesOfTheAttempt", test: testCostKept},
		{name: "Cost/OfWhatWasGivenUpIsAtLeast", test: testCostGivenUp},
		{name: "Cost/OfProbesIsKept", test: testCostProbe},
		{name: "Cost/OfALateSuccessIsKept", test: testCostLate},
	}
}

func (f *fixture) sum(p onejob.CostSumParams) []onejob.CostRow {
	f.Helper()
	s, ok := f.s.(onejob.CostStore)
	if !ok {
		f.Fatal("the store is no onejob.CostStore")
	}
	if p.Limit == 0 {
		p.Limit = 200
	}
	var all []onejob.CostRow
	for more := true; more; {
		page, err := s.CostSum(f.Context(), p)
		f.noError(err)
		if len(page.Rows) > p.Limit || page.More && len(page.Rows) == 0 || len(all) > 1000 {
			f.Fatalf("a page of %d holds %d rows, more %v", p.Limit, len(page.Rows), page.More)
		}
		all = append(all, page.Rows...)
		if more = page.More; more {
			last := all[len(all)-1]
			p.After = &onejob.CostCursor{Key: last.Key, Currency: last.Currency}
		}
	}
	return all
}

func (f *fixture) wantCosts(p onejob.CostSumParams, want ...onejob.CostRow) {
	f.Helper()
	if got := f.sum(p); !reflect.DeepEqual(got, want) {
		f.Errorf("by %s: %+v; want %+v", p.By, got, want)
	}
}

func priced(micros int64, currency string) func(*onejob.AttemptFinishParams) {
	return func(p *onejob.AttemptFinishParams) { p.CostMicros, p.Currency = micros, currency }
}

// testCostAgrees makes jobs of all kinds at random and sums them up by the rule in
// Go, attempt by attempt.
func testCostAgrees(f *fixture) {
	seed := uint64(time.Now().UnixNano())
	f.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := 40
	for i := range jobs {
		f.randomJob(random, fmt.Sprint("k", i))
	}
	all := f.everything()
	if len(all) != jobs {
		f.Fatalf("%d jobs were made; want %d", len(all), jobs)
	}
	for _, by := range onejob.CostGroups() {
		f.wantCosts(onejob.CostSumParams{By: by, Limit: 3}, costsByHand(all, by)...)
	}
}

// randomJob makes one job and lets something happen to it.
func (f *fixture) randomJob(random *rand.Rand, key string) {
	f.Helper()
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	a := f.starting(key, targets("a", "b"), withOwner(pick(owner, "bob", "carol")), func(p *onejob.JobCreateParams) {
		p.Kind, p.Target = pick("charge", "draw"), pick("a", "b")
		if p.Target == "b" {
			p.Policy.Targets = []string{"b", "a"}
		}
	})
	price := priced(random.Int64N(1_000_000_000), pick("EUR", "USD"))
	if random.IntN(2) == 0 {
		price = priced(0, "")
	}
	outcomes := []onejob.Outcome{
		onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeExecutedFailed, onejob.OutcomeSucceeded,
		onejob.OutcomeUnknown, onejob.OutcomeResultLost, onejob.OutcomeAccepted,
	}
	switch n := random.IntN(len(outcomes) + 3); {
	case n < len(outcomes):
		f.finish(f.mark(a), outcomes[n], withNext(onejob.NextNowhere), price)
	case n == len(outcomes):
		f.mark(a)
	case n == len(outcomes)+1:
		f.cancel(a.JobID) // never marked: it costs nothing
	default: // stays in starting
	}
	f.advance(time.Duration(random.IntN(3)) * time.Second)
}

func costsByHand(jobs []onejob.Job, by onejob.CostGroup) []onejob.CostRow {
	sums, more := map[onejob.CostCursor]*onejob.CostRow{}, map[string]bool{}
	for i := range jobs {
		for k := range jobs[i].Attempts {
			a := &jobs[i].Attempts[k]
			key := map[onejob.CostGroup]string{
				onejob.CostByOwner: jobs[i].Owner, onejob.CostByKind: jobs[i].Kind,
				onejob.CostByTarget: a.Target, onejob.CostByDay: a.StartedAt.UTC().Format(time.DateOnly),
			}[by]
			at := onejob.CostCursor{Key: key, Currency: a.Currency}
			if sums[at] == nil {
				sums[at] = &onejob.CostRow{Key: key, Currency: a.Currency}
			}
			sums[at].Attempts++
			sums[at].Micros += a.CostMicros
			if a.MayCostMore() {
				sums[at].Unpriced++
				more[key] = true
			}
		}
	}
	var rows []onejob.CostRow
	for _, row := range slices.SortedFunc(maps.Values(sums), func(a, b *onejob.CostRow) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Currency, b.Currency))
	}) {
		row.AtLeast = more[row.Key]
		if row.Currency != "" || row.Unpriced > 0 {
			rows = append(rows, *row)
		}
	}
	return rows
}

func testCostAtLeast(f *fixture) {
	f.finish(f.running("k1"), onejob.OutcomeSucceeded, priced(5, "EUR"))
	f.finish(f.running("k2"), onejob.OutcomeRefused)
	f.wantCosts(onejob.CostSumParams{}, onejob.CostRow{Key: owner, Currency: "EUR", Micros: 5, Attempts: 1})
	a := f.running("k3")
	f.wantCosts(onejob.CostSumParams{},
		onejob.CostRow{Key: owner, AtLeast: true, Attempts: 2, Unpriced: 1}, // beside the refused one
		onejob.CostRow{Key: owner, Currency: "EUR", Micros: 5, AtLeast: true, Attempts: 1},
	)
	f.finish(a, onejob.OutcomeExecutedFailed, priced(7, "EUR"))
	f.wantCosts(onejob.CostSumParams{}, onejob.CostRow{Key: owner, Currency: "EUR", Micros: 12, Attempts: 2})
	f.finish(f.running("k4"), onejob.OutcomeSucceeded)
	if rows := f.sum(onejob.CostSumParams{}); len(rows) != 2 || !rows[0].AtLeast || rows[0].Unpriced != 1 || !rows[1].AtLeast {
		f.Errorf("with a success that told no price: %+v; want at least", rows)
	}
}

func testCostFilters(f *fixture) {
	var started []time.Time
	for i, of := range []string{owner, "bob", owner} {
		a := f.running(fmt.Sprint("k", i), withOwner(of), func(p *onejob.JobCreateParams) { p.Kind = []string{"charge", "draw"}[i%2] })
		f.finish(a, onejob.OutcomeSucceeded, priced(int64(1+i), "EUR"))
		started = append(started, a.StartedAt)
		f.advance(time.Hour)
	}
	row := func(key string, micros, attempts int64) onejob.CostRow {
		return onejob.CostRow{Key: key, Currency: "EUR", Micros: micros, Attempts: attempts}
	}
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByOwner, Limit: 1}, row(owner, 4, 2), row("bob", 2, 1))
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByKind}, row("charge", 4, 2), row("draw", 2, 1))
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByTarget}, row("a", 6, 3))
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByTarget, Owner: owner}, row("a", 4, 2))
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByOwner, Kind: "draw"}, row("bob", 2, 1))
	f.wantCosts(onejob.CostSumParams{By: onejob.CostByOwner, Target: "b"})
	f.wantCosts(onejob.CostSumParams{Owner: "bob", Kind: "charge"})
	f.wantCosts(onejob.CostSumParams{From: started[0], To: started[1]}, row(owner, 1, 1))
	f.wantCosts(onejob.CostSumParams{To: started[0]})
	f.wantCosts(onejob.CostSumParams{From: started[1]}, row(owner, 3, 1), row("bob", 2, 1))
}

func testCostDay(f *fixture) {
	want := map[string]int64{}
	for i := range 4 {
		a := f.running(fmt.Sprint("k", i))
		f.finish(a, onejob.OutcomeSucceeded, priced(1, "EUR"))
		want[a.StartedAt.UTC().Format(time.DateOnly)]++
		f.advance(9 * time.Hour)
	}
	got := map[string]int64{}
	for _, row := range f.sum(onejob.CostSumParams{By: onejob.CostByDay}) {
		got[row.Key] = row.Micros
	}
	if !reflect.DeepEqual(got, want) {
		f.Errorf("by day: %v; want %v", got, want)
	}
}

// testCostLargest is what a worker could say to make every sum an error.
func testCostLargest(f *fixture) {
	var id string
	for i := range 3 {
		a := f.running(fmt.Sprint("k", i))
		f.finish(a, onejob.OutcomeSucceeded, priced(math.MaxInt64, "EUR"))
		id = a.JobID
	}
	f.wantCosts(onejob.CostSumParams{}, onejob.CostRow{Key: owner, Currency: "EUR", Micros: math.MaxInt64, Attempts: 3})
	if costs := f.get(id).Costs(); len(costs) != 1 || costs[0].Micros != math.MaxInt64 {
		f.Errorf("the job cost %+v; want the amount as it was told", costs)
	}
}

func testCostNothing(f *fixture) {
	f.wantCosts(onejob.CostSumParams{})
	f.create("k1")
	f.wantCosts(onejob.CostSumParams{})
	f.wantCosts(onejob.CostSumParams{Owner: "' OR 1 = 1 --"})
}

func (f *fixture) wantJobCost(id string, micros int64, atLeast bool) {
	f.Helper()
	want := []onejob.Cost{{Currency: "EUR", Micros: micros, AtLeast: atLeast}}
	if got := f.get(id).Costs(); !reflect.DeepEqual(got, want) {
		f.Errorf("the job cost %+v; want %+v", got, want)
	}
}

func testCostKept(f *fixture) {
	for _, outcome := range []onejob.Outcome{
		onejob.OutcomeRefused, onejob.OutcomeExecutedFailed, onejob.OutcomeContractViolation, onejob.OutcomeSucceeded,
		onejob.OutcomeUnknown, onejob.OutcomeResultLost,
	} {
		a := f.running(string(outcome))
		r := f.finish(a, outcome, withCost(7), withNext(onejob.NextNowhere))
		f.wantJobCost(a.JobID, 7, r.State == onejob.AttemptUnknown)
	}
	cancelled := f.running("cancelled")
	f.cancel(cancelled.JobID)
	f.finish(cancelled, onejob.OutcomeCancelled, withCost(7))
	f.wantJobCost(cancelled.JobID, 7, false)
}

// What was given up while it was at work may be charged; what never left is not.
func testCostGivenUp(f *fixture) {
	winner := f.running("k1", racing(2, "a", "b"))
	left := f.mark(f.start(onejob.AttemptStartParams{JobID: winner.JobID, Lane: 1, StartParams: claimer()}))
	f.finish(left, onejob.OutcomeCancelled, withNext(onejob.NextNowhere))
	f.finish(winner, onejob.OutcomeSucceeded, withCost(7))
	f.wantJobCost(winner.JobID, 7, true)
	if rows := f.sum(onejob.CostSumParams{}); len(rows) != 2 || rows[0].Unpriced != 1 || !rows[1].AtLeast {
		f.Errorf("the sum is %+v; want it to be at least that", rows)
	}
}

func testCostProbe(f *fixture) {
	told := func(p *onejob.ProbeRecordParams) { p.CostMicros, p.Currency = 9, "EUR" }
	for _, outcome := range []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled} {
		for _, method := range onejob.ProbeMethods() {
			a := f.unknown(string(outcome) + string(method))
			f.probe(answer(a, outcome, told, func(p *onejob.ProbeRecordParams) { p.Method = method }))
			if got := f.attempt(a.ID); got.CostMicros != 9 || got.Currency != "EUR" {
				f.Errorf("a %s that found %s keeps %d %s; want 9 EUR", method, outcome, got.CostMicros, got.Currency)
			}
			f.advance(time.Hour)
			for _, c := range f.claim().Claimed { // what may go on is out of the way
				f.finish(f.mark(c.Attempt), onejob.OutcomeSucceeded, withCost(1))
			}
		}
	}
	// What was told before stays when the probe tells no price.
	a := f.running("before")
	f.finish(a, onejob.OutcomeUnknown, withCost(7))
	f.probe(answer(a, onejob.OutcomeSucceeded))
	f.wantJobCost(a.JobID, 7, false)
}

func testCostLate(f *fixture) {
	a := f.ruledOut("k1")
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded, withCost(1))
	f.finish(a, onejob.OutcomeSucceeded, withCost(10))
	f.wantJobCost(a.JobID, 11, false)

	b := f.absentAfterQuarantine("k2")
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded, withCost(2))
	f.probe(answer(b, onejob.OutcomeSucceeded, func(p *onejob.ProbeRecordParams) { p.CostMicros, p.Currency = 20, "EUR" }))
	f.wantJobCost(b.JobID, 22, false)
	f.wantCosts(onejob.CostSumParams{}, onejob.CostRow{Key: owner, Currency: "EUR", Micros: 33, Attempts: 4})
}
