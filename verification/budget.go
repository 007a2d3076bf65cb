package verification

import (
	"errors"
	"sync"
)

// Errors of a budget that is used up.
var (
	errCallsUsedUp = errors.New("max_calls")
	errSpendUsedUp = errors.New("max_spend")
)

// budget keeps calls and spend to their ceilings: what a call may cost at most is set
// aside before it is made.
type budget struct {
	mu       sync.Mutex
	settled  *sync.Cond
	maxCalls int
	maxSpend int64

	calls    int
	spent    int64
	aside    int64 // of calls under way
	underWay int
	highest  int64 // that any call did cost
}

func newBudget(maxCalls int, maxSpend int64) *budget {
	b := &budget{maxCalls: maxCalls, maxSpend: maxSpend}
	b.settled = sync.NewCond(&b.mu)
	return b
}

// take sets aside what a call may cost: worst, or the most that one did cost. While
// calls are under way that may leave more than was thought, it waits for them.
func (b *budget) take(worst int64) (aside int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		aside = max(worst, b.highest)
		switch {
		case b.calls >= b.maxCalls:
			return 0, errCallsUsedUp
		case b.spent+b.aside+aside <= b.maxSpend:
			b.calls++
			b.underWay++
			b.aside += aside
			return aside, nil
		case b.underWay == 0:
			return 0, errSpendUsedUp
		}
		b.settled.Wait()
	}
}

// settle puts what the call did cost in place of what was set aside.
func (b *budget) settle(aside, cost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay--
	b.aside -= aside
	b.spent += cost
	b.highest = max(b.highest, cost)
	b.settled.Broadcast()
}

// used is how many calls were made, and what they cost.
func (b *budget) used() (calls int, micros int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls, b.spent
}
