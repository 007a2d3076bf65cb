-- The rows of one job lie in one part: every key, constraint and reference has it,
-- so that the same schema runs hash-partitioned or sharded by it.
--
-- A job is two rows. jobs is what was asked for and never changes; job_states is
-- what became of it, narrow, so that a change rewrites little.
--
-- Columns of a fixed width come first, then what stays, then what an end writes: an
-- update logs what lies between the first byte that it changes and the last.

-- +goose Up
-- +goose StatementBegin

-- The database's clock. Tests put their own in its place.
CREATE FUNCTION onejob_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()';

-- The words that columns hold. A domain is read once a session, where a CHECK with as
-- many words would be read anew, and planned, by every statement that writes a row.
CREATE DOMAIN onejob_effect AS text CHECK (VALUE IN ('none', 'idempotent', 'external'));
CREATE DOMAIN onejob_job_state AS text CHECK (VALUE IN ('queued', 'running', 'blocked', 'succeeded', 'failed', 'cancelled'));
CREATE DOMAIN onejob_attempt_state AS text CHECK (VALUE IN ('starting', 'running', 'unknown', 'succeeded', 'discarded', 'failed', 'cancelled'));
CREATE DOMAIN onejob_phase AS text CHECK (VALUE IN ('not_sent', 'partly_sent', 'sent', 'answered'));
CREATE DOMAIN onejob_outcome AS text CHECK (VALUE IN ('not_executed', 'refused', 'executed_failed', 'contract_violation', 'succeeded', 'accepted', 'unknown', 'result_lost', 'cancelled'));
CREATE DOMAIN onejob_next AS text CHECK (VALUE IN ('again', 'elsewhere', 'nowhere'));

CREATE TABLE jobs (
    part                smallint    NOT NULL CHECK (part BETWEEN 0 AND 255),
    lanes               smallint    NOT NULL CHECK (lanes BETWEEN 1 AND 16),
    priority            smallint    NOT NULL,
    fingerprint_version smallint    NOT NULL,
    created_at          timestamptz NOT NULL,
    deadline            timestamptz,
    purged_at           timestamptz,
    id                  text COLLATE "C" NOT NULL,
    owner               text        NOT NULL CHECK (owner <> ''),
    key_hash            bytea       NOT NULL,
    key_prefix          text        NOT NULL,
    fingerprint         bytea       NOT NULL,
    create_token        text        NOT NULL,
    kind                text        NOT NULL,
    input               bytea,                -- NULL once purged
    target              text        NOT NULL, -- asked for; '' is the kind's first
    effect              onejob_effect NOT NULL,
    policy              text        NOT NULL, -- JSON, as pinned at creation, what most have left out; '' once shrunk
    metadata            bytea,
    supersedes          text        NOT NULL,
    trace               text        NOT NULL,
    webhooks            text        NOT NULL DEFAULT '', -- JSON, who is told about it; '' for nobody
    -- An id is one job's by the key of job_states, which is made with it; what attempts
    -- carry lanes from needs no index of its own.
    PRIMARY KEY (part, id, lanes),
    -- Nobody can open a racing lane on a charge.
    CONSTRAINT jobs_race_without_effect CHECK (lanes = 1 OR effect = 'none'),
    CONSTRAINT jobs_input_until_purged CHECK ((input IS NULL) = (purged_at IS NOT NULL)),
    -- What cannot be read here would keep the job from ending.
    CONSTRAINT jobs_webhooks CHECK (CASE webhooks WHEN '' THEN true ELSE jsonb_typeof(webhooks::jsonb) = 'array' END)
);
-- Out of line and as it came: compressing on the way in costs more than it saves.
ALTER TABLE jobs ALTER COLUMN input SET STORAGE EXTERNAL;
-- A fifth of a large table is too long to wait: retention empties its oldest rows a
-- few at a time, and what it leaves behind is to be used again soon.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

