package verification

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onejob-dev/onejob/contract"
)

// OperationReport is what the calls of the cases took.
type OperationReport struct {
	P50Millis     int64   `json:"p50_ms"`
	P95Millis     int64   `json:"p95_ms"`
	MeanMicros    int64   `json:"mean_cost_micros"`
	HighestMicros int64   `json:"highest_cost_micros"`
	Calls         int     `json:"calls"` // of the run
	InfraErrors   int     `json:"infra_errors"`
	InfraRate     float64 `json:"infra_error_rate"`
}

// operation is S6: what this run's calls of the cases took. Earlier runs have no part in
// it: how fast a target was then says nothing of now.
func (v *verification) operation(context.Context) *ending {
	v.mu.Lock()
	defer v.mu.Unlock()
	terms := v.Contract.Gates.Operation
	o := v.operated()
	s := StageReport{Stage: StageOperation, Name: "operational", Verdict: contract.VerdictPass, Operation: o}
	cost := fmt.Sprintf("%s/call, %s total", dollars(o.MeanMicros), dollars(v.spent()))
	if v.Target.PriceFunc == nil && o.HighestMicros == 0 {
		cost = "what a call costs is not known"
		if terms.MaxCostUSD > 0 {
			s.Notes = append(s.Notes, "ASSUMED: max_cost_usd; the target has no price")
		}
	}
	s.Text = fmt.Sprintf("p50 %s p95 %s; %s; infra errors %d/%d (%.1f %%)",
		seconds(o.P50Millis), seconds(o.P95Millis), cost, o.InfraErrors, o.Calls, 100*o.InfraRate)
	detail := ""
	switch {
	case terms.P95Millis > 0 && o.P95Millis > int64(terms.P95Millis):
		detail = fmt.Sprintf("p95 is %s; the contract takes %s", seconds(o.P95Millis), seconds(int64(terms.P95Millis)))
	case terms.MaxCostUSD > 0 && o.HighestMicros > int64(terms.MaxCostUSD):
		detail = fmt.Sprintf("a call cost %s; the contract takes %s", dollars(o.HighestMicros), dollars(int64(terms.MaxCostUSD)))
	}
	if detail != "" {
		s.Verdict = contract.VerdictFail
		s.Notes = append(s.Notes, detail)
	}
	v.report.add(s)
	if detail != "" {
		return refused("operational", detail)
	}
	return nil
}

// operated sums up. v.mu is held.
func (v *verification) operated() *OperationReport {
	o := &OperationReport{Calls: v.made.calls, InfraErrors: v.made.infra}
	if o.Calls > 0 {
		o.InfraRate = float64(o.InfraErrors) / float64(o.Calls)
	}
	if len(v.spans) == 0 {
		return o
	}
	took := make([]int64, len(v.spans))
	var total int64
	for i, s := range v.spans {
		took[i] = s.took.Milliseconds()
		total += s.cost
		o.HighestMicros = max(o.HighestMicros, s.cost)
	}
	slices.Sort(took)
	o.P50Millis, o.P95Millis = percentile(took, 50), percentile(took, 95)
	o.MeanMicros = total / int64(len(v.spans))
	return o
}

// percentile is the least value that so many of a hundred do not exceed.
func percentile(sorted []int64, percent int) int64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}

func (v *verification) spent() int64 {
	_, micros := v.budget.used()
	return micros
}

func seconds(millis int64) string {
	if millis < 1000 {
		return fmt.Sprintf("%d ms", millis)
	}
	return fmt.Sprintf("%.1f s", (time.Duration(millis) * time.Millisecond).Seconds())
}

// made counts calls of the whole run, the primary's included.
type made struct{ calls, infra int }

func (m *made) add(r *reply) {
	m.calls++
	if r.bearing == bearingNone {
		m.infra++
	}
}
