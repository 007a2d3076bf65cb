-- What no program may change, this one included.

-- +goose Up

-- What was asked for never changes. The one change permitted is emptying the
-- payload while saying when.
-- +goose StatementBegin
CREATE TRIGGER jobs_immutable BEFORE UPDATE ON jobs
WHEN (NEW.seq, NEW.part, NEW.id, NEW.owner, NEW.key_hash, NEW.fingerprint, NEW.fingerprint_version, NEW.effect, NEW.lanes, NEW.created_at)
     IS NOT
     (OLD.seq, OLD.part, OLD.id, OLD.owner, OLD.key_hash, OLD.fingerprint, OLD.fingerprint_version, OLD.effect, OLD.lanes, OLD.created_at)
     OR NEW.purged_at IS NULL
     OR NEW.input IS NOT NULL
     OR NEW.webhooks NOT IN ('', OLD.webhooks)
BEGIN
    SELECT RAISE(FAIL, 'a job is immutable');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER jobs_kept BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE(FAIL, 'a job is kept: its key answers for ever');
END;
-- +goose StatementEnd

-- A terminal state is final, and a taken slot is never taken again.
-- +goose StatementBegin
CREATE TRIGGER job_states_final BEFORE UPDATE ON job_states
WHEN (OLD.state = 'succeeded' OR OLD.state = 'failed' OR OLD.state = 'cancelled')
     AND (NEW.state, NEW.completed_by, NEW.finished_at) IS NOT (OLD.state, OLD.completed_by, OLD.finished_at)
BEGIN
    SELECT RAISE(FAIL, 'the job has ended, which is final');
END;
-- +goose StatementEnd

-- There is no question without its attempt. A reference would need an index over the
-- ids of attempts, one more on the way of each; they are found through their jobs.
-- +goose StatementBegin
CREATE TRIGGER probes_of_attempt BEFORE INSERT ON probes
WHEN NOT EXISTS (SELECT 1 FROM jobs j JOIN attempts a ON a.seq = j.seq
    WHERE j.part = NEW.part AND j.id = NEW.job_id AND a.id = NEW.attempt_id)
BEGIN
    SELECT RAISE(ABORT, 'a question is about an attempt');
END;
-- +goose StatementEnd

-- A state stands beside its job, under its number.
-- +goose StatementBegin
CREATE TRIGGER job_states_of_job BEFORE INSERT ON job_states
WHEN NOT EXISTS (SELECT 1 FROM jobs j WHERE j.seq = NEW.seq AND j.part = NEW.part AND j.id = NEW.job_id)
BEGIN
    SELECT RAISE(FAIL, 'a state carries the number of its job');
END;
-- +goose StatementEnd

-- Whose turn it is goes by the job's owner.
-- +goose StatementBegin
CREATE TRIGGER job_states_owner BEFORE UPDATE OF seq, part, job_id, owner ON job_states
WHEN (NEW.seq, NEW.part, NEW.job_id, NEW.owner) IS NOT (OLD.seq, OLD.part, OLD.job_id, OLD.owner)
BEGIN
    SELECT RAISE(FAIL, 'a job is immutable');
END;
-- +goose StatementEnd

-- A claim's token, its job and its target are set once. Statements that do not touch
-- them, as those of every attempt's end, do not pay for the question.
-- +goose StatementBegin
CREATE TRIGGER attempts_fixed BEFORE UPDATE OF seq, part, job_id, number, id, lane, lanes, target, claim_token, provider_key ON attempts
WHEN (NEW.seq, NEW.part, NEW.job_id, NEW.number, NEW.id, NEW.lane, NEW.lanes, NEW.target, NEW.claim_token, NEW.provider_key)
     IS NOT
     (OLD.seq, OLD.part, OLD.job_id, OLD.number, OLD.id, OLD.lane, OLD.lanes, OLD.target, OLD.claim_token, OLD.provider_key)
BEGIN
    SELECT RAISE(FAIL, 'an attempt cannot change what it is');
END;
-- +goose StatementEnd

-- A job's lanes cannot be exceeded by an attempt that says otherwise, and there is
-- no attempt without its job, which is never deleted. A reference to (part, id,
-- lanes) would need one more index on the way of every new job.
-- +goose StatementBegin
CREATE TRIGGER attempts_lanes BEFORE INSERT ON attempts
WHEN NEW.lanes IS NOT (SELECT j.lanes FROM jobs j WHERE j.seq = NEW.seq AND j.part = NEW.part AND j.id = NEW.job_id)
BEGIN
    SELECT RAISE(FAIL, 'an attempt carries the lanes of its job');
