package onejob

import (
	"context"
	"math"
	"time"
)

// CostStore sums what attempts cost. Every store implements it.
type CostStore interface {
	// CostSum sums over attempts, losers and failures included. It reads every
	// attempt that the params pick.
	CostSum(ctx context.Context, params CostSumParams) (CostPage, error)
}

// CostSumParams says what to sum, and by what to group it. Zero members do not
// filter.
type CostSumParams struct {
	Owner  string
	Kind   string
	Target string
	// From and To are when attempts started: From is in, To is out.
	From, To time.Time

	By    CostGroup   // empty: [CostByOwner]
	After *CostCursor // the last row of the page before
	Limit int         // 1 to 200
}

// CostGroup is what rows of money are grouped by.
type CostGroup string

// What rows of money are grouped by.
const (
	CostByOwner  CostGroup = "owner"
	CostByKind   CostGroup = "kind"
	CostByTarget CostGroup = "target"
	CostByDay    CostGroup = "day" // on which attempts started, in UTC
)

// CostGroups lists what rows of money can be grouped by.
func CostGroups() []CostGroup { return []CostGroup{CostByOwner, CostByKind, CostByTarget, CostByDay} }

// CostRow is a sum of money in one currency.
type CostRow struct {
	Key      string // the owner, kind, target or day (as in 2026-03-31)
	Currency string // empty: of attempts that told no price and may have one
	Micros   int64
	// AtLeast says that some attempt under Key may be charged beyond what it told, in
	// whatever currency: see [Attempt.MayCostMore].
	AtLeast  bool
	Attempts int64 // that are summed here
	Unpriced int64 // of them, those that may be charged beyond what they told
}

// CostCursor is a place in a list of rows.
type CostCursor struct{ Key, Currency string }

// CostPage is one page of rows, by key and currency. More is set when others follow.
type CostPage struct {
	Rows []CostRow
	More bool
}

// Costs sums what attempts cost. An empty Owner sums over everybody's.
func (c *Client) Costs(ctx context.Context, p CostSumParams) (CostPage, error) {
	store, ok := c.store.(CostStore)
	if !ok {
		return CostPage{}, &Error{Code: CodeInternal, Message: "the store sums no costs"}
	}
	page, err := store.CostSum(ctx, p)
	return page, Unavailable(err)
}

// AddMicros adds amounts of money. A sum that no int64 holds stays at the largest
// or smallest that one does.
func AddMicros(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// MicrosOf returns units and millionths of a currency as one amount, as far as an
// int64 holds it.
func MicrosOf(units, millionths int64) int64 {
	const unit = 1_000_000
	units, millionths = AddMicros(units, millionths/unit), millionths%unit
	switch { // of one sign, so that neither takes back what the other says
	case units > 0 && millionths < 0:
		units, millionths = units-1, millionths+unit
	case units < 0 && millionths > 0:
		units, millionths = units+1, millionths-unit
	}
	switch {
	case units > math.MaxInt64/unit:
		return math.MaxInt64
	case units < math.MinInt64/unit:
		return math.MinInt64
	}
	return AddMicros(units*unit, millionths)
}

// MayCostMore reports whether the attempt may be charged beyond what it told: it
// is in doubt after its mark, or was executed, or given up after it was sent, and told
// no price.
func (a *Attempt) MayCostMore() bool {
	switch a.State {
	case AttemptRunning, AttemptUnknown:
		return true
	case AttemptSucceeded, AttemptDiscarded:
		return a.Currency == ""
	case AttemptFailed:
		return a.Currency == "" && !a.Outcome.Proven()
	case AttemptCancelled:
		return a.Currency == "" && a.Phase != "" && a.Phase != PhaseNotSent
	case AttemptStarting:
	}
	return false
}
