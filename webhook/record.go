package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	// recordTimeout bounds how long the store may take to write tries down.
	recordTimeout = 10 * time.Second
	// recordBatch bounds how many are written down in one transaction.
	recordBatch = 32
)

// recorder writes tries down. Those that end while a transaction is under way share
// the next one. It starts no goroutine: whoever finds nobody writing writes.
type recorder struct {
	store Store

	mu      sync.Mutex
	queue   []*written
	writing bool
}

// written is one try on its way to the store.
type written struct {
	params onejob.DeliveryRecordParams
	err    error
	done   chan struct{}
}

// record returns once the try was written down, or why it was not.
func (r *recorder) record(ctx context.Context, params onejob.DeliveryRecordParams) error {
	w := &written{params: params, done: make(chan struct{})}
	r.mu.Lock()
	r.queue = append(r.queue, w)
	leads := !r.writing
	r.writing = true
	r.mu.Unlock()
	if leads {
		r.write(ctx)
	}
	<-w.done // within a few transactions, each of them bounded
	return w.err
}

// write empties the queue.
func (r *recorder) write(ctx context.Context) {
	for {
		batch := r.next()
		if len(batch) == 0 {
			return
		}
		params := make([]onejob.DeliveryRecordParams, len(batch))
		for i, w := range batch {
			params[i] = w.params
		}
		errs, err := r.send(ctx, params)
		for i, w := range batch {
			if w.err = err; err == nil {
				w.err = errs[i]
			}
			close(w.done)
		}
	}
}

func (r *recorder) next() []*written {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.queue), recordBatch)
	batch := r.queue[:n:n]
	r.queue = r.queue[n:]
	r.writing = n > 0
	return batch
}

func (r *recorder) send(ctx context.Context, params []onejob.DeliveryRecordParams) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	errs, err := r.store.DeliveryRecord(ctx, params)
	if err == nil && len(errs) != len(params) {
		err = errors.New("the store did not answer for every try")
	}
	return errs, err
}
