package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// The first reason stays.
const sqlEndpointDisable = `
INSERT INTO webhook_endpoints (id, disabled_at, reason) VALUES ($1, onejob_now(), $2) ON CONFLICT (id) DO NOTHING`

// EndpointDisable implements [onejob.DeliveryStore].
func (s *Store) EndpointDisable(ctx context.Context, id, reason string) error {
	_, err := s.pool.Exec(ctx, sqlEndpointDisable, clean(id), clean(reason))
	return onejob.Unavailable(err)
}

// Zero rows: it is not disabled.
const sqlEndpointEnable = `DELETE FROM webhook_endpoints WHERE id = $1 RETURNING reason`

// EndpointEnable implements [onejob.DeliveryStore].
func (s *Store) EndpointEnable(ctx context.Context, p onejob.EndpointEnableParams) error {
	return s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		b := t.batch()
		b.Queue(sqlEndpointEnable, clean(p.ID)).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				var reason string
				err := row.Scan(&reason)
				entries = append(entries, p.AuditOf(reason))
				return err
			})
		})
		return entries, t.send(ctx, b)
	})
}

const sqlEndpointsDisabled = `SELECT id, reason, disabled_at FROM webhook_endpoints ORDER BY id`

// EndpointDisabled implements [onejob.DeliveryStore].
func (s *Store) EndpointDisabled(ctx context.Context) ([]onejob.DisabledEndpoint, error) {
	rows, err := s.pool.Query(ctx, sqlEndpointsDisabled)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	disabled := []onejob.DisabledEndpoint{}
	err = forEach(rows, func(row pgx.Row) error {
		var d onejob.DisabledEndpoint
		err := row.Scan(&d.ID, &d.Reason, &d.Since)
		d.Since = d.Since.UTC()
		disabled = append(disabled, d)
		return err
	})
	return disabled, onejob.Unavailable(err)
}
