package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/onejob-dev/onejob"
)

// EndpointDisable keeps an endpoint from being sent anything. The first reason stays.
func (s *Store) EndpointDisable(ctx context.Context, id, reason string) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, disabled := s.disabled[id]; !disabled {
		s.disabled[id] = onejob.DisabledEndpoint{ID: id, Reason: reason, Since: now}
	}
	return nil
}

// EndpointEnable lets an endpoint be sent webhooks again.
func (s *Store) EndpointEnable(ctx context.Context, p onejob.EndpointEnableParams) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if d, disabled := s.disabled[p.ID]; disabled {
		delete(s.disabled, p.ID)
		s.audit(p.AuditOf(d.Reason), now)
	}
	return nil
}

// EndpointDisabled lists the endpoints that are disabled, by id.
func (s *Store) EndpointDisabled(ctx context.Context) ([]onejob.DisabledEndpoint, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var disabled []onejob.DisabledEndpoint
	for _, d := range s.disabled {
		disabled = append(disabled, d)
	}
	slices.SortFunc(disabled, func(a, b onejob.DisabledEndpoint) int { return cmp.Compare(a.ID, b.ID) })
	return disabled, nil
}
