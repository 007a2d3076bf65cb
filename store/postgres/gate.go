package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// UseGate implements [onejob.CertificateStore], for this handle.
func (s *Store) UseGate(terms onejob.GateTerms) { s.terms.Store(&terms) }

// What the gate goes by comes with the job that it is about, in one more column. A
// job without a contract pays for a look at its policy.
const (
	gateColumn = `,
    CASE WHEN s.state IN ('queued', 'running', 'blocked') AND position('"contract":' IN j.policy) > 0
         THEN onejob_gate($4, j.policy::jsonb #>> '{contract,digest}') END`
	sqlJobsGate          = `SELECT ` + jobColumns + withoutInput + gateColumn + sqlJobsFrom
	sqlJobsLockGate      = sqlJobsGate + sqlLock
	sqlJobsInputLockGate = `SELECT ` + jobColumns + withInput + gateColumn + sqlJobsFrom + sqlLock
)

// gated is a row with what the gate goes by in its last column.
type gated struct {
	pgx.Row
	facts pgtype.Text
}

func (g *gated) Scan(dest ...any) error { return g.Row.Scan(append(dest, &g.facts)...) }

func (l *loaded) addGatedJob(row pgx.Row) error {
	g := &gated{Row: row}
	job, err := scanJob(g)
	if job == nil {
		return err
	}
	ref := onejob.JobRef{Part: job.Part, ID: job.ID}
	var facts onejob.GateRows
	if err == nil && g.facts.Valid {
		if facts, err = gateRows(g.facts.String); err != nil {
			err = unreadable(job.ID, "", err)
		}
	}
	if err != nil {
		return l.forgive(ref, err)
	}
	l.jobs[ref] = job
	if g.facts.Valid {
		l.gate[ref] = facts
	}
	return nil
}

func gateRows(text string) (rows onejob.GateRows, err error) {
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return rows, fmt.Errorf("what the gate goes by: %w", err)
	}
	return rows, nil
}

// verdicts are the gate's words that a decision about the job needs now. Whatever
// starts by one looks at it again under a lock; see [sqlPermitted].
func (l *loaded) verdicts(job *onejob.Job, ask onejob.Ask) onejob.Verdicts {
	facts, known := l.gate[onejob.JobRef{Part: job.Part, ID: job.ID}]
	g, needed := onejob.GateOf(job, job.Attempts, ask)
	if !known || !needed {
		return nil
	}
	return l.terms.Verdicts(g, facts, l.now)
}

// What lets an attempt start stands, and stays so until the transaction ends: who
// takes it back waits. An attempt without either needs nothing, and nothing is read.
const (
	certificateStands = `EXISTS (SELECT FROM certificates c
          WHERE c.id = %[1]s.certificate_id AND c.verdict = 'certified' AND c.status = 'active' AND c.expires_at > onejob_now() FOR SHARE)`
	waiverStands = `EXISTS (SELECT FROM waivers w
          WHERE w.id = %[1]s.waiver_id AND w.revoked_at IS NULL AND w.expires_at > onejob_now() FOR SHARE)`
	permittedOf = `(%[1]s.certificate_id IS NULL OR ` + certificateStands + `)
       AND (%[1]s.waiver_id IS NULL OR ` + waiverStands + `)`
)

var (
	sqlPermitted          = fmt.Sprintf(permittedOf, "u")
	sqlPermittedOfAttempt = fmt.Sprintf(permittedOf, "a")
)

// An attempt in starting of which what let it start does not stand any more. A
// missing row: the mark was refused because its claim is lost.
var sqlAttemptForbid = `
UPDATE attempts a
   SET state = 'failed', outcome = 'not_executed', next = 'again', own_fault = true, finished_at = onejob_now(),
       error_code = $5, error = $6, evidence = u.evidence
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $7::text[]) AS u (part, job_id, id, claim_token, evidence)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.claim_token = u.claim_token
   AND a.state = 'starting' AND a.lease_expires_at > onejob_now()
   AND s.state IN ('queued', 'running', 'blocked') AND s.cancel_requested_at IS NULL
   AND (a.certificate_id IS NOT NULL OR a.waiver_id IS NOT NULL)
   AND NOT (` + sqlPermittedOfAttempt + `) AND ` + sqlUnrestored + `
RETURNING ` + attemptColumns + withoutResult

// forbid ends those attempts whose mark was refused for want of what let them start,
// in a transaction of its own: hardly ever is there one.
func (s *Store) forbid(ctx context.Context, params []onejob.AttemptMarkParams, results []onejob.AttemptMarkResult) error {
	var lost []onejob.AttemptMarkParams
	var rows []int
	for row := range params {
		if onejob.CodeOf(results[row].Err) == onejob.CodeClaimLost {
			lost, rows = append(lost, params[row]), append(rows, row)
		}
	}
	act := func(ctx context.Context, t *txn, some []int) error {
		forbidden, err := forbidAll(ctx, t, column(some, func(i int) onejob.AttemptMarkParams { return lost[i] }))
		for _, i := range some {
			if forbidden[lost[i].Ref.ID] && err == nil {
				results[rows[i]] = onejob.AttemptMarkResult{Err: onejob.ErrorOfForbidden(lost[i].Ref)}
			}
		}
		return err
	}
	fail := func(int, error) {} // it stays a lost claim, and the end of its lease ends it
	return s.inWaves(ctx, len(lost), func(i int) string { return lost[i].Ref.JobID }, act, fail)
}

func forbidAll(ctx context.Context, t *txn, lost []onejob.AttemptMarkParams) (forbidden map[string]bool, err error) {
	refs := attemptRefs(column(lost, func(p onejob.AttemptMarkParams) onejob.AttemptRef { return p.Ref }))
	b := t.batch()
	l := load(b, column(lost, func(p onejob.AttemptMarkParams) onejob.JobRef { return jobOf(p.Ref) }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	evidence := column(lost, func(p onejob.AttemptMarkParams) string {
		var e onejob.Evidence
		if a := l.attempt(p.Ref); a != nil {
			e = a.Evidence
		}
		e.Error = onejob.ForbiddenMessage
		return toJSON(e)
	})
	var ended []onejob.Attempt
	b = t.batch()
	b.Queue(sqlAttemptForbid, refs.parts, refs.jobs, refs.ids,
		column(lost, func(p onejob.AttemptMarkParams) string { return clean(p.ClaimToken) }),
		onejob.FailureCertificateRevoked, onejob.ForbiddenMessage, evidence,
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			ended = append(ended, a)
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	forbidden = map[string]bool{}
	for _, a := range ended {
		forbidden[a.ID] = true
	}
	l.merge(ended)
	return forbidden, t.conclude(ctx, t.batch(), l, ended, nil)
}

// GateRead implements [onejob.CertificateStore].
func (s *Store) GateRead(ctx context.Context, policy onejob.Policy, primary string) (onejob.Verdicts, error) {
	terms := s.terms.Load()
	if terms == nil {
		terms = &onejob.GateTerms{}
	}
	contract := ""
	if policy.Contract != nil {
		contract = clean(policy.Contract.Digest)
	}
	var text string
	var now pgtype.Timestamptz
	err := s.pool.QueryRow(ctx, `SELECT onejob_gate($1, $2), onejob_now()`, onejob.EnvironmentOr(terms.Environment), contract).Scan(&text, &now)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	rows, err := gateRows(text)
	if err != nil {
		return nil, unreadable("", "", err)
	}
	return terms.Verdicts(onejob.GateOfAll(&policy, primary), rows, timeOf(now)), nil
}
