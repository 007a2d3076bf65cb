package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// deliveryColumns are all of a delivery but its body, in the order that
// scanDelivery reads.
const deliveryColumns = `
	d.part, d.id, d.job_id, d.attempt_id, j.owner, d.endpoint, d.event, d.state,
	d.tries, d.resent, d.status, d.error, d.created_at, d.due_at, d.finished_at`

const deliveryTables = ` FROM deliveries d JOIN jobs j ON j.part = d.part AND j.id = d.job_id`

func scanDelivery(r *row, d *onejob.Delivery) error {
	d.Part, d.ID, d.JobID, d.AttemptID, d.Owner = uint8(r.Int64()), r.String(), r.String(), r.String(), r.String()
	d.Endpoint, d.Event, d.State = r.String(), onejob.WebhookEvent(r.String()), onejob.DeliveryState(r.String())
	d.Tries, d.Resent, d.Status, d.Error = r.Int(), r.Int(), r.Int(), r.String()
	d.CreatedAt, d.DueAt, d.FinishedAt = r.Time(), r.Time(), r.Time()
	return nil
}

// giveUpAtOnce is how many deliveries one claim gives up at most.
const giveUpAtOnce = 100

// DeliveryClaim takes pending deliveries that are due, longest due first. While the
// clock is in doubt none is given up.
func (s *Store) DeliveryClaim(ctx context.Context, p onejob.DeliveryClaimParams) (claimed []onejob.Delivery, err error) {
	idle, err := s.nothingDue(ctx, p)
	if err != nil || idle {
		return nil, err
	}
	err = s.write(ctx, func(x *tx) (err error) {
		if wait, _ := s.clock.doubtful(); wait == 0 {
			if err := x.giveUp(p.GiveUpAfter); err != nil {
				return err
			}
		}
		claimed, err = x.claimDeliveries(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// nothingDue looks beside the writer, who is not asked for nothing.
func (s *Store) nothingDue(ctx context.Context, p onejob.DeliveryClaimParams) (idle bool, err error) {
	err = s.read(ctx, func(x *tx) error {
		due := 0
		count := func(r *row) error { due += r.Int(); return nil }
		if p.GiveUpAfter > 0 {
			if err := x.query(`SELECT EXISTS (SELECT 1 FROM deliveries WHERE `+tooOld+`)`, count, x.now.Add(-p.GiveUpAfter), x.now); err != nil {
				return err
			}
		}
		if p.Max > 0 {
			if err := x.query(`SELECT EXISTS (`+dueToEndpoints+`)`, count, endpoints(p), x.now); err != nil {
				return err
			}
		}
		idle = due == 0
		return nil
	})
	return idle, err
}

func endpoints(p onejob.DeliveryClaimParams) string {
	return encode(slices.Concat([]string{}, p.Endpoints))
}

const (
	// tooOld is the condition of having waited too long. What somebody is trying
	// now is not due.
	tooOld = `state = 'pending' AND since <= ? AND due_at <= ?`

	// dueToEndpoints goes by the index, endpoint by endpoint: what waits for one that
	// nobody sends to is not walked over.
	dueToEndpoints = `
		SELECT d.part, d.id FROM json_each(?) e CROSS JOIN deliveries d
		WHERE d.endpoint = e.value AND d.state = 'pending' AND d.due_at <= ?
			AND NOT EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.id = e.value)`
)

// giveUp fails what has waited too long, whoever's it is.
func (x *tx) giveUp(after time.Duration) error {
	if after <= 0 {
		return nil
	}
	_, err := x.exec(`
		UPDATE deliveries SET state = 'failed', due_at = NULL, finished_at = ?, error = ? || CASE error WHEN '' THEN '' ELSE ': ' || error END
		WHERE (part, id) IN (SELECT part, id FROM deliveries WHERE `+tooOld+` ORDER BY since LIMIT ?)`,
		x.now, onejob.GivenUp(after), x.now.Add(-after), x.now, giveUpAtOnce)
	return err
}

func (x *tx) claimDeliveries(p onejob.DeliveryClaimParams) (claimed []onejob.Delivery, err error) {
	type ref struct {
		part int
		id   string
	}
	var due []ref
	err = x.query(dueToEndpoints+` ORDER BY d.due_at, d.id LIMIT ?`, func(r *row) error {
		due = append(due, ref{r.Int(), r.String()})
		return nil
	}, endpoints(p), x.now, max(0, p.Max))
	if err != nil {
		return nil, err
	}
	for _, d := range due {
		// Nobody else can have taken it since this transaction began.
		_, err := x.exec(`UPDATE deliveries SET due_at = ? WHERE part = ? AND id = ? AND state = 'pending'`, later(x.now.Add(p.Lease)), d.part, d.id)
		if err != nil {
			return nil, err
		}
		err = x.query(`SELECT`+deliveryColumns+`, d.body`+deliveryTables+` WHERE d.part = ? AND d.id = ?`, func(r *row) error {
			var one onejob.Delivery
			err := scanDelivery(r, &one)
			one.Body = r.Bytes()
			claimed = append(claimed, one)
			return err
		}, d.part, d.id)
		if err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// DeliveryRecord writes tries down, each as of the number of tries that was claimed.
func (s *Store) DeliveryRecord(ctx context.Context, params []onejob.DeliveryRecordParams) ([]error, error) {
	return batch(ctx, s, params, func(x *tx, p *onejob.DeliveryRecordParams) (error, error) {
		return nil, x.recordTry(p)
	}, func(err error) error { return err })
}

func (x *tx) recordTry(p *onejob.DeliveryRecordParams) error {
	if err := onejob.CheckDeliveryRecord(p); err != nil {
		return err
	}
	part, ok := onejob.PartOfDeliveryID(p.ID)
	if !ok {
		return onejob.ErrorOfNoDelivery(p.ID)
	}
	var due time.Time
	finished := x.now
	if p.State == onejob.DeliveryPending {
		due, finished = later(x.now.Add(max(p.After, 0))), due
	}
	n, err := x.exec(`
		UPDATE deliveries SET state = ?, tries = tries + 1, status = ?, error = ?, body = coalesce(body, ?), due_at = ?, finished_at = ?
		WHERE part = ? AND id = ? AND tries = ? AND resent = ? AND state = 'pending'`,
		string(p.State), p.Status, p.Error, blobOrNull(p.Body), due, finished, int(part), p.ID, p.Tries, p.Resent)
	if err != nil || n == 1 {
		return err
	}
	switch d, err := x.delivery(part, p.ID, ""); {
	case err != nil:
		return err
	case d == nil:
		return onejob.ErrorOfNoDelivery(p.ID)
	}
	return onejob.ErrorOfLostDelivery(p)
}

// delivery reads one that who may see, or nil.
func (x *tx) delivery(part uint8, id, who string) (found *onejob.Delivery, err error) {
	err = x.query(`SELECT`+deliveryColumns+deliveryTables+` WHERE d.part = ? AND d.id = ? AND ? IN ('', j.owner)`, func(r *row) error {
		found = new(onejob.Delivery)
		return scanDelivery(r, found)
	}, int(part), id, who)
	return found, err
}

// DeliveryResend makes a delivery due now, with its tries counted anew.
func (s *Store) DeliveryResend(ctx context.Context, p onejob.DeliveryResendParams) (resent onejob.Delivery, err error) {
	part, ok := onejob.PartOfDeliveryID(p.ID)
	if !ok {
		return resent, onejob.ErrorOfNoDelivery(p.ID)
	}
	err = s.write(ctx, func(x *tx) error {
		_, err := x.exec(`
			UPDATE deliveries SET state = 'pending', tries = 0, resent = resent + 1, status = 0, error = '', since = ?, due_at = ?, finished_at = NULL
			WHERE part = ? AND id = ? AND EXISTS (
				SELECT 1 FROM jobs j WHERE j.part = deliveries.part AND j.id = deliveries.job_id AND ? IN ('', j.owner))`,
			x.now, x.now, int(part), p.ID, p.Owner)
		if err != nil {
			return err
		}
		switch d, err := x.delivery(part, p.ID, p.Owner); {
		case err != nil:
			return err
		case d == nil:
			return onejob.ErrorOfNoDelivery(p.ID)
		default:
			resent = *d
			return x.audit(p.AuditOf(d))
		}
	})
	return resent, err
}