END;
-- +goose StatementEnd

-- Who is told about a job: where each subscription lies in its document.
CREATE VIEW subscribers AS
SELECT j.part, j.id AS job_id, j.webhooks, s.fullkey || '.events' AS events, json_extract(j.webhooks, s.fullkey || '.endpoint') AS endpoint
FROM jobs j, json_each(CASE j.webhooks WHEN '' THEN '[]' ELSE j.webhooks END) s;

-- The outbox is written here, by the statement that changes what it tells of: no
-- path to a change can forget it, and no path to it leaves the change out.
--
-- Every subscriber is told how a job ended. A job that ends twice is against the
-- rules elsewhere; that it is told once must not keep it from ending.
-- +goose StatementBegin
CREATE TRIGGER job_states_told AFTER UPDATE OF state ON job_states
WHEN NEW.hooked AND NEW.state IN ('succeeded', 'failed', 'cancelled') AND OLD.state NOT IN ('succeeded', 'failed', 'cancelled')
BEGIN
    INSERT INTO deliveries (part, id, job_id, endpoint, event, created_at, since, due_at)
    SELECT NEW.part, 'msg_' || printf('%02x', NEW.part) || lower(hex(randomblob(16))), NEW.job_id, w.endpoint, 'job.' || NEW.state,
        NEW.finished_at, NEW.finished_at, NEW.finished_at
    FROM (SELECT DISTINCT endpoint FROM subscribers WHERE part = NEW.part AND job_id = NEW.job_id AND endpoint <> '') w
    WHERE true
    ON CONFLICT DO NOTHING;
END;
-- +goose StatementEnd

-- A job can end as it is created: its deadline had passed.
-- +goose StatementBegin
CREATE TRIGGER job_states_told_at_once AFTER INSERT ON job_states
WHEN NEW.hooked AND NEW.state IN ('succeeded', 'failed', 'cancelled')
BEGIN
    INSERT INTO deliveries (part, id, job_id, endpoint, event, created_at, since, due_at)
    SELECT NEW.part, 'msg_' || printf('%02x', NEW.part) || lower(hex(randomblob(16))), NEW.job_id, w.endpoint, 'job.' || NEW.state,
        NEW.finished_at, NEW.finished_at, NEW.finished_at
    FROM (SELECT DISTINCT endpoint FROM subscribers WHERE part = NEW.part AND job_id = NEW.job_id AND endpoint <> '') w
    WHERE true
    ON CONFLICT DO NOTHING;
END;
-- +goose StatementEnd

-- Who asks for it is told what was written down.
-- +goose StatementBegin
CREATE TRIGGER events_told AFTER INSERT ON events
WHEN NEW.kind IN ('blocked', 'asked', 'duplicate_effect', 'effect_after_close')
BEGIN
    INSERT INTO deliveries (part, id, job_id, attempt_id, endpoint, event, created_at, since, due_at)
    SELECT NEW.part, 'msg_' || printf('%02x', NEW.part) || lower(hex(randomblob(16))), NEW.job_id, NEW.attempt_id, w.endpoint, w.event,
        NEW.at, NEW.at, NEW.at
    FROM (
        SELECT DISTINCT s.endpoint, e.value AS event FROM subscribers s, json_each(s.webhooks, s.events) e
        WHERE s.part = NEW.part AND s.job_id = NEW.job_id AND s.endpoint <> '' AND e.value = CASE NEW.kind
            WHEN 'blocked'            THEN 'job.blocked'
            WHEN 'asked'              THEN 'attempt.asked'
            WHEN 'duplicate_effect'   THEN 'incident.duplicate_effect'
            WHEN 'effect_after_close' THEN 'incident.effect_after_close'
        END
    ) w;
END;
-- +goose StatementEnd

-- And that an attempt entered unknown, which is written down nowhere else. None can
-- without saying when; those that end otherwise do not pay for the question.
-- +goose StatementBegin
CREATE TRIGGER attempts_told AFTER UPDATE OF unknown_at ON attempts
WHEN NEW.state = 'unknown' AND OLD.state <> 'unknown'
BEGIN
    INSERT INTO deliveries (part, id, job_id, attempt_id, endpoint, event, created_at, since, due_at)
    SELECT NEW.part, 'msg_' || printf('%02x', NEW.part) || lower(hex(randomblob(16))), NEW.job_id, NEW.id, w.endpoint, 'attempt.unknown',
        w.at, w.at, w.at
    FROM (
        SELECT DISTINCT s.endpoint, NEW.unknown_at AS at
        FROM subscribers s, json_each(s.webhooks, s.events) e
        WHERE s.part = NEW.part AND s.job_id = NEW.job_id AND s.endpoint <> '' AND e.value = 'attempt.unknown'
    ) w;
