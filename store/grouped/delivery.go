package grouped

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// deliveriesOf returns a store's own outbox. Its sender records in batches already.
func deliveriesOf(store onejob.Store) onejob.DeliveryStore {
	if d, ok := store.(onejob.DeliveryStore); ok {
		return d
	}
	return noDeliveries{}
}

// noDeliveries stands in for a store that keeps no outbox.
type noDeliveries struct{}

func (noDeliveries) refuse() error {
	return &onejob.Error{Code: onejob.CodeInternal, Message: "the store keeps no deliveries"}
}

func (n noDeliveries) DeliveryClaim(context.Context, onejob.DeliveryClaimParams) ([]onejob.Delivery, error) {
	return nil, n.refuse()
}

func (n noDeliveries) DeliveryRecord(context.Context, []onejob.DeliveryRecordParams) ([]error, error) {
	return nil, n.refuse()
}

func (n noDeliveries) DeliveryList(context.Context, onejob.DeliveryListParams) (onejob.DeliveryPage, error) {
	return onejob.DeliveryPage{}, n.refuse()
}

func (n noDeliveries) DeliveryResend(context.Context, onejob.DeliveryResendParams) (onejob.Delivery, error) {
	return onejob.Delivery{}, n.refuse()
}

func (n noDeliveries) EndpointDisable(context.Context, string, string) error { return n.refuse() }

func (n noDeliveries) EndpointEnable(context.Context, onejob.EndpointEnableParams) error {
	return n.refuse()
}

func (n noDeliveries) EndpointDisabled(context.Context) ([]onejob.DisabledEndpoint, error) {
	return nil, n.refuse()
}