CREATE TABLE job_states (
    part                smallint    NOT NULL,
    priority            smallint    NOT NULL,
    attempts_made       integer     NOT NULL DEFAULT 0,
    run_after           timestamptz NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT onejob_now(), -- as jobs.created_at, for the index
    deadline            timestamptz,          -- as jobs.deadline, for the index
    held_at             timestamptz,          -- since the store was restored
    unblocked_at        timestamptz,
    cancel_requested_at timestamptz,
    replays             integer     NOT NULL DEFAULT 0,
    due                 boolean     NOT NULL, -- run_after has come, as far as anybody has looked
    purged              boolean     NOT NULL DEFAULT false, -- as jobs.purged_at, for the index
    hooked              boolean     NOT NULL DEFAULT false, -- jobs.webhooks is not empty
    job_id              text COLLATE "C" NOT NULL,
    owner               text COLLATE "C" NOT NULL, -- as jobs.owner, for the index: owners take turns
    next_target         text        NOT NULL, -- '' when none is next; of a closed job it says nothing
    state               onejob_job_state NOT NULL,
    -- The state of those that wait. Indexes go by it, so that one which runs and succeeds
    -- changes nothing that is in an index: its row is rewritten on its page, and they are not.
    waiting             text        GENERATED ALWAYS AS (CASE WHEN state IN ('queued', 'blocked') THEN state END) STORED,
    version             bigint      NOT NULL DEFAULT 1,
    revision            bigint      NOT NULL DEFAULT 1,
    finished_at         timestamptz,
    completed_by        text,
    blocked             text,                 -- JSON, with state blocked
    blocked_reason      text,
    error_code          text,
    error               text,
    superseded_by       text,
    PRIMARY KEY (part, job_id), -- made by the statement that makes the job, which is kept: no reference
    CONSTRAINT job_states_winner     CHECK ((state = 'succeeded') = (completed_by IS NOT NULL)),
    CONSTRAINT job_states_finished   CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT job_states_blocked    CHECK ((state = 'blocked') = (blocked IS NOT NULL AND blocked_reason IS NOT NULL)),
    CONSTRAINT job_states_failed     CHECK ((state = 'failed') = (error_code IS NOT NULL)),
    CONSTRAINT job_states_cancelled  CHECK (state <> 'cancelled' OR cancel_requested_at IS NOT NULL),
    CONSTRAINT job_states_purged     CHECK (NOT purged OR finished_at IS NOT NULL)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE TABLE attempts (
    part                smallint    NOT NULL,
    lane                smallint    NOT NULL CHECK (lane >= 0),
    number              integer     NOT NULL CHECK (number >= 1),
    job_version         bigint      NOT NULL,
    lease_expires_at    timestamptz NOT NULL,
    started_at          timestamptz NOT NULL,
    marked_at           timestamptz,
    send_by             timestamptz,
    quarantine_until    timestamptz,
    cost_micros         bigint      NOT NULL DEFAULT 0,
    probes_made         integer     NOT NULL DEFAULT 0,
    lanes               smallint,             -- the job's, beyond its first lane; NULL in that, which every job has
    own_fault           boolean     NOT NULL DEFAULT false,
    result_lost         boolean     NOT NULL DEFAULT false,
    job_id              text COLLATE "C" NOT NULL,
    id                  text COLLATE "C" NOT NULL,
    target              text        NOT NULL,
    target_digest       text        NOT NULL,
    claim_token         text        NOT NULL CHECK (claim_token <> ''),
    worker              text        NOT NULL,
    provider_key        text        NOT NULL,
    certificate_id      text,
    waiver_id           text,
    request_key_hash    bytea,
    request_fingerprint bytea,
    currency            text        NOT NULL DEFAULT '',
    state               onejob_attempt_state NOT NULL,
    phase               onejob_phase NOT NULL,
    outcome             onejob_outcome,
    next                onejob_next,
    finished_at         timestamptz,
    evidence            text        NOT NULL DEFAULT '{}', -- JSON
    provider_id         text,
    result              bytea,
    result_type         text,
    usage               text,                 -- JSON
    error_code          text,
    error               text,
    retry_at            timestamptz,
    lease_over_at       timestamptz,          -- it ended without word
    ruling              text,                 -- JSON
    discarded           text,                 -- JSON, with state discarded
    probe_at            timestamptz,          -- when the next question is due, while it is open to them
    ask_at              timestamptz,          -- when a person is to be asked about it
    asked_at            timestamptz,
    accepted_at         timestamptz,
    -- An id carries job and number, and is found by them. That it is one attempt's follows
    -- from that, and needs no index of its own.
    PRIMARY KEY (part, job_id, number),
    -- A job's lanes cannot be exceeded by an attempt that says otherwise. The first lane
    -- exceeds none, and looks nothing up.
    FOREIGN KEY (part, job_id, lanes) REFERENCES jobs (part, id, lanes),
    CONSTRAINT attempts_lane         CHECK (CASE lane WHEN 0 THEN lanes IS NULL ELSE lanes IS NOT NULL AND lane < lanes END),
    CONSTRAINT attempts_marked       CHECK (state <> 'running' OR (marked_at IS NOT NULL AND send_by IS NOT NULL)),
    CONSTRAINT attempts_never_marked CHECK (state <> 'starting' OR (marked_at IS NULL AND send_by IS NULL)),
    CONSTRAINT attempts_finished     CHECK ((state IN ('starting', 'running', 'unknown')) = (finished_at IS NULL)),
    CONSTRAINT attempts_outcome      CHECK (state IN ('starting', 'running') OR outcome IS NOT NULL),
    CONSTRAINT attempts_discarded    CHECK ((state = 'discarded') = (discarded IS NOT NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE attempts ALTER COLUMN result SET STORAGE EXTERNAL;

-- The guard: at most one attempt of a job and lane is in doubt.
CREATE UNIQUE INDEX attempts_in_doubt ON attempts (part, job_id, lane)
    WHERE state IN ('starting', 'running', 'unknown');

-- The fallback button clicked twice is one attempt.
CREATE UNIQUE INDEX attempts_one_per_request ON attempts (part, job_id, request_key_hash)
    WHERE request_key_hash IS NOT NULL;

-- Live states only: history does not slow them.
-- What its provider has accepted needs no lease, and would only be walked over.
CREATE INDEX attempts_leases ON attempts (lease_expires_at)
    WHERE state IN ('starting', 'running') AND outcome IS DISTINCT FROM 'accepted';
CREATE INDEX attempts_unknown ON attempts (started_at DESC, id DESC) WHERE state = 'unknown';
-- What may be asked about, and when.
CREATE INDEX attempts_to_probe ON attempts (probe_at)
    WHERE state = 'unknown' OR (state = 'running' AND outcome = 'accepted');
CREATE INDEX attempts_to_ask ON attempts (ask_at)
    WHERE (state = 'unknown' OR (state = 'running' AND outcome = 'accepted')) AND asked_at IS NULL;
-- By target first: a claimer takes only targets that it can call, and never walks
-- over the jobs of others. Then by owner: they take turns.
CREATE INDEX job_states_due ON job_states (next_target, owner, priority DESC, run_after) WHERE waiting = 'queued' AND due;
CREATE INDEX job_states_later ON job_states (next_target, run_after) WHERE waiting = 'queued' AND NOT due;
CREATE INDEX job_states_deadline ON job_states (deadline, part, job_id) WHERE waiting = 'queued' AND deadline IS NOT NULL;
CREATE INDEX job_states_blocked ON job_states (part, job_id) WHERE waiting = 'blocked';
-- What a restore has still to hold.
CREATE INDEX job_states_held ON job_states (held_at) WHERE waiting = 'blocked';
-- Those that something other than news of an attempt, or a person, can free.
CREATE INDEX job_states_to_free ON job_states (run_after, part, job_id)
    WHERE waiting = 'blocked' AND blocked_reason NOT IN ('attempt_unknown', 'parked', 'needs_operator');
-- Ascending, so that what is new comes last, and without the id: what was created at
-- one time is sorted as it is read.
CREATE INDEX jobs_by_owner ON jobs (owner, created_at);
CREATE INDEX jobs_by_time ON jobs (created_at);
-- The double click: one owner's key is one job, for ever. In a table without statistics
-- all indexes that begin with a column asked for are worth the same, and the last that
-- was made is taken: who looks for an id would walk over the keys of its part, were that
-- the first column, and who looks for a key over the owner's jobs, came this any sooner.
ALTER TABLE jobs ADD CONSTRAINT jobs_one_per_key UNIQUE (owner, part, key_hash);
-- What purging looks for: payloads to empty, by the time of creation, which the end
-- does not change (those that run are passed over), and tombstones to shrink.
CREATE INDEX job_states_old ON job_states (created_at) WHERE waiting IS NULL AND NOT purged;
CREATE INDEX jobs_tombstones ON jobs (created_at) WHERE purged_at IS NOT NULL AND policy <> '';

-- What rows cannot tell.
CREATE TABLE events (
    part       smallint    NOT NULL,
    job_id     text COLLATE "C" NOT NULL,
    id         bigint      GENERATED ALWAYS AS IDENTITY,
    attempt_id text        NOT NULL DEFAULT '',
    kind       text        NOT NULL,
    at         timestamptz NOT NULL,
    actor      text        NOT NULL DEFAULT '',
    detail     text        NOT NULL DEFAULT '',
    closed_at  timestamptz, -- of an incident
    closed_by  text,
    note       text        CHECK (note <> ''), -- what came of it
    PRIMARY KEY (part, job_id, id),
    FOREIGN KEY (part, job_id) REFERENCES job_states (part, job_id),
    CONSTRAINT events_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL) AND (closed_at IS NULL) = (note IS NULL)),
    CONSTRAINT events_only_incidents_close CHECK (closed_at IS NULL OR kind IN ('duplicate_effect', 'effect_after_close'))
);
CREATE INDEX events_open_incidents ON events (part, job_id)
    WHERE kind IN ('duplicate_effect', 'effect_after_close') AND closed_at IS NULL;
CREATE INDEX events_incidents ON events (at DESC, part DESC, id DESC)
    WHERE kind IN ('duplicate_effect', 'effect_after_close');
CREATE INDEX events_incident ON events (part, id)
    WHERE kind IN ('duplicate_effect', 'effect_after_close');

-- Each question to a provider about an attempt, and its answer.
CREATE TABLE probes (
    part       smallint    NOT NULL,
    job_id     text COLLATE "C" NOT NULL,
    attempt    integer     NOT NULL, -- its number
    number     integer     NOT NULL CHECK (number >= 1),
    method     text        NOT NULL CHECK (method IN ('callback', 'lookup', 'search', 'replay')),
    at         timestamptz NOT NULL,
    outcome    onejob_outcome,
    detail     text        NOT NULL,
    evidence   text        NOT NULL, -- JSON
    next_at    timestamptz,
    PRIMARY KEY (part, job_id, attempt, number),
    FOREIGN KEY (part, job_id, attempt) REFERENCES attempts (part, job_id, number)
);

-- The outbox: one webhook to one endpoint a row. Triggers write them.
CREATE TABLE deliveries (
    part        smallint    NOT NULL,
    id          text COLLATE "C" NOT NULL,
    job_id      text COLLATE "C" NOT NULL,
    attempt_id  text        NOT NULL DEFAULT '',
    endpoint    text COLLATE "C" NOT NULL CHECK (endpoint <> ''),
    event       text        NOT NULL CHECK (event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked',
        'attempt.unknown', 'attempt.asked', 'incident.duplicate_effect', 'incident.effect_after_close')),
    state       text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    tries       integer     NOT NULL DEFAULT 0 CHECK (tries >= 0),
    resent      integer NOT NULL DEFAULT 0, -- how often; a try under way meanwhile does not count
    status      integer     NOT NULL DEFAULT 0,
    error       text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    since       timestamptz NOT NULL,         -- when it was made or last resent
    due_at      timestamptz,
    finished_at timestamptz,
    body        bytea,                        -- what the first try sent
    PRIMARY KEY (part, id),
    FOREIGN KEY (part, job_id) REFERENCES job_states (part, job_id),
    CONSTRAINT deliveries_pending  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
    CONSTRAINT deliveries_finished CHECK ((state = 'pending') = (finished_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE deliveries ALTER COLUMN body SET STORAGE EXTERNAL;
-- The end of a job is told to an endpoint once, ever.
CREATE UNIQUE INDEX deliveries_one_end ON deliveries (part, job_id, endpoint)
    WHERE event IN ('job.succeeded', 'job.failed', 'job.cancelled');
-- By endpoint first: what waits for one keeps no other's from their turn.
CREATE INDEX deliveries_due ON deliveries (endpoint, due_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (since) WHERE state = 'pending';
CREATE INDEX deliveries_of_job ON deliveries (part, job_id, created_at DESC, id DESC);
CREATE INDEX deliveries_by_time ON deliveries (created_at DESC, id DESC);

-- Who waits for a job that came without a key. The row is gone once they were answered.
CREATE TABLE waiters (
    part        smallint    NOT NULL,
    job_id      text COLLATE "C" NOT NULL,
    owner       text        NOT NULL, -- the job's, as its fingerprint is
    route       text        NOT NULL,
    fingerprint bytea       NOT NULL,
    token       text        NOT NULL, -- '' once they have gone
    until       timestamptz NOT NULL, -- the end of the lease, or when they left
    PRIMARY KEY (part, job_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX waiters_alike ON waiters (part, fingerprint);
CREATE INDEX waiters_gone ON waiters (until);

-- What has come of an answer that arrives in pieces. Each but the first follows one of
-- the same attempt: a job shows nobody a piece of one answer after a piece of another.
-- When a piece is deleted what follows it is asked for, by columns of which only the index
-- for it has more than the part: by job_id the planner would take the primary key, and
-- look through all pieces of the job for each.
CREATE TABLE chunks (
    part     smallint NOT NULL,
    job_id   text COLLATE "C" NOT NULL,
    number   integer  NOT NULL CHECK (number >= 0),
    attempt  integer  NOT NULL, -- its number
    previous integer,           -- number - 1
    follows  text COLLATE "C",  -- with previous: job_id
    body     bytea    NOT NULL CHECK (length(body) BETWEEN 1 AND 65536),
    PRIMARY KEY (part, job_id, number),
    CONSTRAINT chunks_of_attempt UNIQUE (part, job_id, attempt, number),
    CONSTRAINT chunks_follow CHECK (CASE number WHEN 0 THEN previous IS NULL ELSE previous IS NOT NULL AND previous = number - 1 END),
    CHECK (CASE number WHEN 0 THEN follows IS NULL ELSE follows IS NOT NULL AND follows = job_id END),
    FOREIGN KEY (part, job_id, attempt) REFERENCES attempts (part, job_id, number),
    FOREIGN KEY (part, follows, attempt, previous) REFERENCES chunks (part, job_id, attempt, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE chunks ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX chunks_after ON chunks (part, follows, attempt, previous);

-- Endpoints that are not sent anything.
CREATE TABLE webhook_endpoints (
    id          text COLLATE "C" PRIMARY KEY,
    disabled_at timestamptz NOT NULL,
    reason      text        NOT NULL
);

CREATE TABLE api_keys (
    id         text        PRIMARY KEY,
    owner      text        NOT NULL CHECK (owner <> ''),
    role       text        NOT NULL CHECK (role IN ('viewer', 'submitter', 'operator', 'admin')),
    act_as     boolean     NOT NULL,
    hash       bytea       NOT NULL, -- of the secret, which is stored nowhere
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

-- What people did with power: a chain of hashes for each owner, which only grows.
CREATE TABLE audit (
    part    smallint    NOT NULL CHECK (part BETWEEN 0 AND 255),
    owner   text COLLATE "C" NOT NULL CHECK (owner <> ''),
    seq     bigint      NOT NULL CHECK (seq >= 1),
    at      timestamptz NOT NULL,
    actor   text        NOT NULL,
    action  text        NOT NULL CHECK (action <> ''),
    subject text        NOT NULL,
    detail  text        NOT NULL,
    prev    bytea       NOT NULL, -- hash of the entry before; empty for the first
    hash    bytea       NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (part, owner, seq),
    CONSTRAINT audit_begins CHECK ((seq = 1) = (length(prev) = 0))
);
CREATE INDEX audit_by_time ON audit (at DESC, owner DESC, seq DESC);

-- The end of each chain. Whoever adds to one locks this row first.
CREATE TABLE audit_heads (
    part  smallint    NOT NULL,
    owner text COLLATE "C" NOT NULL,
    seq   bigint      NOT NULL DEFAULT 0, -- 0 only in the transaction that adds the first entry
    at    timestamptz,
    hash  bytea       NOT NULL DEFAULT '',
    PRIMARY KEY (part, owner)
);

-- What each step of the schema was when it was applied, which is a part of it.
CREATE TABLE schema_steps (
    version bigint PRIMARY KEY,
    digest  text   NOT NULL
);

-- Whether the store went back in time: its number only grows while it lives on, and
-- the highest one seen is kept outside. With restored_at it waits for a person.
CREATE TABLE store_generation (
    id           smallint    PRIMARY KEY CHECK (id = 1),
    number       bigint      NOT NULL,
    restored_at  timestamptz,
    confirmed_at timestamptz,
    confirmed_by text
) WITH (fillfactor = 50);
INSERT INTO store_generation (id, number) VALUES (1, 1);

-- A store that was restored from a backup takes no work until a person confirms it:
-- what is new there may have been done before.
CREATE FUNCTION onejob_refuse_restored() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM store_generation WHERE restored_at IS NOT NULL) THEN
        RAISE EXCEPTION 'restore unconfirmed' USING ERRCODE = 'OJ001';
    END IF;
END $$;
CREATE FUNCTION onejob_unrestored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM onejob_refuse_restored();
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_unrestored BEFORE INSERT ON jobs FOR EACH STATEMENT EXECUTE FUNCTION onejob_unrestored();
CREATE TRIGGER attempts_unrestored BEFORE INSERT ON attempts FOR EACH STATEMENT EXECUTE FUNCTION onejob_unrestored();
CREATE TRIGGER probes_unrestored BEFORE INSERT ON probes FOR EACH ROW
    WHEN (NEW.method = 'replay' AND NEW.outcome IS NULL) EXECUTE FUNCTION onejob_unrestored();

-- What was asked for never changes. The one change permitted is emptying: the
-- payload while saying when, and later all but the key and what it is bound to.
CREATE FUNCTION onejob_jobs_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF ROW(NEW.part, NEW.id, NEW.owner, NEW.key_hash, NEW.fingerprint, NEW.fingerprint_version, NEW.effect, NEW.lanes, NEW.created_at)
       IS DISTINCT FROM
       ROW(OLD.part, OLD.id, OLD.owner, OLD.key_hash, OLD.fingerprint, OLD.fingerprint_version, OLD.effect, OLD.lanes, OLD.created_at)
       OR NEW.purged_at IS NULL
       OR NEW.purged_at <> OLD.purged_at
       OR NEW.input IS NOT NULL
       OR (NEW.metadata IS NOT NULL AND NEW.metadata IS DISTINCT FROM OLD.metadata)
       OR NEW.kind         NOT IN ('', OLD.kind)
       OR NEW.target       NOT IN ('', OLD.target)
       OR NEW.policy       NOT IN ('', OLD.policy)
       OR NEW.supersedes   NOT IN ('', OLD.supersedes)
       OR NEW.webhooks     NOT IN ('', OLD.webhooks)
       OR NEW.create_token NOT IN ('', OLD.create_token)
       OR (NEW.deadline IS NOT NULL AND NEW.deadline IS DISTINCT FROM OLD.deadline)
    THEN
        RAISE EXCEPTION 'job % is immutable', OLD.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_immutable BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION onejob_jobs_immutable();

CREATE FUNCTION onejob_jobs_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % is kept: its key answers for ever', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER jobs_kept BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION onejob_jobs_kept();

-- What refuses a change comes after it, in the same statement: one before it would lock,
-- and log, every row a second time. Which columns are set, and a condition that is short,
-- keep what happens all the time from calling anything: the condition of a trigger is
-- read anew by every statement that sets its columns.
CREATE FUNCTION onejob_states_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % is immutable', OLD.job_id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER job_states_fixed AFTER UPDATE OF part, job_id, owner ON job_states FOR EACH ROW
    WHEN (ROW(NEW.part, NEW.job_id, NEW.owner) IS DISTINCT FROM ROW(OLD.part, OLD.job_id, OLD.owner))
    EXECUTE FUNCTION onejob_states_fixed();

-- A claim's token, its job and its target are set once.
CREATE FUNCTION onejob_attempts_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'attempt % cannot change what it is', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER attempts_fixed AFTER UPDATE OF part, job_id, number, id, lane, lanes, target, claim_token, provider_key ON attempts FOR EACH ROW
    WHEN (ROW(NEW.part, NEW.job_id, NEW.number, NEW.id, NEW.lane, NEW.lanes, NEW.target, NEW.claim_token, NEW.provider_key)
          IS DISTINCT FROM
          ROW(OLD.part, OLD.job_id, OLD.number, OLD.id, OLD.lane, OLD.lanes, OLD.target, OLD.claim_token, OLD.provider_key))
    EXECUTE FUNCTION onejob_attempts_fixed();

-- The outbox is written below, by the statement that changes what it tells of: no
-- path to a change can forget it, and no path to it leaves the change out. The
-- conditions stand at the triggers, where they cost a job without webhooks nothing.
--
-- Every subscriber is told how a job ended, and of the rest who asks. A job that
-- ends twice is against the rules elsewhere; that it is told once must not keep it
-- from ending.
CREATE FUNCTION onejob_tell(told_part smallint, told_job text, told_attempt text, told_event text, is_end boolean) RETURNS void LANGUAGE sql AS $$
    INSERT INTO deliveries (part, id, job_id, attempt_id, endpoint, event, created_at, since, due_at)
    SELECT j.part, 'msg_' || lpad(to_hex(j.part::integer), 2, '0') || replace(gen_random_uuid()::text, '-', ''),
           j.id, told_attempt, w.endpoint, told_event, onejob_now(), onejob_now(), onejob_now()
      FROM jobs j
     CROSS JOIN LATERAL (
           SELECT DISTINCT s ->> 'endpoint' AS endpoint
             FROM jsonb_array_elements((CASE j.webhooks WHEN '' THEN '[]' ELSE j.webhooks END)::jsonb) s
            WHERE s ->> 'endpoint' <> '' AND (is_end OR s -> 'events' ? told_event)
           ) w
     WHERE j.part = told_part AND j.id = told_job
    ON CONFLICT DO NOTHING
$$;

-- A terminal state is final, and a taken slot is never taken again. What has finished_at
-- is terminal, and the other way round.
CREATE FUNCTION onejob_states_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.finished_at IS NOT NULL THEN
        IF ROW(NEW.state, NEW.completed_by, NEW.finished_at) IS DISTINCT FROM ROW(OLD.state, OLD.completed_by, OLD.finished_at) THEN
            RAISE EXCEPTION 'job % is %, which is final', OLD.job_id, OLD.state USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSIF NEW.finished_at IS NOT NULL THEN
        PERFORM onejob_tell(NEW.part, NEW.job_id, '', 'job.' || NEW.state, true);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_states_moved AFTER UPDATE OF state, completed_by, finished_at ON job_states FOR EACH ROW
    WHEN (NEW.hooked OR OLD.finished_at IS NOT NULL)
    EXECUTE FUNCTION onejob_states_moved();

CREATE FUNCTION onejob_states_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM onejob_tell(NEW.part, NEW.job_id, '', 'job.' || NEW.state, true);
    RETURN NULL;
END $$;
CREATE TRIGGER job_states_told_at_once AFTER INSERT ON job_states FOR EACH ROW
    WHEN (NEW.hooked AND NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION onejob_states_told();

CREATE FUNCTION onejob_events_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM onejob_tell(NEW.part, NEW.job_id, NEW.attempt_id, CASE NEW.kind
        WHEN 'blocked'            THEN 'job.blocked'
        WHEN 'asked'              THEN 'attempt.asked'
        WHEN 'duplicate_effect'   THEN 'incident.duplicate_effect'
        WHEN 'effect_after_close' THEN 'incident.effect_after_close'
    END, false);
    RETURN NULL;
END $$;
CREATE TRIGGER events_told AFTER INSERT ON events FOR EACH ROW
    WHEN (NEW.kind IN ('blocked', 'asked', 'duplicate_effect', 'effect_after_close'))
    EXECUTE FUNCTION onejob_events_told();

-- A state is left only by the exits of the transition table. A success that found the
-- slot taken is discarded by the transaction that found it so. Nothing is marked in a
-- restored store. That an attempt entered unknown is written down nowhere else.
CREATE FUNCTION onejob_attempts_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = OLD.state THEN
        RETURN NULL;
    END IF;
    IF NOT (CASE OLD.state
        WHEN 'starting'  THEN NEW.state IN ('running', 'failed', 'cancelled', 'unknown')
        WHEN 'running'   THEN NEW.state <> 'starting'
        WHEN 'unknown'   THEN NEW.state NOT IN ('starting', 'running')
        WHEN 'failed'    THEN NEW.state IN ('succeeded', 'discarded') AND OLD.ruling IS NOT NULL
        WHEN 'cancelled' THEN NEW.state IN ('succeeded', 'discarded') AND OLD.ruling IS NOT NULL
        WHEN 'succeeded' THEN NEW.state = 'discarded' AND NOT EXISTS (
            SELECT FROM job_states s WHERE s.part = OLD.part AND s.job_id = OLD.job_id AND s.completed_by = OLD.id)
        ELSE false
    END) THEN
        RAISE EXCEPTION 'attempt % cannot go from % to %', OLD.id, OLD.state, NEW.state USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    CASE NEW.state
        WHEN 'running' THEN PERFORM onejob_refuse_restored();
        WHEN 'unknown' THEN PERFORM onejob_tell(NEW.part, NEW.job_id, NEW.id, 'attempt.unknown', false);
        ELSE
    END CASE;
    RETURN NULL;
END $$;
CREATE TRIGGER attempts_moved AFTER UPDATE OF state ON attempts FOR EACH ROW
    WHEN (OLD.state <> 'running' OR NEW.state <> 'succeeded')
    EXECUTE FUNCTION onejob_attempts_moved();

-- The audit only grows, each entry following on the one before.
CREATE FUNCTION onejob_audit_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last record;
BEGIN
    SELECT seq, hash INTO last FROM audit WHERE part = NEW.part AND owner = NEW.owner ORDER BY seq DESC LIMIT 1;
    IF ROW(NEW.seq, NEW.prev) IS DISTINCT FROM ROW(coalesce(last.seq, 0) + 1, coalesce(last.hash, '')) THEN
        RAISE EXCEPTION 'an audit entry follows on the one before' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_follows BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION onejob_audit_follows();

CREATE FUNCTION onejob_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION onejob_audit_kept();
CREATE TRIGGER audit_kept BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION onejob_audit_kept();
CREATE TRIGGER audit_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION onejob_audit_kept();
CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads FOR EACH ROW EXECUTE FUNCTION onejob_audit_kept();
CREATE TRIGGER audit_heads_not_emptied BEFORE TRUNCATE ON audit_heads FOR EACH STATEMENT EXECUTE FUNCTION onejob_audit_kept();

CREATE FUNCTION onejob_audit_heads_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF ROW(NEW.part, NEW.owner) IS DISTINCT FROM ROW(OLD.part, OLD.owner) OR NEW.seq <= OLD.seq THEN
        RAISE EXCEPTION 'the end of an audit chain only moves on' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_heads_forward BEFORE UPDATE ON audit_heads FOR EACH ROW EXECUTE FUNCTION onejob_audit_heads_forward();

-- What a kind of jobs asks of whoever does them, by content. The newest of a kind is
-- the one that was put last.
CREATE TABLE contract_versions (
    digest     text        NOT NULL PRIMARY KEY CHECK (digest <> ''),
    kind       text        NOT NULL CHECK (kind <> ''),
    body       text        NOT NULL,
    created_at timestamptz NOT NULL,
    seq        bigint      GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX contract_versions_newest ON contract_versions (kind, created_at, seq);

CREATE TABLE targets (
    digest     text        NOT NULL PRIMARY KEY CHECK (digest <> ''),
    name       text        NOT NULL CHECK (name <> ''),
    body       text        NOT NULL, -- secrets left out
    created_at timestamptz NOT NULL
);

CREATE TABLE contract_runs (
    id              text        NOT NULL PRIMARY KEY,
    contract_digest text        NOT NULL CHECK (contract_digest <> ''),
    target_digest   text        NOT NULL CHECK (target_digest <> ''),
    target_name     text        NOT NULL,
    kind            text        NOT NULL,
    environment     text        NOT NULL CHECK (environment <> ''),
    asked_by        text        NOT NULL,
    tool            text        NOT NULL,
    started_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    state           text        NOT NULL CHECK (state IN ('running', 'certified', 'refused', 'inconclusive')),
    calls           integer     NOT NULL DEFAULT 0,
    spend_micros    bigint      NOT NULL DEFAULT 0,
    report          text,
    CONSTRAINT contract_runs_finished CHECK ((state = 'running') = (finished_at IS NULL))
);
CREATE INDEX contract_runs_of ON contract_runs (contract_digest, target_digest, environment);

-- Calls of verifications. None is an attempt, and none can win a job.
CREATE TABLE contract_samples (
    seq         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      text        NOT NULL REFERENCES contract_runs (id),
    stage       text        NOT NULL,
    case_id     text        NOT NULL,
    repeat_no   integer     NOT NULL,
    outcome     text        NOT NULL CHECK (outcome IN ('passed', 'failed', 'infra')),
    fault_class text        NOT NULL,
    detail      text        NOT NULL,
    latency_ms  bigint      NOT NULL,
    tokens_in   integer     NOT NULL,
    tokens_out  integer     NOT NULL,
    cost_micros bigint      NOT NULL,
    response_id text        UNIQUE, -- NULL: the provider told none
    observed    text,
    output      bytea,
    at          timestamptz NOT NULL,
    UNIQUE (run_id, stage, case_id, repeat_no)
);

CREATE TABLE certificates (
    id              text        NOT NULL PRIMARY KEY,
    kind            text        NOT NULL,
    contract_digest text        NOT NULL,
    target_digest   text        NOT NULL,
    target_name     text        NOT NULL,
    environment     text        NOT NULL,
    verdict         text        NOT NULL CHECK (verdict IN ('certified', 'refused', 'inconclusive')),
    status          text        NOT NULL CHECK (status IN ('active', 'suspended', 'revoked', 'superseded')),
    sandbox         boolean     NOT NULL,
    reason          text        NOT NULL,
    detail          text        NOT NULL,
    counts          text,
    bounds          text,
    observed        text        NOT NULL,
    dropped         text        NOT NULL,
    run_id          text        NOT NULL REFERENCES contract_runs (id),
    issued_at       timestamptz NOT NULL,
    expires_at      timestamptz,
    renew_at        timestamptz,
    watch           text        NOT NULL DEFAULT '{}', -- what production showed under it
    CONSTRAINT certificates_end CHECK ((verdict = 'certified') = (expires_at IS NOT NULL))
);
-- One verdict stands.
CREATE UNIQUE INDEX certificates_standing ON certificates (contract_digest, target_digest, environment) WHERE status = 'active';
CREATE INDEX certificates_of ON certificates (contract_digest, target_digest, environment, issued_at);
CREATE INDEX certificates_by_kind ON certificates (environment, kind, issued_at) WHERE status <> 'superseded';

CREATE TABLE pair_results (
    contract_digest text        NOT NULL,
    environment     text        NOT NULL,
    primary_digest  text        NOT NULL CHECK (primary_digest <> ''),
    fallback_digest text        NOT NULL,
    agreed          integer     NOT NULL,
    cases           integer     NOT NULL,
    self_agreed     integer     NOT NULL,
    equivalent      boolean     NOT NULL,
    run_id          text        NOT NULL,
    issued_at       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (contract_digest, environment, primary_digest, fallback_digest)
);

CREATE TABLE waivers (
    id              text        NOT NULL PRIMARY KEY,
    kind            text        NOT NULL,
    contract_digest text        NOT NULL CHECK (contract_digest <> ''),
    target_digest   text        NOT NULL CHECK (target_digest <> ''),
    target_name     text        NOT NULL,
    environment     text        NOT NULL CHECK (environment <> ''),
    actor           text        NOT NULL CHECK (actor <> ''),
    reason          text        NOT NULL CHECK (reason <> ''),
    granted_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL CHECK (expires_at > granted_at),
    revoked_at      timestamptz
);
CREATE INDEX waivers_of ON waivers (contract_digest, environment, target_digest);

-- What the gate goes by, for one version of a contract in one environment. The
-- certificates of other versions come after its own, and only tell what changed.
CREATE FUNCTION onejob_gate(env text, contract text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'certificates', (SELECT json_agg(json_build_object(
                'ID', c.id, 'Kind', c.kind, 'ContractDigest', c.contract_digest, 'TargetDigest', c.target_digest, 'TargetName', c.target_name,
                'Verdict', c.verdict, 'Status', c.status, 'Reason', c.reason, 'Detail', c.detail, 'IssuedAt', c.issued_at, 'ExpiresAt', c.expires_at)
                ORDER BY c.contract_digest = contract DESC, c.issued_at DESC, c.id DESC)
            FROM (SELECT * FROM certificates
                   WHERE environment = env AND status <> 'superseded'
                     AND (contract_digest = contract OR verdict = 'certified' AND kind = (SELECT v.kind FROM contract_versions v WHERE v.digest = contract))
                   ORDER BY contract_digest = contract DESC, issued_at DESC, id DESC LIMIT 200) c),
        'pairs', (SELECT json_agg(json_build_object(
                'ContractDigest', p.contract_digest, 'PrimaryDigest', p.primary_digest, 'FallbackDigest', p.fallback_digest,
                'Equivalent', p.equivalent, 'ExpiresAt', p.expires_at))
            FROM pair_results p WHERE p.contract_digest = contract AND p.environment = env),
        'waivers', (SELECT json_agg(json_build_object(
                'ID', w.id, 'ContractDigest', w.contract_digest, 'TargetDigest', w.target_digest, 'ExpiresAt', w.expires_at))
            FROM waivers w WHERE w.contract_digest = contract AND w.environment = env AND w.revoked_at IS NULL AND w.expires_at > onejob_now())
    )::text
$$;

-- Versions are addressed by what they say, and evidence stays as it was found.
CREATE FUNCTION onejob_record_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % cannot change what it is', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER contract_versions_immutable BEFORE UPDATE OR DELETE ON contract_versions FOR EACH ROW EXECUTE FUNCTION onejob_record_fixed();
CREATE TRIGGER targets_immutable BEFORE UPDATE OR DELETE ON targets FOR EACH ROW EXECUTE FUNCTION onejob_record_fixed();
CREATE TRIGGER certificates_kept BEFORE DELETE ON certificates FOR EACH ROW EXECUTE FUNCTION onejob_record_fixed();
CREATE TRIGGER certificates_fixed BEFORE UPDATE ON certificates FOR EACH ROW
    WHEN (ROW(NEW.id, NEW.kind, NEW.contract_digest, NEW.target_digest, NEW.environment, NEW.verdict, NEW.run_id, NEW.issued_at)
          IS DISTINCT FROM
          ROW(OLD.id, OLD.kind, OLD.contract_digest, OLD.target_digest, OLD.environment, OLD.verdict, OLD.run_id, OLD.issued_at)
          -- what it lost does not come back
          OR NEW.status <> OLD.status AND NOT (OLD.status = 'active' OR OLD.status = 'suspended' AND NEW.status IN ('revoked', 'superseded')))
    EXECUTE FUNCTION onejob_record_fixed();
CREATE TRIGGER waivers_kept BEFORE DELETE ON waivers FOR EACH ROW EXECUTE FUNCTION onejob_record_fixed();
CREATE TRIGGER waivers_fixed BEFORE UPDATE ON waivers FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL
          OR ROW(NEW.id, NEW.kind, NEW.contract_digest, NEW.target_digest, NEW.environment, NEW.actor, NEW.reason, NEW.granted_at, NEW.expires_at)
          IS DISTINCT FROM
          ROW(OLD.id, OLD.kind, OLD.contract_digest, OLD.target_digest, OLD.environment, OLD.actor, OLD.reason, OLD.granted_at, OLD.expires_at))
    EXECUTE FUNCTION onejob_record_fixed();

-- +goose StatementEnd
