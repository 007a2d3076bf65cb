-- What no program may change, this one included.

-- +goose Up

-- What was asked for never changes. The one change permitted is emptying the
-- payload while saying when.
-- +goose StatementBegin
CREATE TRIGGER jobs_immutable BEFORE UPDATE ON jobs
WHEN (NEW.part, NEW.id, NEW.owner, NEW.key_hash, NEW.fingerprint, NEW.fingerprint_version, NEW.effect, NEW.lanes, NEW.created_at)
     IS NOT
     (OLD.part, OLD.id, OLD.owner, OLD.key_hash, OLD.fingerprint, OLD.fingerprint_version, OLD.effect, OLD.lanes, OLD.created_at)
     OR NEW.purged_at IS NULL
     OR NEW.input IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a job is immutable');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER jobs_kept BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE(ABORT, 'a job is kept: its key answers for ever');
END;
-- +goose StatementEnd

-- A terminal state is final, and a taken slot is never taken again.
-- +goose StatementBegin
CREATE TRIGGER job_states_final BEFORE UPDATE ON job_states
WHEN OLD.state IN ('succeeded', 'failed', 'cancelled')
     AND (NEW.state, NEW.completed_by, NEW.finished_at) IS NOT (OLD.state, OLD.completed_by, OLD.finished_at)
BEGIN
    SELECT RAISE(ABORT, 'the job has ended, which is final');
END;
-- +goose StatementEnd

-- A claim's token, its job and its target are set once.
-- +goose StatementBegin
CREATE TRIGGER attempts_fixed BEFORE UPDATE ON attempts
WHEN (NEW.part, NEW.job_id, NEW.number, NEW.id, NEW.lane, NEW.lanes, NEW.target, NEW.claim_token, NEW.provider_key)
     IS NOT
     (OLD.part, OLD.job_id, OLD.number, OLD.id, OLD.lane, OLD.lanes, OLD.target, OLD.claim_token, OLD.provider_key)
BEGIN
    SELECT RAISE(ABORT, 'an attempt cannot change what it is');
END;
-- +goose StatementEnd

-- A job's lanes cannot be exceeded by an attempt that says otherwise. A reference
-- to (part, id, lanes) would need one more index on the way of every new job.
-- +goose StatementBegin
CREATE TRIGGER attempts_lanes BEFORE INSERT ON attempts
WHEN NEW.lanes IS NOT (SELECT j.lanes FROM jobs j WHERE j.part = NEW.part AND j.id = NEW.job_id)
BEGIN
    SELECT RAISE(ABORT, 'an attempt carries the lanes of its job');
END;
-- +goose StatementEnd

-- A store that was restored from a backup takes no work until a person confirms it:
-- what is new there may have been done before.
-- +goose StatementBegin
CREATE TRIGGER jobs_unrestored BEFORE INSERT ON jobs
WHEN EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER attempts_unrestored BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'restore unconfirmed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER attempts_unrestored_mark BEFORE UPDATE OF state ON attempts
WHEN OLD.state = 'starting' AND NEW.state = 'running'
     AND EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'restore unconfirmed');
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
