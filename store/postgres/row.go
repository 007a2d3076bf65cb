package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// What a job is read from: jobs j and job_states s. The input is read by who
// needs it, and only then fetched from where large values lie.
const (
	jobColumns = `
    s.part, s.job_id, j.owner, j.key_hash, j.key_prefix, j.fingerprint, j.fingerprint_version,
    j.kind, j.target, j.policy, j.metadata, s.priority, j.supersedes, j.trace, j.webhooks, j.created_at, j.deadline, j.purged_at,
    s.state, s.version, s.revision, s.attempts_made, s.run_after, s.next_target, s.completed_by, s.blocked,
    s.error_code, s.error, s.cancel_requested_at, s.superseded_by, s.finished_at, s.unblocked_at, s.held_at, `
	withInput    = `j.input`
	withoutInput = `NULL::bytea`
)

// scanJob reads one row of jobColumns and an input. One that is unreadable is
// returned as far as it could be read: which job it is, and when it was created.
func scanJob(row pgx.Row) (*onejob.Job, error) {
	var (
		j                                          onejob.Job
		part                                       int16
		policy, webhooks                           string
		createdAt, runAfter                        time.Time
		deadline, purged, cancelled, finished      pgtype.Timestamptz
		unblocked, held                            pgtype.Timestamptz
		completedBy, blocked, code, text, replaced pgtype.Text
	)
	err := row.Scan(&part, &j.ID, &j.Owner, &j.KeyHash, &j.KeyPrefix, &j.Fingerprint, &j.FingerprintVersion,
		&j.Kind, &j.Target, &policy, &j.Metadata, &j.Priority, &j.Supersedes, &j.Trace, &webhooks, &createdAt, &deadline, &purged,
		&j.State, &j.Version, &j.Revision, &j.AttemptsMade, &runAfter, &j.NextTarget, &completedBy, &blocked,
		&code, &text, &cancelled, &replaced, &finished, &unblocked, &held, &j.Input)
	if err != nil {
		return nil, err
	}
	j.Part = uint8(part)
	j.CreatedAt, j.RunAfter = createdAt.UTC(), runAfter.UTC()
	j.Deadline, j.PurgedAt, j.CancelRequestedAt = timeOf(deadline), timeOf(purged), timeOf(cancelled)
	j.FinishedAt, j.UnblockedAt, j.HeldAt = timeOf(finished), timeOf(unblocked), timeOf(held)
	j.CompletedBy, j.SupersededBy = completedBy.String, replaced.String
	j.Error = failureOf(code, text)
	if j.State.Terminal() { // else it is of when it was open
		j.NextTarget = ""
	}
	if j.Policy, err = onejob.DecodePolicy(policy); err != nil {
		return &j, unreadable(j.ID, "", fmt.Errorf("policy: %w", err))
	}
	if j.Webhooks, err = onejob.DecodeSubscriptions(webhooks); err != nil {
		return &j, unreadable(j.ID, "", fmt.Errorf("webhooks: %w", err))
	}
	if j.Blocked, err = fromJSON[onejob.Blocked](blocked); err != nil {
		return &j, unreadable(j.ID, "", fmt.Errorf("blocked: %w", err))
	}
	return &j, nil
}

// unreadable is a row that something other than this program wrote: its own
// fault, and not that of the rows beside it.
func unreadable(jobID, attemptID string, err error) error {
	return spoiled{&onejob.Error{
		Code: onejob.CodeInternal, JobID: jobID, AttemptID: attemptID, Message: "the stored row cannot be read", Err: err,
	}}
}

// What an attempt is read from: attempts a. Its result is read by who needs it.
const (
	attemptColumns = `
    a.part, a.id, a.job_id, a.number, a.lane, a.target, a.target_digest, a.state, a.claim_token, a.worker,
    a.lease_expires_at, a.send_by, a.quarantine_until, a.job_version, a.provider_key, a.provider_id,
    a.request_key_hash, a.request_fingerprint, a.certificate_id, a.waiver_id, a.phase, a.outcome, a.next, a.own_fault,
    a.evidence, a.error_code, a.error, a.retry_at, a.ruling, a.discarded, a.cost_micros, a.currency, a.usage,
    a.started_at, a.marked_at, a.accepted_at, a.asked_at, a.probe_at, a.finished_at, a.lease_over_at, `
	withResult    = `a.result, a.result_type, a.result_lost`
	withoutResult = `NULL::bytea, NULL::text, false`
)

