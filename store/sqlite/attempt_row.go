package sqlite

import (
	"encoding/json"
	"time"

	"github.com/onejob-dev/onejob"
)

// attemptColumns are all of an attempt but its result, in the order that
// scanAttempt reads.
const attemptColumns = `
	a.part, a.id, a.job_id, a.number, a.lane, a.target, a.target_digest, a.state, a.claim_token, a.worker,
	a.lease_expires_at, a.send_by, a.quarantine_until, a.job_version, a.provider_key, a.provider_id,
	a.request_key_hash, a.request_fingerprint, a.certificate_id, a.waiver_id, a.phase, a.outcome, a.next, a.own_fault,
	a.evidence, a.error_code, a.error, a.retry_at, a.ruling, a.discarded, a.cost_micros, a.currency, a.usage,
	a.started_at, a.marked_at, a.accepted_at, a.asked_at, a.probe_at, a.finished_at, a.lease_over_at`

// thisAttempt is the condition of being one attempt, by part, job and id.
const thisAttempt = `seq = ` + seqOfJob + ` AND id = ?`

const resultColumns = `a.result_type, a.result_lost, a.result`

func scanAttempt(r *row, a *onejob.Attempt) error {
	a.Part, a.ID, a.JobID, a.Number, a.Lane = uint8(r.Int64()), r.String(), r.String(), r.Int(), r.Int()
	a.Target, a.TargetDigest = r.String(), r.String()
	a.State, a.ClaimToken, a.Worker = onejob.AttemptState(r.String()), r.String(), r.String()
	a.LeaseExpiresAt, a.SendBy, a.QuarantineUntil = r.Time(), r.Time(), r.Time()
	a.JobVersion, a.ProviderKey, a.ProviderID = r.Int64(), r.String(), r.String()
	a.RequestKeyHash, a.RequestFingerprint = r.Bytes(), r.Bytes()
	a.CertificateID, a.WaiverID = r.String(), r.String()
	a.Phase, a.Outcome, a.Next, a.OwnFault = onejob.Phase(r.String()), onejob.Outcome(r.String()), onejob.Next(r.String()), r.Bool()
	evidence := r.String()
	a.Error, a.RetryAt = scanFailure(r), r.Time()
	ruling, isRuled := r.Text()
	discarded, isDiscarded := r.Text()
	a.CostMicros, a.Currency = r.Int64(), r.String()
	if usage, told := r.Text(); told {
		a.Usage = json.RawMessage(usage)
	}
	a.StartedAt, a.MarkedAt, a.AcceptedAt, a.AskedAt = r.Time(), r.Time(), r.Time(), r.Time()
	a.NextProbeAt, a.FinishedAt, a.LeaseOverAt = r.Time(), r.Time(), r.Time()
	if !a.OpenToProbes() {
		a.NextProbeAt = time.Time{} // of when it was
	}

	if isRuled {
		a.Ruling = new(onejob.Ruling)
		if err := decode(ruling, a.Ruling); err != nil {
			return err
		}
	}
	if isDiscarded {
		a.Discarded = new(onejob.Discarded)
		if err := decode(discarded, a.Discarded); err != nil {
			return err
		}
	}
	if evidence != noEvidence && decode(evidence, &a.Evidence) != nil {
		a.Evidence = onejob.Evidence{Error: "the stored evidence cannot be read"} // nothing depends on it
	}
	return nil
}

// noEvidence is how an attempt starts out.
const noEvidence = `{}`

func scanResult(r *row) *onejob.Result {
	contentType, answered := r.Text()
	lost, body := r.Bool(), r.Bytes()
	if !answered {
		return nil
	}
	return &onejob.Result{Body: body, ContentType: contentType, Lost: lost}
}

// attemptsOf reads a job's attempts, oldest first, without their results.
func (x *tx) attemptsOf(j *onejob.Job) (attempts []onejob.Attempt, err error) {
	if j.AttemptsMade == 0 {
		return nil, nil
	}
	attempts = make([]onejob.Attempt, 0, j.AttemptsMade)
	err = x.query(`SELECT`+attemptColumns+` FROM attempts a WHERE a.seq = `+seqOfJob+` ORDER BY a.number`, func(r *row) error {
		attempts = append(attempts, onejob.Attempt{})
		return scanAttempt(r, &attempts[len(attempts)-1])
	}, int(j.Part), j.ID)
	return attempts, err
}

// insertAttempt inserts an attempt that NewAttempt made, of the job with number seq.
// Zero rows: another one is in doubt in its lane.
func (x *tx) insertAttempt(seq int64, j *onejob.Job, a *onejob.Attempt) (inserted bool, err error) {
	n, err := x.exec(`
		INSERT OR FAIL INTO attempts (
			seq, part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker,
			lease_expires_at, send_by, quarantine_until, job_version, provider_key,
			request_key_hash, request_fingerprint, certificate_id, waiver_id, phase, started_at, marked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (seq, lane) WHERE state = 'starting' OR state = 'running' OR state = 'unknown' DO NOTHING`,
		seq, int(a.Part), a.JobID, a.Number, a.ID, a.Lane, j.Policy.Lanes, a.Target, a.TargetDigest, string(a.State), a.ClaimToken, a.Worker,
		a.LeaseExpiresAt, a.SendBy, a.QuarantineUntil, a.JobVersion, a.ProviderKey,
		blobOrNull(a.RequestKeyHash), blobOrNull(a.RequestFingerprint), orNull(a.CertificateID), orNull(a.WaiverID),
		string(a.Phase), a.StartedAt, a.MarkedAt)
	return n == 1, err
}
