package postgres

import (
	"context"

	"github.com/onejob-dev/onejob"
)

var _ onejob.Looker = (*Store)(nil)

// Each is one look into a partial index over live rows, at its end where what is
// due first lies. The order names the index: where tables are empty any would do, and
// the plan is kept while they grow.
const sqlWorkLook = `
SELECT EXISTS (
         SELECT FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
                SELECT FROM job_states WHERE waiting = 'queued' AND due AND next_target = t.target LIMIT 1) s)
    OR EXISTS (
         SELECT FROM unnest($1::text[]) AS t (target) CROSS JOIN LATERAL (
                SELECT FROM job_states
                 WHERE waiting = 'queued' AND NOT due AND next_target = t.target
                   AND run_after <= onejob_now() + $3::bigint * interval '1 microsecond'
                 ORDER BY run_after LIMIT 1) s),
       (SELECT true FROM attempts
         WHERE state IN ('starting', 'running') AND outcome IS DISTINCT FROM 'accepted' AND lease_expires_at <= onejob_now()
         ORDER BY lease_expires_at LIMIT 1) IS NOT NULL,
       (SELECT true FROM job_states WHERE waiting = 'queued' AND deadline IS NOT NULL AND deadline <= onejob_now()
         ORDER BY deadline LIMIT 1) IS NOT NULL
    OR (SELECT true FROM job_states WHERE waiting = 'blocked' AND blocked_reason NOT IN ('attempt_unknown', 'parked', 'needs_operator')
         ORDER BY run_after LIMIT 1) IS NOT NULL,
       (SELECT true FROM attempts a WHERE ` + sqlAsked + ` AND a.probe_at <= onejob_now() AND a.target = ANY ($2::text[])
         ORDER BY a.probe_at LIMIT 1) IS NOT NULL,
       (SELECT true FROM attempts a WHERE ` + sqlAsked + ` AND a.asked_at IS NULL AND a.ask_at <= onejob_now()
         ORDER BY a.ask_at LIMIT 1) IS NOT NULL,
       EXISTS (
         SELECT FROM unnest($4::text[]) AS e (id) CROSS JOIN LATERAL (
                SELECT FROM deliveries d WHERE d.endpoint = e.id AND d.state = 'pending' AND d.due_at <= onejob_now()
                 ORDER BY d.due_at, d.id LIMIT 1) w
          WHERE NOT EXISTS (SELECT FROM webhook_endpoints x WHERE x.id = e.id)),
       ARRAY (
         SELECT s.job_id FROM unnest($5::smallint[], $6::text[]) AS u (part, job_id)
           JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
          WHERE s.cancel_requested_at IS NOT NULL AND s.finished_at IS NULL)`

// WorkLook implements [onejob.Looker].
func (s *Store) WorkLook(ctx context.Context, p onejob.WorkLookParams) (found onejob.WorkFound, err error) {
	parts, ids := refColumns(p.Held)
	err = s.pool.QueryRow(ctx, sqlWorkLook, texts(p.Targets), texts(p.Askable), p.Soon.Microseconds(), texts(p.Endpoints), parts, ids).
		Scan(&found.Due, &found.Expired, &found.Undecided, &found.Questions, &found.Unasked, &found.Outbox, &found.Cancelled)
	return found, onejob.Unavailable(err)
}
