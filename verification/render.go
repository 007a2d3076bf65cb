package verification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// rendering is what is known of a case as the target is sent it.
type rendering struct {
	bytes   int
	counted int // tokens, by the target. Zero: not counted
}

// body is the request of one case at one target.
func (v *verification) body(t *Target, c *contract.Case) (onejob.Rendered, error) {
	if v.Contract.Prompt == nil {
		return onejob.Rendered{Body: c.Input}, nil
	}
	prompt, err := v.checker.Prompt(c.Input)
	if err != nil {
		return onejob.Rendered{}, err
	}
	return t.Provider.(onejob.Prompter).Render(prompt)
}

// lint is S0: what the contract says of itself, and whether the target can carry it.
func (v *verification) lint(context.Context) *ending {
	s := StageReport{Stage: StageLint, Name: "lint", Verdict: contract.VerdictPass, Notes: v.warnings}
	r, err := v.body(&v.Target, &v.Contract.CaseList[0])
	if err != nil {
		reason := "render_failed"
		if errors.Is(err, onejob.ErrParamUnsupported) {
			reason = onejob.GateParamUnsupported
		}
		v.failed(s, err.Error())
		return refused(reason, err.Error())
	}
	v.report.Dropped = r.Dropped
	s.Text = "what is required can be sent"
	if len(r.Dropped) > 0 {
		s.Text += "; tuning dropped on this target: " + strings.Join(r.Dropped, ", ")
	}
	if r.Temperature != nil {
		s.Text += fmt.Sprintf("; temperature %g", *r.Temperature)
	}
	v.report.add(s)
	return nil
}

// render is S1: every case as the target is sent it. Nothing is called.
func (v *verification) render(context.Context) *ending {
	s := StageReport{Stage: StageRender, Name: "render", Verdict: contract.VerdictPass}
	v.rendered = make([]rendering, len(v.Contract.CaseList))
	largest := 0
	for i := range v.Contract.CaseList {
		c := &v.Contract.CaseList[i]
		r, err := v.body(&v.Target, c)
		if err != nil {
			v.failed(s, fmt.Sprintf("case %s: %v", c.ID, err))
			return refused("render", fmt.Sprintf("case %s: %v", c.ID, err))
		}
		v.rendered[i].bytes = len(r.Body)
		largest = max(largest, len(r.Body))
	}
	s.Text = fmt.Sprintf("%d/%d; largest request %s bytes", len(v.rendered), len(v.rendered), thousands(largest))
	v.report.add(s)
	return nil
}

// maxCounted bounds how many cases the target is asked to count: the longest.
const maxCounted = 200

// errNoCount : the target cannot be asked.
var errNoCount = errors.New("the target cannot be asked for counts")

// count is S2: what the target itself counts. It is no execution.
func (v *verification) count(ctx context.Context) *ending {
	s := StageReport{Stage: StageCount, Name: "count", Verdict: VerdictSkipped, Text: errNoCount.Error() + "; that the context has room is ASSUMED"}
	counter, ok := v.Target.Provider.(onejob.TokenCounter)
	if !ok || v.Contract.Prompt == nil {
		v.report.add(s)
		return nil
	}
	err := v.countAll(ctx, counter)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		v.report.add(s)
		return nil
	case ctx.Err() != nil:
		return broken("cancelled", ctx.Err())
	case err != nil:
		s.Verdict, s.Text = contract.VerdictInconclusive, "the target could not be asked for counts"
		v.report.add(s)
		return &ending{state: onejob.RunInconclusive, reason: "unreachable", detail: s.Text, err: fmt.Errorf("%w: %s", ErrUnreachable, s.Text)}
	}
	return v.room(s)
}

// countAll asks about the longest cases, a few at a time.
func (v *verification) countAll(ctx context.Context, counter onejob.TokenCounter) error {
	order := v.longest()
	order = order[:min(len(order), maxCounted)]
	var mu sync.Mutex
	var failure error
	inParallel(v.opts.Parallel, order, func(i int) bool {
		n, err := v.countOne(ctx, counter, i)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && failure == nil {
			failure = err
		}
		v.rendered[i].counted = n
		return failure == nil
	})
	return failure
}

func (v *verification) countOne(ctx context.Context, counter onejob.TokenCounter, i int) (int, error) {
	r, err := v.body(&v.Target, &v.Contract.CaseList[i])
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.opts.CallTimeout)
	defer cancel()
	return counter.CountTokens(ctx, r.Body)
}

// longest lists the cases by the length of their requests, longest first.
func (v *verification) longest() []int {
	order := make([]int, len(v.rendered))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return v.rendered[b].bytes - v.rendered[a].bytes })
	return order
}

// room holds the longest prompt to the target's context.
func (v *verification) room(s StageReport) *ending {
	largest, of := 0, 0
	for i, r := range v.rendered {
		if r.counted > largest {
			largest, of = r.counted, i
		}
	}
	s.Verdict, s.Text = contract.VerdictPass, fmt.Sprintf("largest %s tokens", thousands(largest))
	terms := v.Contract.Render.Context
	if window := v.Target.ContextTokens; window > 0 {
		s.Text += fmt.Sprintf(" (%.1f %% of %s)", 100*float64(largest)/float64(window), thousands(window))
		if float64(largest) > terms.MaxFraction*float64(window) || largest+terms.ReserveOutputTokens > window {
			detail := fmt.Sprintf("case %s has %s tokens; with %s reserved it is more than the context of %s, or than %g of it, has room for",
				v.Contract.CaseList[of].ID, thousands(largest), thousands(terms.ReserveOutputTokens), thousands(window), terms.MaxFraction)
			v.failed(s, detail)
			return refused(onejob.GateContextTooLarge, detail)
		}
	}
	v.report.add(s)
	return nil
}

// countDrift is how far what is billed lies from what was counted.
type countDrift struct {
	most     float64 // as a fraction
	compared int
	beyond   bool // what the contract takes
}

// fewTokens may always be added: an API's own words around a prompt.
const fewTokens = 4

// drifts compares what a call was billed with what the target counted, and reports
// whether it is further off than the contract takes. v.mu is held.
func (v *verification) drifts(i int, billed int) bool {
	counted := v.rendered[i].counted
	if counted <= 0 || billed <= 0 {
		return false
	}
	off := max(billed-counted, counted-billed)
	v.counts.compared++
	v.counts.most = max(v.counts.most, float64(off)/float64(counted))
	drifts := off > fewTokens && float64(off) > v.Contract.Render.CountTolerance.LocalVsRemote*float64(counted)
	v.counts.beyond = v.counts.beyond || drifts
	return drifts
}

// inParallel does something for each item, so many at a time, until one says no.
func inParallel[T any](workers int, items []T, do func(T) bool) {
	var mu sync.Mutex
	next := 0
	take := func() (item T, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(items) {
			return item, false
		}
		next++
		return items[next-1], true
	}
	stop := func() {
		mu.Lock()
		defer mu.Unlock()
		next = len(items)
	}
	var all sync.WaitGroup
	for range min(workers, len(items)) {
		all.Go(func() {
			for item, ok := take(); ok; item, ok = take() {
				if !do(item) {
					stop()
				}
			}
		})
	}
	all.Wait()
}
