package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// DeliveryList reads one page, newest first.
func (s *Store) DeliveryList(ctx context.Context, p onejob.DeliveryListParams) (page onejob.DeliveryPage, err error) {
	wanted, ok := deliveriesWanted(&p)
	if !ok {
		return page, nil
	}
	limit := pageOf(p.Limit)
	err = s.read(ctx, func(x *tx) (err error) {
		page.Deliveries, err = listed(x, list[onejob.Delivery]{
			sql: `SELECT` + deliveryColumns + deliveryTables, order: ` ORDER BY d.created_at DESC, d.id DESC`, scan: scanDelivery,
			after: func(last *onejob.Delivery, w *where) { w.and(`(d.created_at, d.id) < (?, ?)`, last.CreatedAt, last.ID) },
		}, wanted, limit+1)
		return err
	})
	if page.More = len(page.Deliveries) > limit; page.More {
		page.Deliveries = page.Deliveries[:limit]
	}
	return page, err
}

// deliveriesWanted reports false when no delivery can be meant.
func deliveriesWanted(p *onejob.DeliveryListParams) (w where, ok bool) {
	if p.ID != "" {
		part, isID := onejob.PartOfDeliveryID(p.ID)
		if !isID {
			return w, false
		}
		w.and(`d.part = ? AND d.id = ?`, int(part), p.ID)
	}
	if p.JobID != "" {
		part, isID := onejob.PartOfID(p.JobID)
		if !isID {
			return w, false
		}
		w.and(`d.part = ? AND d.job_id = ?`, int(part), p.JobID)
	}
	if p.Owner != "" {
		w.and(`j.owner = ?`, p.Owner)
	}
	if p.Endpoint != "" {
		w.and(`d.endpoint = ?`, p.Endpoint)
	}
	if len(p.States) > 0 {
		w.and(`d.state ` + in(known(p.States, onejob.DeliveryStates())))
	}
	if b := p.Before; b != nil {
		w.and(`(d.created_at, d.id) < (?, ?)`, millis(b.CreatedAt), b.ID)
	}
	return w, true
}
