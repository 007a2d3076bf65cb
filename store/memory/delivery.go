package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// giveUpAtOnce is how many deliveries one claim gives up at most.
const giveUpAtOnce = 100

// DeliveryClaim takes pending deliveries that are due, longest due first.
func (s *Store) DeliveryClaim(ctx context.Context, p onejob.DeliveryClaimParams) ([]onejob.Delivery, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	s.giveUp(p.GiveUpAfter, now)
	due := s.dueDeliveries(now, func(d *delivery) bool {
		_, disabled := s.disabled[d.Endpoint]
		return !disabled && slices.Contains(p.Endpoints, d.Endpoint)
	}, func(d *delivery) time.Time { return d.DueAt })
	var claimed []onejob.Delivery
	for _, d := range due[:min(max(p.Max, 0), len(due))] {
		d.DueAt = now.Add(p.Lease)
		claimed = append(claimed, copyDelivery(d, true))
	}
	return claimed, nil
}

// giveUp fails what has waited too long. What somebody is trying now is not due.
func (s *Store) giveUp(after time.Duration, now time.Time) {
	if after <= 0 {
		return
	}
	old := s.dueDeliveries(now, func(d *delivery) bool { return !now.Before(d.since.Add(after)) }, func(d *delivery) time.Time { return d.since })
	for _, d := range old[:min(giveUpAtOnce, len(old))] {
		if d.Error != "" {
			d.Error = ": " + d.Error
		}
		d.Error = onejob.GivenUp(after) + d.Error
		d.State, d.DueAt, d.FinishedAt = onejob.DeliveryFailed, time.Time{}, now
	}
}

// dueDeliveries lists what could be tried now, in the order of a time.
func (s *Store) dueDeliveries(now time.Time, keep func(*delivery) bool, by func(*delivery) time.Time) []*delivery {
	var due []*delivery
	for _, d := range s.outbox {
		if d.State == onejob.DeliveryPending && !d.DueAt.After(now) && keep(d) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *delivery) int { return cmp.Or(by(a).Compare(by(b)), cmp.Compare(a.ID, b.ID)) })
	return due
}

// DeliveryRecord writes tries down, each as of the number of tries that was claimed.
func (s *Store) DeliveryRecord(ctx context.Context, params []onejob.DeliveryRecordParams) ([]error, error) {
	return each(ctx, s, params, s.recordTry)
}

func (s *Store) recordTry(p *onejob.DeliveryRecordParams, now time.Time) error {
	if err := onejob.CheckDeliveryRecord(p); err != nil {
		return err
	}
	d := s.outbox[p.ID]
	switch {
	case d == nil:
		return onejob.ErrorOfNoDelivery(p.ID)
	case d.State != onejob.DeliveryPending || d.Tries != p.Tries || d.Resent != p.Resent:
		return onejob.ErrorOfLostDelivery(p)
	}
	d.State, d.Status, d.Error = p.State, p.Status, p.Error
	d.Tries++
	if d.Body == nil {
		d.Body = bytes.Clone(p.Body)
	}
	d.DueAt, d.FinishedAt = time.Time{}, now
	if p.State == onejob.DeliveryPending {
		d.DueAt, d.FinishedAt = now.Add(max(p.After, 0)), time.Time{}
	}
	return nil
}

// DeliveryList reads one page, newest first.
func (s *Store) DeliveryList(ctx context.Context, p onejob.DeliveryListParams) (onejob.DeliveryPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.DeliveryPage{}, err
	}
	defer end()
	var found []onejob.Delivery
	for _, d := range s.outbox {
		if wantedDelivery(d, &p) {
			found = append(found, copyDelivery(d, false))
		}
	}
	slices.SortFunc(found, func(a, b onejob.Delivery) int { return newestFirst(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	found, more := page(found, p.Limit)
	return onejob.DeliveryPage{Deliveries: found, More: more}, nil
}

func wantedDelivery(d *delivery, p *onejob.DeliveryListParams) bool {
	return (p.ID == "" || p.ID == d.ID) && (p.Owner == "" || p.Owner == d.Owner) &&
		(p.JobID == "" || p.JobID == d.JobID) && (p.Endpoint == "" || p.Endpoint == d.Endpoint) &&
		(len(p.States) == 0 || slices.Contains(p.States, d.State)) &&
		older(d.CreatedAt, d.ID, p.Before)
}

// DeliveryResend makes a delivery due now, with its tries counted anew.
func (s *Store) DeliveryResend(ctx context.Context, p onejob.DeliveryResendParams) (onejob.Delivery, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Delivery{}, err
	}
	defer end()
	d := s.outbox[p.ID]
	if d == nil || p.Owner != "" && p.Owner != d.Owner {
		return onejob.Delivery{}, onejob.ErrorOfNoDelivery(p.ID)
	}
	d.State, d.Tries, d.Status, d.Error = onejob.DeliveryPending, 0, 0, ""
	d.since, d.DueAt, d.FinishedAt = now, now, time.Time{}
	d.Resent++
	s.audit(p.AuditOf(&d.Delivery), now)
	return copyDelivery(d, false), nil
}

func copyDelivery(from *delivery, withBody bool) onejob.Delivery {
	d := from.Delivery
	if d.Body = nil; withBody {
		d.Body = bytes.Clone(from.Body)
	}
	return d
}
