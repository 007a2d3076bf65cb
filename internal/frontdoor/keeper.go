package frontdoor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// keeper keeps the leases of callers who wait, of all of them at once. It works while
// there are any.
type keeper struct {
	client *onejob.Client
	lease  time.Duration

	mu      sync.Mutex
	waiting map[onejob.Waiter]struct{}
	working bool
}

// keptPerLease is how often a lease is renewed while it lasts.
const keptPerLease = 3

func newKeeper(client *onejob.Client, lease time.Duration) *keeper {
	return &keeper{client: client, lease: lease, waiting: map[onejob.Waiter]struct{}{}}
}

func (k *keeper) add(w onejob.Waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[w] = struct{}{}
	if !k.working {
		k.working = true
		go k.keep()
	}
}

func (k *keeper) remove(w onejob.Waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.waiting, w)
}

func (k *keeper) keep() {
	tick := time.NewTicker(k.lease / keptPerLease)
	defer tick.Stop()
	for range tick.C {
		waiters := k.list()
		if len(waiters) == 0 {
			return
		}
		k.renew(waiters)
	}
}

// list returns who waits. With nobody the work is over.
func (k *keeper) list() []onejob.Waiter {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.working = len(k.waiting) > 0
	return slices.Collect(maps.Keys(k.waiting))
}

// keptAtOnce is how many leases are renewed in one transaction.
const keptAtOnce = 500

// renew has a while for it: what failed is tried again with the next.
func (k *keeper) renew(waiters []onejob.Waiter) {
	ctx, cancel := context.WithTimeout(context.Background(), k.lease/keptPerLease)
	defer cancel()
	for some := range slices.Chunk(waiters, keptAtOnce) {
		_ = k.client.KeepWaiting(ctx, some, k.lease)
	}
}
