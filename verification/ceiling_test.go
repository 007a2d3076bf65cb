package verification_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/verification"
)

func TestAnAnswerFromACacheIsAFailedSample(t *testing.T) {
	t.Parallel()
	t.Run("WithinARun", func(t *testing.T) {
		t.Parallel()
		for _, options := range []verification.Options{{}, {Recorder: recorder(t)}} {
			c := contractOf(t, 12, "0.7", "repeats: 1", "repeats: 2")
			r := run(t, verification.Params{Contract: c, Target: targetAt(t, liar(t, "id_repeated").URL(), chat)}, options)
			if r.State != onejob.RunRefused || r.Reason != "structure" || !strings.Contains(table(t, r), " cached)") {
				t.Errorf("%s by %s:\n%s", r.State, r.Reason, table(t, r))
			}
		}
	})
	t.Run("BetweenRuns", func(t *testing.T) {
		t.Parallel()
		store := recorder(t)
		p := verification.Params{Contract: contractOf(t, 12, "0.7"), Target: indoor(t, sim.Mind{})}
		var results []verification.Result
		inner := p.Target.Provider.(*indoors)
		for range 2 {
			p.Target.Provider = &numbered{inner, &atomic.Int64{}}
			results = append(results, run(t, p, verification.Options{Recorder: store}))
		}
		first, second := results[0], results[1]
		if first.State != onejob.RunCertified || second.State != onejob.RunRefused || !strings.Contains(second.Detail, "cache") {
			t.Errorf("%s (%s), then %s by %s: %s", first.State, first.Detail, second.State, second.Reason, second.Detail)
		}
	})
}

// numbered gives its answers ids that begin anew with it.
type numbered struct {
	*indoors
	answers *atomic.Int64
}

func (p *numbered) ReadOutput(body []byte) (onejob.Output, error) {
	o, err := p.indoors.ReadOutput(body)
	o.ResponseID = fmt.Sprintf("answer-%d", p.answers.Add(1))
	return o, err
}

func TestCeilingsAreKeptToTheCallAndTheMicro(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	for _, c := range []struct {
		calls  int
		micros int64
		reason string
	}{{calls: 25, reason: "max_calls"}, {micros: 20_000, reason: "max_spend"}, {micros: 1, reason: "max_spend"}} {
		for _, parallel := range []int{1, 8} {
			before := len(srv.Ledger())
			r := run(t, verification.Params{
				Contract: contractOf(t, 60, "0.95"), Target: targetAt(t, srv.URL(), chat), MaxCalls: c.calls, MaxSpendMicros: c.micros, UpTo: verification.StageOperation,
			}, verification.Options{Parallel: parallel})
			made := 0
			for _, e := range srv.Ledger()[before:] {
				if strings.HasSuffix(e.Path, "/chat/completions") {
					made++
				}
			}
			if r.State != onejob.RunInconclusive || r.Reason != c.reason || made != r.Report.Calls {
				t.Errorf("%+v: %s by %s, %d calls made and %d told", c, r.State, r.Reason, made, r.Report.Calls)
			}
			if c.calls > 0 && made != c.calls {
				t.Errorf("%d calls were made of %d allowed", made, c.calls)
			}
			if c.micros > 0 && (r.Report.SpendMicros > c.micros || c.micros > 1000 && r.Report.SpendMicros < c.micros*3/4) {
				t.Errorf("%d micros were spent of %d allowed", r.Report.SpendMicros, c.micros)
			}
		}
	}
}
