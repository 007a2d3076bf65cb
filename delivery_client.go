package onejob

import (
	"context"
	"errors"
)

// deliveries returns the store's outbox.
func (c *Client) deliveries() (DeliveryStore, error) {
	if d, ok := c.store.(DeliveryStore); ok {
		return d, nil
	}
	return nil, &Error{Code: CodeInternal, Err: errors.New("the store keeps no deliveries")}
}

// ErrorOfNoDelivery is the one answer for a delivery that does not exist and for
// another owner's.
func ErrorOfNoDelivery(id string) error {
	return &Error{Code: CodeNotFound, Message: "there is no delivery \"" + id + "\""}
}

// Deliveries returns one page of webhooks, newest first, without bodies. An empty
// Owner lists everybody's.
func (c *Client) Deliveries(ctx context.Context, p DeliveryListParams) (DeliveryPage, error) {
	store, err := c.deliveries()
	if err != nil {
		return DeliveryPage{}, err
	}
	page, err := store.DeliveryList(ctx, p)
	return page, Unavailable(err)
}

// Delivery returns one webhook, or [ErrNotFound].
func (c *Client) Delivery(ctx context.Context, owner, id string) (Delivery, error) {
	page, err := c.Deliveries(ctx, DeliveryListParams{ID: id, Owner: owner, Limit: 1})
	if err == nil && len(page.Deliveries) == 0 {
		err = ErrorOfNoDelivery(id)
	}
	if err != nil {
		return Delivery{}, err
	}
	return page.Deliveries[0], nil
}

// ResendDelivery makes a webhook due now, under the id that it had, whatever became
// of it before. It returns [ErrNotFound].
func (c *Client) ResendDelivery(ctx context.Context, p DeliveryResendParams) (Delivery, error) {
	store, err := c.deliveries()
	if err != nil {
		return Delivery{}, err
	}
	d, err := store.DeliveryResend(ctx, p)
	if err == nil {
		c.opts.Signals.JobChanged(d.JobID)
	}
	return d, Unavailable(err)
}

// EnableEndpoint lets an endpoint be sent webhooks again. It is safe to repeat.
func (c *Client) EnableEndpoint(ctx context.Context, p EndpointEnableParams) error {
	store, err := c.deliveries()
	if err != nil {
		return err
	}
	return Unavailable(store.EndpointEnable(ctx, p))
}

// DisabledEndpoints lists the endpoints that are sent nothing, with the reasons.
func (c *Client) DisabledEndpoints(ctx context.Context) ([]DisabledEndpoint, error) {
	store, err := c.deliveries()
	if err != nil {
		return nil, err
	}
	disabled, err := store.EndpointDisabled(ctx)
	return disabled, Unavailable(err)
}
