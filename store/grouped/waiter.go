package grouped

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// waitersOf returns a store's own waiters. Who keeps them waiting asks for all at
// once already, and a retry is too seldom to be gathered; only how waitings end is.
func waitersOf(store onejob.Store) onejob.WaiterStore {
	if w, ok := store.(onejob.WaiterStore); ok {
		return w
	}
	return noWaiters{}
}

// noWaiters stands in for a store that knows none: nobody waits, and nothing is taken
// over.
type noWaiters struct{}

func (noWaiters) WaiterTake(context.Context, onejob.WaiterTakeParams) (onejob.JobRef, bool, error) {
	return onejob.JobRef{}, false, nil
}

func (noWaiters) WaiterRenew(_ context.Context, params []onejob.WaiterRenewParams) ([]bool, error) {
	return make([]bool, len(params)), nil
}

func (noWaiters) WaiterEnd(_ context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	return make([]bool, len(params)), nil
}
