package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// What a delivery is read from: deliveries d and jobs j. Its body is read by who
// sends it.
const deliveryColumns = `
    d.part, d.id, d.job_id, d.attempt_id, j.owner, d.endpoint, d.event, d.state,
    d.tries, d.resent, d.status, d.error, d.created_at, d.due_at, d.finished_at`

// scanDelivery reads one row of deliveryColumns, and what else is selected into more.
func scanDelivery(row pgx.Row, more ...any) (d onejob.Delivery, err error) {
	var part int16
	var due, finished pgtype.Timestamptz
	err = row.Scan(append([]any{
		&part, &d.ID, &d.JobID, &d.AttemptID, &d.Owner, &d.Endpoint, &d.Event, &d.State,
		&d.Tries, &d.Resent, &d.Status, &d.Error, &d.CreatedAt, &due, &finished,
	}, more...)...)
	d.Part, d.CreatedAt, d.DueAt, d.FinishedAt = uint8(part), d.CreatedAt.UTC(), timeOf(due), timeOf(finished)
	return d, err
}

// giveUpAtOnce is how many deliveries one claim gives up at most.
const giveUpAtOnce = 100

// What somebody is trying now is not due. Rows that another sender holds are
// passed over.
const sqlDeliveryGiveUp = `
WITH old AS MATERIALIZED (
    SELECT d.part, d.id FROM deliveries d
     WHERE d.state = 'pending' AND d.since <= onejob_now() - $1::bigint * interval '1 microsecond' AND d.due_at <= onejob_now()
     ORDER BY d.since LIMIT $2
       FOR UPDATE SKIP LOCKED
)
UPDATE deliveries d
   SET state = 'failed', due_at = NULL, finished_at = onejob_now(), error = $3 || CASE d.error WHEN '' THEN '' ELSE ': ' || d.error END
  FROM old WHERE d.part = old.part AND d.id = old.id`

// The index is gone by endpoint after endpoint: what waits for one that nobody
// sends to is not walked over.
const sqlDeliveryClaim = `
WITH c AS MATERIALIZED (
    SELECT w.part, w.id, w.due_at FROM unnest($1::text[]) AS e (id)
     CROSS JOIN LATERAL (
           SELECT d.part, d.id, d.due_at FROM deliveries d
            WHERE d.endpoint = e.id AND d.state = 'pending' AND d.due_at <= onejob_now()
            ORDER BY d.due_at, d.id LIMIT $2
              FOR UPDATE SKIP LOCKED
           ) w
     WHERE NOT EXISTS (SELECT FROM webhook_endpoints x WHERE x.id = e.id)
     ORDER BY w.due_at, w.id LIMIT $2
)
UPDATE deliveries d SET due_at = onejob_now() + $3::bigint * interval '1 microsecond'
  FROM c, jobs j
 WHERE d.part = c.part AND d.id = c.id AND j.part = d.part AND j.id = d.job_id
RETURNING ` + deliveryColumns + `, d.body, c.due_at`

// DeliveryClaim implements [onejob.DeliveryStore].
func (s *Store) DeliveryClaim(ctx context.Context, p onejob.DeliveryClaimParams) ([]onejob.Delivery, error) {
	type taken struct {
		onejob.Delivery
		due time.Time
	}
	var all []taken
	err := s.inTx(ctx, sqlBegin, func(t *txn) error {
		b := t.batch()
		if p.GiveUpAfter > 0 {
			b.Queue(sqlDeliveryGiveUp, p.GiveUpAfter.Microseconds(), giveUpAtOnce, onejob.GivenUp(p.GiveUpAfter))
		}
		if p.Max > 0 && len(p.Endpoints) > 0 {
			b.Queue(sqlDeliveryClaim, cleaned(p.Endpoints), p.Max, p.Lease.Microseconds()).Query(func(rows pgx.Rows) error {
				return forEach(rows, func(row pgx.Row) error {
					var one taken
					var body []byte
					var err error
					one.Delivery, err = scanDelivery(row, &body, &one.due)
					one.Body = body
					all = append(all, one)
					return err
				})
			})
		}
		return t.commit(ctx, b)
	})
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	slices.SortFunc(all, func(a, b taken) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.ID, b.ID)) })
	return column(all, func(t taken) onejob.Delivery { return t.Delivery }), nil
}

