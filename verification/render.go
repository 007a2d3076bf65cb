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
	if v.Target.PriceFunc == nil {
		s.Notes = append(slices.Clone(s.Notes), "the target has no price: max_spend_usd cannot be kept beforehand, max_calls is")
	}
	v.report.add(s)
	return nil
}

// render is S1: every case as the target is sent it, checked. Nothing is called.
func (v *verification) render(context.Context) *ending {
	s := StageReport{Stage: StageRender, Name: "render", Verdict: contract.VerdictPass}
	v.rendered = make([]rendering, len(v.Contract.CaseList))
	largest, assumed := 0, []string{}
	for i := range v.Contract.CaseList {
		c := &v.Contract.CaseList[i]
		if v.Contract.Prompt == nil {
			v.rendered[i].bytes = len(c.Input)
			continue
		}
		r := v.checker.CheckRender(v.Target.rendering(), c.Input)
		if f := failureOf(r.Findings); f != nil {
			detail := fmt.Sprintf("case %s: %s: %s", c.ID, f.Check, f.Detail)
			v.failed(s, detail)
			return refused(reasonOf(f), detail)
		}
		v.rendered[i].bytes = len(r.Rendered.Body)
		largest = max(largest, len(r.Rendered.Body))
		for _, f := range r.Findings {
			if f.Verdict == contract.VerdictAssumed && !slices.Contains(assumed, f.Check) {
				assumed = append(assumed, f.Check)
			}
		}
	}
	s.Text = fmt.Sprintf("%d/%d; largest request %s bytes", len(v.rendered), len(v.rendered), thousands(largest))
	if len(assumed) > 0 {
		s.Notes = append(s.Notes, "ASSUMED: "+strings.Join(assumed, ", "))
	}
	v.report.add(s)
	return nil
}

// rendering is the target as its rendering is checked.
func (t *Target) rendering() contract.RenderTarget {
	r := contract.RenderTarget{Tokens: t.Tokens, ChatFunc: t.ChatFunc, ContextTokens: t.ContextTokens}
	r.Prompter, _ = t.Provider.(onejob.Prompter)
	r.Counter, _ = t.Provider.(onejob.TokenCounter)
	return r
}

// failureOf is the first check that failed. Nil: none did.
func failureOf(findings []contract.RenderFinding) *contract.RenderFinding {
	for i := range findings {
		if findings[i].Verdict == contract.VerdictFail {
			return &findings[i]
		}
	}
	return nil
}

// reasonOf is the slug of a check that failed.
func reasonOf(f *contract.RenderFinding) string {
	if f.Check == contract.RenderContext {
		return onejob.GateContextTooLarge
	}
	return f.Check
}

// maxCounted bounds how many cases the target is asked to count: the longest.
const maxCounted = 200

// errNoCount : the target cannot be asked.
var errNoCount = errors.New("the target cannot be asked for counts")

// count is S2: what the target itself counts. It is no execution.
func (v *verification) count(ctx context.Context) *ending {
	s := StageReport{Stage: StageCount, Name: "count", Verdict: VerdictSkipped, Text: errNoCount.Error() + "; that the context has room is ASSUMED"}
	if v.Target.rendering().Counter == nil || v.Contract.Prompt == nil {
		v.report.add(s)
		return nil
	}
	err := v.countAll(ctx)
	var failed *countError
	switch {
	case errors.As(err, &failed):
		v.failed(s, failed.detail)
		return refused(failed.reason, failed.detail)
	case errors.Is(err, errors.ErrUnsupported):
		v.report.add(s)
		return nil
	case ctx.Err() != nil:
		return broken("cancelled", ctx.Err())
	case err != nil:
		s.Verdict, s.Text = contract.VerdictInconclusive, "the target could not be asked for counts: "+err.Error()
		v.report.add(s)
		return &ending{state: onejob.RunInconclusive, reason: "unreachable", detail: s.Text, err: fmt.Errorf("%w: %s", ErrUnreachable, s.Text)}
	}
	return v.room(s)
}

// countAll asks about the longest cases, a few at a time.
func (v *verification) countAll(ctx context.Context) error {
	order := v.longest()
	order = order[:min(len(order), maxCounted)]
	var mu sync.Mutex
	var failure error
	inParallel(v.opts.Parallel, order, func(i int) bool {
		n, err := v.countOne(ctx, i)
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

func (v *verification) countOne(ctx context.Context, i int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, v.opts.CallTimeout)
	defer cancel()
	c := &v.Contract.CaseList[i]
	r := v.checker.CheckRender(v.Target.rendering(), c.Input)
	offline := len(r.Findings)
	switch err := v.checker.CheckCount(ctx, v.Target.rendering(), r); {
	case err != nil:
		return 0, err
	case !r.Remote:
		return 0, errors.ErrUnsupported
	}
	if f := failureOf(r.Findings[offline:]); f != nil {
		return 0, &countError{reasonOf(f), fmt.Sprintf("case %s: %s: %s", c.ID, f.Check, f.Detail)}
	}
	return r.Tokens, nil
}

// countError is a check of S2 that failed.
type countError struct{ reason, detail string }

func (e *countError) Error() string { return e.detail }

// longest lists the cases by the length of their requests, longest first.
func (v *verification) longest() []int {
	order := make([]int, len(v.rendered))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return v.rendered[b].bytes - v.rendered[a].bytes })
	return order
}

// room says how much of the target's context the longest prompt takes.
func (v *verification) room(s StageReport) *ending {
	largest := 0
	for _, r := range v.rendered {
		largest = max(largest, r.counted)
	}
	s.Verdict, s.Text = contract.VerdictPass, fmt.Sprintf("largest %s tokens", thousands(largest))
	if window := v.Target.ContextTokens; window > 0 {
		s.Text += fmt.Sprintf(" (%.1f %% of %s)", 100*float64(largest)/float64(window), thousands(window))
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