END;
-- +goose StatementEnd

-- The audit only grows, each entry following on the one before. This also refuses
-- INSERT OR REPLACE, which removes a row without asking the trigger on DELETE.
-- +goose StatementBegin
CREATE TRIGGER audit_follows BEFORE INSERT ON audit
WHEN (NEW.seq, NEW.prev) IS NOT (
        coalesce((SELECT max(seq) FROM audit WHERE part = NEW.part AND owner = NEW.owner), 0) + 1,
        coalesce((SELECT hash FROM audit WHERE part = NEW.part AND owner = NEW.owner ORDER BY seq DESC LIMIT 1), x''))
BEGIN
    SELECT RAISE(ABORT, 'an audit entry follows on the one before');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_heads_forward BEFORE UPDATE ON audit_heads
WHEN (NEW.part, NEW.owner) IS NOT (OLD.part, OLD.owner) OR NEW.seq <= OLD.seq
BEGIN
    SELECT RAISE(ABORT, 'the end of an audit chain only moves on');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

-- A store that was restored from a backup takes no work until a person confirms it:
-- what is new there may have been done before.
-- +goose StatementBegin
CREATE TRIGGER jobs_unrestored BEFORE INSERT ON jobs
WHEN EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(FAIL, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER attempts_unrestored BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(FAIL, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER attempts_unrestored_mark BEFORE UPDATE OF state ON attempts
WHEN OLD.state = 'starting' AND NEW.state = 'running'
     AND EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(FAIL, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER probes_unrestored BEFORE INSERT ON probes
WHEN NEW.method = 'replay' AND NEW.outcome IS NULL
     AND EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- Versions are addressed by what they say, and evidence stays as it was found.
-- +goose StatementBegin
CREATE TRIGGER contract_versions_immutable BEFORE UPDATE ON contract_versions
BEGIN
    SELECT RAISE(ABORT, 'a version is immutable');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER contract_versions_kept BEFORE DELETE ON contract_versions
BEGIN
    SELECT RAISE(ABORT, 'a version is kept');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER targets_immutable BEFORE UPDATE ON targets
BEGIN
    SELECT RAISE(ABORT, 'a version is immutable');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER targets_kept BEFORE DELETE ON targets
BEGIN
    SELECT RAISE(ABORT, 'a version is kept');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER certificates_fixed BEFORE UPDATE ON certificates
WHEN (NEW.id, NEW.kind, NEW.contract_digest, NEW.target_digest, NEW.environment, NEW.verdict, NEW.run_id, NEW.issued_at)
     IS NOT
     (OLD.id, OLD.kind, OLD.contract_digest, OLD.target_digest, OLD.environment, OLD.verdict, OLD.run_id, OLD.issued_at)
BEGIN
    SELECT RAISE(ABORT, 'a certificate cannot change what it is');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER certificates_final BEFORE UPDATE ON certificates
WHEN NEW.status <> OLD.status AND NOT (OLD.status = 'active' OR OLD.status = 'suspended' AND NEW.status IN ('revoked', 'superseded'))
BEGIN
    SELECT RAISE(ABORT, 'what a certificate lost does not come back');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER certificates_kept BEFORE DELETE ON certificates
BEGIN
    SELECT RAISE(ABORT, 'a certificate is kept');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER waivers_fixed BEFORE UPDATE ON waivers
WHEN (NEW.id, NEW.kind, NEW.contract_digest, NEW.target_digest, NEW.environment, NEW.actor, NEW.reason, NEW.granted_at, NEW.expires_at)
     IS NOT
     (OLD.id, OLD.kind, OLD.contract_digest, OLD.target_digest, OLD.environment, OLD.actor, OLD.reason, OLD.granted_at, OLD.expires_at)
     OR OLD.revoked_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a waiver can only be revoked, and once');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER waivers_kept BEFORE DELETE ON waivers
BEGIN
    SELECT RAISE(ABORT, 'a waiver is kept');
END;
-- +goose StatementEnd
