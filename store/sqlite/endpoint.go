package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// EndpointDisable keeps an endpoint from being sent anything. The first reason stays.
func (s *Store) EndpointDisable(ctx context.Context, id, reason string) error {
	return s.write(ctx, func(x *tx) error {
		_, err := x.exec(`INSERT INTO webhook_endpoints (id, disabled_at, reason) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`, id, x.now, reason)
		return err
	})
}

// EndpointEnable lets an endpoint be sent webhooks again.
func (s *Store) EndpointEnable(ctx context.Context, p onejob.EndpointEnableParams) error {
	return s.write(ctx, func(x *tx) error {
		var entries []onejob.AuditEntry // of one that was disabled
		err := x.query(`DELETE FROM webhook_endpoints WHERE id = ? RETURNING reason`, func(r *row) error {
			entries = append(entries, p.AuditOf(r.String()))
			return nil
		}, p.ID)
		for i := 0; err == nil && i < len(entries); i++ {
			err = x.audit(entries[i])
		}
		return err
	})
}

// EndpointDisabled lists the endpoints that are disabled, by id.
func (s *Store) EndpointDisabled(ctx context.Context) (disabled []onejob.DisabledEndpoint, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT id, reason, disabled_at FROM webhook_endpoints ORDER BY id`, func(r *row) error {
			disabled = append(disabled, onejob.DisabledEndpoint{ID: r.String(), Reason: r.String(), Since: r.Time()})
			return nil
		})
	})
	return disabled, err
}
