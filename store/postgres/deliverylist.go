package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// DeliveryList implements [onejob.DeliveryStore].
func (s *Store) DeliveryList(ctx context.Context, p onejob.DeliveryListParams) (onejob.DeliveryPage, error) {
	page := onejob.DeliveryPage{Deliveries: []onejob.Delivery{}}
	f, ok := deliveryFilter(p)
	if !ok {
		return page, nil
	}
	limit := pageOf(p.Limit)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("SELECT %s FROM deliveries d JOIN jobs j ON j.part = d.part AND j.id = d.job_id%s ORDER BY d.created_at DESC, d.id DESC LIMIT %d",
		deliveryColumns, f.sql(), limit+1), f.args...)
	if err != nil {
		return page, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		if page.More = len(page.Deliveries) == limit; page.More {
			return nil
		}
		d, err := scanDelivery(row)
		page.Deliveries = append(page.Deliveries, d)
		return err
	})
	return page, onejob.Unavailable(err)
}

// deliveryFilter reports false for what is in no row.
func deliveryFilter(p onejob.DeliveryListParams) (*filter, bool) {
	f := &filter{}
	if !storable(p.Owner, p.Endpoint) {
		return nil, false
	}
	if p.ID != "" {
		part, ok := onejob.PartOfDeliveryID(p.ID)
		if !ok {
			return nil, false
		}
		f.where("d.part = $%d AND d.id = $%d", int16(part), p.ID)
	}
	if p.JobID != "" {
		ref, ok := refOf(p.JobID)
		if !ok {
			return nil, false
		}
		f.where("d.part = $%d AND d.job_id = $%d", int16(ref.Part), ref.ID)
	}
	if p.Owner != "" {
		f.where("j.owner = $%d", p.Owner)
	}
	if p.Endpoint != "" {
		f.where("d.endpoint = $%d", p.Endpoint)
	}
	if len(p.States) > 0 {
		f.where("d.state IN (" + literals(p.States, onejob.DeliveryStates()) + ")")
	}
	if p.Before != nil {
		f.where("(d.created_at, d.id) < ($%d, $%d)", stamp(p.Before.CreatedAt), clean(p.Before.ID))
	}
	return f, true
}