// cleaned are texts from outside, each once.
func cleaned(texts []string) []string {
	texts = column(texts, clean)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// A missing row: somebody else recorded the try, or the delivery does not wait any more.
const sqlDeliveryRecord = `
UPDATE deliveries d
   SET state = u.state, tries = d.tries + 1, status = u.status, error = u.error, body = coalesce(d.body, u.body),
       due_at      = CASE u.state WHEN 'pending' THEN onejob_now() + u.after * interval '1 microsecond' END,
       finished_at = CASE u.state WHEN 'pending' THEN NULL ELSE onejob_now() END
  FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::text[], $5::integer[], $6::text[], $7::bytea[], $8::bigint[], $9::integer[])
       AS u (part, id, tries, state, status, error, body, after, resent)
 WHERE d.part = u.part AND d.id = u.id AND d.tries = u.tries AND d.resent = u.resent AND d.state = 'pending'
RETURNING d.id`

const sqlDeliveriesExist = `
SELECT d.id FROM unnest($1::smallint[], $2::text[]) AS u (part, id)
  JOIN deliveries d ON d.part = u.part AND d.id = u.id`

// DeliveryRecord implements [onejob.DeliveryStore].
func (s *Store) DeliveryRecord(ctx context.Context, params []onejob.DeliveryRecordParams) ([]error, error) {
	errs := make([]error, len(params))
	act := func(ctx context.Context, t *txn, rows []int) error { return recordTries(ctx, t, params, rows, errs) }
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].ID }, act, func(row int, err error) { errs[row] = err })
	if err != nil {
		return nil, err
	}
	return errs, nil
}

func recordTries(ctx context.Context, t *txn, params []onejob.DeliveryRecordParams, rows []int, errs []error) error {
	var tries []*onejob.DeliveryRecordParams
	var parts []int16
	for _, row := range slices.SortedFunc(slices.Values(rows), func(a, b int) int { return cmp.Compare(params[a].ID, params[b].ID) }) {
		p := &params[row]
		part, ok := onejob.PartOfDeliveryID(p.ID)
		if errs[row] = onejob.CheckDeliveryRecord(p); errs[row] == nil && !ok {
			errs[row] = onejob.ErrorOfNoDelivery(p.ID)
		}
		if errs[row] == nil {
			tries, parts = append(tries, p), append(parts, int16(part))
		}
	}
	recorded, exist := map[string]bool{}, map[string]bool{}
	b := t.batch()
	queueTries(b, parts, tries).Query(idsInto(recorded))
	b.Queue(sqlDeliveriesExist, parts, column(tries, func(p *onejob.DeliveryRecordParams) string { return p.ID })).Query(idsInto(exist))
	if err := t.commit(ctx, b); err != nil {
		return err
	}
	for _, row := range rows {
		switch p := &params[row]; {
		case errs[row] != nil || recorded[p.ID]:
		case exist[p.ID]:
			errs[row] = onejob.ErrorOfLostDelivery(p)
		default:
			errs[row] = onejob.ErrorOfNoDelivery(p.ID)
		}
	}
	return nil
}

func queueTries(b *pgx.Batch, parts []int16, tries []*onejob.DeliveryRecordParams) *pgx.QueuedQuery {
	type try = *onejob.DeliveryRecordParams
	return b.Queue(sqlDeliveryRecord, parts,
		column(tries, func(p try) string { return p.ID }),
		column(tries, func(p try) int32 { return int32(p.Tries) }),
		column(tries, func(p try) string { return string(p.State) }),
		column(tries, func(p try) int32 { return int32(p.Status) }),
		column(tries, func(p try) string { return clean(p.Error) }),
		column(tries, func(p try) []byte { return p.Body }),
		column(tries, func(p try) int64 { return max(p.After, 0).Microseconds() }),
		column(tries, func(p try) int32 { return int32(p.Resent) }),
	)
}

// idsInto gathers the ids of rows.
func idsInto(ids map[string]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var id string
			err := row.Scan(&id)
			ids[id] = true
			return err
		})
	}
}

// The job is held meanwhile: a purge that forgets its deliveries comes before or after.
const sqlDeliveryHold = `
SELECT s.job_id FROM deliveries d JOIN job_states s ON s.part = d.part AND s.job_id = d.job_id
 WHERE d.part = $1 AND d.id = $2 FOR KEY SHARE OF s`

// Zero rows: there is none, or it is another owner's.
const sqlDeliveryResend = `
UPDATE deliveries d
   SET state = 'pending', tries = 0, resent = d.resent + 1, status = 0, error = '', since = onejob_now(), due_at = onejob_now(), finished_at = NULL
  FROM jobs j
 WHERE d.part = $1 AND d.id = $2 AND j.part = d.part AND j.id = d.job_id AND $3 IN ('', j.owner)
RETURNING ` + deliveryColumns

// DeliveryResend implements [onejob.DeliveryStore].
func (s *Store) DeliveryResend(ctx context.Context, p onejob.DeliveryResendParams) (resent onejob.Delivery, err error) {
	part, ok := onejob.PartOfDeliveryID(p.ID)
	if !ok || !storable(p.Owner) {
		return resent, onejob.ErrorOfNoDelivery(p.ID)
	}
	found := false
	err = s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		b := t.batch()
		b.Queue(sqlDeliveryHold, int16(part), p.ID)
		if err := t.send(ctx, b); err != nil {
			return nil, err
		}
		b = t.batch()
		found = false
		b.Queue(sqlDeliveryResend, int16(part), p.ID, p.Owner).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) (err error) {
				found = true
				resent, err = scanDelivery(row)
				entries = append(entries, p.AuditOf(&resent))
				return err
			})
		})
		return entries, t.send(ctx, b)
	})
	if err == nil && !found {
		err = onejob.ErrorOfNoDelivery(p.ID)
	}
	return resent, err
}
