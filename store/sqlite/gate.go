package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// UseGate says what the gate goes by on this handle.
func (s *Store) UseGate(terms onejob.GateTerms) { s.terms.Store(&terms) }

// verdicts are the gate's words that a decision about the job needs now. There is one
// writer, so that nobody changes what they are about before the commit.
func (x *tx) verdicts(j *onejob.Job, ask onejob.Ask) (onejob.Verdicts, error) {
	g, needed := onejob.GateOf(j, j.Attempts, ask)
	if !needed {
		return nil, nil
	}
	return x.judge(g)
}

func (x *tx) judge(g onejob.GateAsk) (onejob.Verdicts, error) {
	terms := x.terms
	if terms == nil {
		terms = &onejob.GateTerms{}
	}
	var rows onejob.GateRows
	if g.Policy.Contract != nil {
		var err error
		if rows, err = x.gateRows(g.Policy.Contract.Digest, onejob.EnvironmentOr(terms.Environment)); err != nil {
			return nil, err
		}
	}
	return terms.Verdicts(g, rows, x.now), nil
}

// The job's own version first: that of others only tells what changed.
const gateCertificates = certificateColumns + `
	WHERE environment = ? AND status <> 'superseded'
		AND (contract_digest = ? OR verdict = 'certified' AND kind = (SELECT kind FROM contract_versions WHERE digest = ?))
	ORDER BY contract_digest = ? DESC, issued_at DESC, id DESC LIMIT 200`

func (x *tx) gateRows(contract, environment string) (rows onejob.GateRows, err error) {
	err = x.query(gateCertificates, func(r *row) error {
		c, err := scanCertificate(r)
		rows.Certificates = append(rows.Certificates, c)
		return err
	}, environment, contract, contract, contract)
	if err != nil {
		return rows, err
	}
	if rows.Pairs, err = x.pairs(contract, environment); err != nil {
		return rows, err
	}
	err = x.query(waiverColumns+` WHERE contract_digest = ? AND environment = ? AND revoked_at IS NULL AND expires_at > ?`, func(r *row) error {
		rows.Waivers = append(rows.Waivers, scanWaiver(r))
		return nil
	}, contract, environment, x.now)
	return rows, err
}

// GateRead returns the verdicts of this moment.
func (s *Store) GateRead(ctx context.Context, policy onejob.Policy, primary string) (verdicts onejob.Verdicts, err error) {
	err = s.read(ctx, func(x *tx) error {
		verdicts, err = x.judge(onejob.GateOfAll(&policy, primary))
		return err
	})
	return verdicts, err
}

// jobGoesOn is an attempt's job that is open, and that nobody wants given up.
const jobGoesOn = `EXISTS (SELECT 1 FROM job_states s
	WHERE s.seq = attempts.seq AND s.cancel_requested_at IS NULL AND s.` + open + `)`

// permitted is an attempt of which what let it start still stands. Its two arguments
// are the time.
const permitted = `
	(certificate_id IS NULL OR EXISTS (SELECT 1 FROM certificates c
		WHERE c.id = attempts.certificate_id AND c.verdict = 'certified' AND c.status = 'active' AND c.expires_at > ?))
	AND (waiver_id IS NULL OR EXISTS (SELECT 1 FROM waivers w
		WHERE w.id = attempts.waiver_id AND w.revoked_at IS NULL AND w.expires_at > ?))`

// forbid ends an attempt that was not marked because what let it start does not stand
// any more. Zero rows: it was not marked because its claim is lost.
func (x *tx) forbid(p *onejob.AttemptMarkParams) (onejob.AttemptMarkResult, error) {
	n, err := x.exec(`
		UPDATE attempts SET state = 'failed', outcome = 'not_executed', next = 'again', own_fault = 1, finished_at = ?, error_code = ?, error = ?,
			evidence = json_set(CASE WHEN json_valid(evidence) THEN evidence ELSE '{}' END, '$.error', ?)
		WHERE `+thisAttempt+` AND claim_token = ? AND `+sources(onejob.EventMarked)+` AND lease_expires_at > ?
			AND `+jobGoesOn+` AND NOT (`+permitted+`) AND `+unrestored,
		x.now, onejob.FailureCertificateRevoked, onejob.ForbiddenMessage, onejob.ForbiddenMessage,
		int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, p.ClaimToken, x.now, x.now, x.now)
	if err != nil {
		return onejob.AttemptMarkResult{}, err
	}
	if n == 0 {
		return onejob.AttemptMarkResult{}, onejob.ErrorOfLostClaim(p.Ref)
	}
	_, err = x.changed(p.Ref.Part, p.Ref.JobID)
	return onejob.AttemptMarkResult{Err: onejob.ErrorOfForbidden(p.Ref)}, err
}