// scanAttempt reads one row of attemptColumns and a result. One that is unreadable
// is returned as far as it could be read.
func scanAttempt(row pgx.Row) (onejob.Attempt, error) {
	var (
		a                                                    onejob.Attempt
		part                                                 int16
		lease, started                                       time.Time
		sendBy, quarantine, retry, marked, finished, over    pgtype.Timestamptz
		accepted, asked, probe                               pgtype.Timestamptz
		providerID, certificate, waiver, outcome, next, code pgtype.Text
		text, ruling, discarded, usage, resultType           pgtype.Text
		evidence                                             string
		result                                               []byte
		lost                                                 bool
	)
	err := row.Scan(&part, &a.ID, &a.JobID, &a.Number, &a.Lane, &a.Target, &a.TargetDigest, &a.State, &a.ClaimToken, &a.Worker,
		&lease, &sendBy, &quarantine, &a.JobVersion, &a.ProviderKey, &providerID,
		&a.RequestKeyHash, &a.RequestFingerprint, &certificate, &waiver, &a.Phase, &outcome, &next, &a.OwnFault,
		&evidence, &code, &text, &retry, &ruling, &discarded, &a.CostMicros, &a.Currency, &usage,
		&started, &marked, &accepted, &asked, &probe, &finished, &over, &result, &resultType, &lost)
	if err != nil {
		return a, err
	}
	a.Part = uint8(part)
	a.LeaseExpiresAt, a.StartedAt = lease.UTC(), started.UTC()
	a.SendBy, a.QuarantineUntil, a.RetryAt = timeOf(sendBy), timeOf(quarantine), timeOf(retry)
	a.MarkedAt, a.AcceptedAt, a.AskedAt = timeOf(marked), timeOf(accepted), timeOf(asked)
	a.FinishedAt, a.LeaseOverAt = timeOf(finished), timeOf(over)
	a.ProviderID, a.CertificateID, a.WaiverID = providerID.String, certificate.String, waiver.String
	a.Outcome, a.Next = onejob.Outcome(outcome.String), onejob.Next(next.String)
	if a.OpenToProbes() { // else it is of when it was
		a.NextProbeAt = timeOf(probe)
	}
	a.Error = failureOf(code, text)
	a.Result = resultOf(result, resultType, lost)
	if usage.Valid {
		a.Usage = json.RawMessage(usage.String)
	}
	if err := scanDocuments(&a, evidence, ruling, discarded); err != nil {
		return a, unreadable(a.JobID, a.ID, err)
	}
	return a, nil
}

func scanDocuments(a *onejob.Attempt, evidence string, ruling, discarded pgtype.Text) (err error) {
	if err := json.Unmarshal([]byte(evidence), &a.Evidence); err != nil {
		return err
	}
	if a.Ruling, err = fromJSON[onejob.Ruling](ruling); err != nil {
		return err
	}
	a.Discarded, err = fromJSON[onejob.Discarded](discarded)
	return err
}

func fromJSON[T any](text pgtype.Text) (*T, error) {
	if !text.Valid {
		return nil, nil
	}
	value := new(T)
	return value, json.Unmarshal([]byte(text.String), value)
}

// toJSON writes one of the records above: plain structs, which always marshal.
func toJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func failureOf(code, message pgtype.Text) *onejob.Failure {
	if !code.Valid {
		return nil
	}
	return &onejob.Failure{Code: code.String, Message: message.String}
}

// resultOf returns nil where no answer is stored; an empty one has a type.
func resultOf(body []byte, contentType pgtype.Text, lost bool) *onejob.Result {
	if body == nil && !contentType.Valid && !lost {
		return nil
	}
	return &onejob.Result{Body: body, ContentType: contentType.String, Lost: lost}
}

func timeOf(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// stamp is a time as the database keeps it: in microseconds, never earlier than
// t, and NULL for none.
func stamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: micros(t), Valid: !t.IsZero()}
}

// micros rounds t up to what the database can keep, so that waiting until then
// is waiting long enough.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	if short := t.Truncate(time.Microsecond); !short.Equal(t) {
		return short.Add(time.Microsecond).UTC()
	}
	return t.UTC().Round(0)
}

// optional is NULL for the empty string.
func optional[S ~string](s S) pgtype.Text {
	return pgtype.Text{String: clean(string(s)), Valid: s != ""}
}

func present(s string, is bool) pgtype.Text { return pgtype.Text{String: clean(s), Valid: is} }

// storable reports whether a text column can hold every one of texts. What it
// cannot hold is in no row.
func storable[S ~string](texts ...S) bool {
	for _, s := range texts {
		if !utf8.ValidString(string(s)) || strings.Contains(string(s), "\x00") {
			return false
		}
	}
	return true
}

// clean makes text from outside what a text column can keep: an answer is not
// lost over a byte in a message.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

func failureColumns(f *onejob.Failure) (code, message pgtype.Text) {
	if f == nil {
		return code, message
	}
	return present(f.Code, true), present(f.Message, true)
}
