-- The rows of one job lie in one part: every key, constraint and reference leads
-- with it, as in the schema for many nodes.
--
-- A job is two rows. jobs is what was asked for and never changes; job_states is
-- what became of it, narrow, so that a change rewrites little.
--
-- Times are Unix milliseconds, truth is 0 or 1.
--
-- On the way of every job, lists of words are spelt out: IN with more than two
-- makes a table of its own each time it is looked at.
--
-- A job has a number, seq, in the order jobs came, which its state and its attempts
-- are kept under. Part and id are spread over the whole of an index, and each job of
-- a batch would change a page of its own there, in every index that leads with them;
-- by number one batch lies together. Ids and numbers meet in jobs alone.

-- +goose Up

CREATE TABLE jobs (
    seq                 INTEGER PRIMARY KEY, -- in the order they came; nobody outside sees it
    part                INTEGER NOT NULL CHECK (part BETWEEN 0 AND 255),
    id                  TEXT    NOT NULL,
    owner               TEXT    NOT NULL CHECK (owner <> ''),
    key_hash            BLOB    NOT NULL,
    key_prefix          TEXT    NOT NULL,
    fingerprint         BLOB    NOT NULL,
    fingerprint_version INTEGER NOT NULL,
    create_token        TEXT    NOT NULL,
    kind                TEXT    NOT NULL,
    target              TEXT    NOT NULL, -- asked for; '' is the kind's first
    effect              TEXT    NOT NULL CHECK (effect = 'none' OR effect = 'idempotent' OR effect = 'external'),
    lanes               INTEGER NOT NULL CHECK (lanes BETWEEN 1 AND 16),
    policy              TEXT    NOT NULL, -- JSON, as pinned at creation; '' of a shrunk tombstone
    metadata            BLOB,
    priority            INTEGER NOT NULL,
    supersedes          TEXT    NOT NULL,
    trace               TEXT    NOT NULL,
    webhooks            TEXT    NOT NULL DEFAULT '', -- JSON, who is told about it; '' for nobody
    created_at          INTEGER NOT NULL,
    deadline            INTEGER,
    purged_at           INTEGER,
    input               BLOB,             -- last: what is long lies behind what is read often
    CONSTRAINT jobs_id UNIQUE (id, part), -- id first: it begins with the time
    -- The double click: one owner's key is one job, for ever.
    CONSTRAINT jobs_one_per_key UNIQUE (part, owner, key_hash),
    -- Nobody can open a racing lane on a charge.
    CONSTRAINT jobs_race_without_effect CHECK (lanes = 1 OR effect = 'none'),
    CONSTRAINT jobs_input_until_purged CHECK ((input IS NULL) = (purged_at IS NOT NULL)),
    -- What cannot be read here would keep the job from ending.
    CONSTRAINT jobs_webhooks CHECK (webhooks = '' OR json_type(webhooks) = 'array')
) STRICT;

CREATE TABLE job_states (
    seq                 INTEGER PRIMARY KEY, -- the job's
    part                INTEGER NOT NULL,
    job_id              TEXT    NOT NULL,
    owner               TEXT    NOT NULL, -- as jobs.owner, for the index: owners take turns
    state               TEXT    NOT NULL CHECK (state = 'queued' OR state = 'running' OR state = 'blocked'
        OR state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
    version             INTEGER NOT NULL DEFAULT 1,
    revision            INTEGER NOT NULL DEFAULT 1,
    attempts_made       INTEGER NOT NULL DEFAULT 0,
    priority            INTEGER NOT NULL,
    run_after           INTEGER NOT NULL,
    due                 INTEGER NOT NULL CHECK (due IN (0, 1)), -- run_after has come, as far as anybody has looked
    next_target         TEXT    NOT NULL, -- '' when none is next
    deadline            INTEGER,          -- the job's own, for the index over queued ones
    completed_by        TEXT,
    blocked             TEXT,             -- JSON, with state blocked
    blocked_reason      TEXT,
    error_code          TEXT,
    error               TEXT,
    cancel_requested_at INTEGER,
    superseded_by       TEXT,
    finished_at         INTEGER,
    unblocked_at        INTEGER,
    held_at             INTEGER,          -- since the store was restored
    replays             INTEGER NOT NULL DEFAULT 0,
    purged              INTEGER NOT NULL DEFAULT 0 CHECK (purged IN (0, 1)), -- keeps tombstones out of the purge's index
    hooked              INTEGER NOT NULL DEFAULT 0 CHECK (hooked IN (0, 1)), -- jobs.webhooks is not empty
    CONSTRAINT job_states_winner     CHECK ((state = 'succeeded') = (completed_by IS NOT NULL)),
    CONSTRAINT job_states_finished   CHECK ((state = 'succeeded' OR state = 'failed' OR state = 'cancelled') = (finished_at IS NOT NULL)),
    CONSTRAINT job_states_blocked    CHECK ((state = 'blocked') = (blocked IS NOT NULL AND blocked_reason IS NOT NULL)),
    CONSTRAINT job_states_failed     CHECK ((state = 'failed') = (error_code IS NOT NULL)),
    CONSTRAINT job_states_cancelled  CHECK (state <> 'cancelled' OR cancel_requested_at IS NOT NULL)
) STRICT;

CREATE TABLE attempts (
    seq                 INTEGER NOT NULL,    -- the job's
    part                INTEGER NOT NULL,
    job_id              TEXT    NOT NULL,
    number              INTEGER NOT NULL CHECK (number >= 1),
    id                  TEXT    NOT NULL,
    lane                INTEGER NOT NULL CHECK (lane >= 0),
    lanes               INTEGER NOT NULL,
    target              TEXT    NOT NULL,
    target_digest       TEXT    NOT NULL,
    state               TEXT    NOT NULL CHECK (state = 'starting' OR state = 'running' OR state = 'unknown'
        OR state = 'succeeded' OR state = 'discarded' OR state = 'failed' OR state = 'cancelled'),
    claim_token         TEXT    NOT NULL CHECK (claim_token <> ''),
    worker              TEXT    NOT NULL,
    lease_expires_at    INTEGER NOT NULL,
    lease_over_at       INTEGER,          -- it ended without word
    send_by             INTEGER,
    quarantine_until    INTEGER,
    job_version         INTEGER NOT NULL,
    provider_key        TEXT    NOT NULL,
    provider_id         TEXT,
    request_key_hash    BLOB,
    request_fingerprint BLOB,
    certificate_id      TEXT,
    waiver_id           TEXT,
    phase               TEXT    NOT NULL CHECK (phase = 'not_sent' OR phase = 'partly_sent' OR phase = 'sent' OR phase = 'answered'),
    outcome             TEXT    CHECK (outcome = 'not_executed' OR outcome = 'refused' OR outcome = 'executed_failed'
        OR outcome = 'contract_violation' OR outcome = 'succeeded' OR outcome = 'accepted' OR outcome = 'unknown' OR outcome = 'result_lost' OR outcome = 'cancelled'),
    next                TEXT    CHECK (next = 'again' OR next = 'elsewhere' OR next = 'nowhere'),
    own_fault           INTEGER NOT NULL DEFAULT 0 CHECK (own_fault IN (0, 1)),
    evidence            TEXT    NOT NULL DEFAULT '{}', -- JSON
    error_code          TEXT,
    error               TEXT,
    retry_at            INTEGER,
    ruling              TEXT,             -- JSON
    result_type         TEXT,             -- NULL: there is no result
    result_lost         INTEGER NOT NULL DEFAULT 0 CHECK (result_lost IN (0, 1)),
    discarded           TEXT,             -- JSON, with state discarded
    cost_micros         INTEGER NOT NULL DEFAULT 0,
    currency            TEXT    NOT NULL DEFAULT '',
    usage               TEXT,             -- JSON
    started_at          INTEGER NOT NULL,
    marked_at           INTEGER,
    finished_at         INTEGER,
    probe_at            INTEGER,          -- when the next question is due, while it is open to them
    probes_made         INTEGER NOT NULL DEFAULT 0,
    ask_at              INTEGER,          -- when a person is to be asked about it
    asked_at            INTEGER,
    accepted_at         INTEGER,
    unknown_at          INTEGER,          -- when it entered unknown
    result              BLOB,
    CONSTRAINT attempts_number UNIQUE (seq, number),
    CONSTRAINT attempts_lane         CHECK (lane < lanes),
    CONSTRAINT attempts_marked       CHECK (state <> 'running' OR (marked_at IS NOT NULL AND send_by IS NOT NULL)),
    CONSTRAINT attempts_never_marked CHECK (state <> 'starting' OR (marked_at IS NULL AND send_by IS NULL)),
    CONSTRAINT attempts_finished     CHECK ((state = 'starting' OR state = 'running' OR state = 'unknown') = (finished_at IS NULL)),
    CONSTRAINT attempts_unknown      CHECK (state <> 'unknown' OR unknown_at IS NOT NULL),
    CONSTRAINT attempts_outcome      CHECK (state IN ('starting', 'running') OR outcome IS NOT NULL),
    CONSTRAINT attempts_discarded    CHECK ((state = 'discarded') = (discarded IS NOT NULL))
) STRICT;

-- The guard: at most one attempt of a job and lane is in doubt.
CREATE UNIQUE INDEX attempts_in_doubt ON attempts (seq, lane)
    WHERE state = 'starting' OR state = 'running' OR state = 'unknown';

-- The fallback button clicked twice is one attempt.
CREATE UNIQUE INDEX attempts_one_per_request ON attempts (seq, request_key_hash)
    WHERE request_key_hash IS NOT NULL;

-- Live states only: history does not slow them.
CREATE INDEX attempts_leases ON attempts (lease_expires_at) WHERE state IN ('starting', 'running');
CREATE INDEX attempts_unknown ON attempts (started_at DESC, id DESC) WHERE state = 'unknown';
-- What may be asked about, and when.
CREATE INDEX attempts_to_probe ON attempts (probe_at)
    WHERE (state = 'unknown' OR (state = 'running' AND outcome = 'accepted'));
CREATE INDEX attempts_to_ask ON attempts (ask_at)
    WHERE (state = 'unknown' OR (state = 'running' AND outcome = 'accepted')) AND asked_at IS NULL;
-- By target first: a claimer takes only targets that it can call, and never walks
-- over the jobs of others. Then by owner: they take turns.
CREATE INDEX job_states_due ON job_states (next_target, owner, priority DESC, run_after) WHERE state = 'queued' AND due = 1;
CREATE INDEX job_states_later ON job_states (next_target, run_after) WHERE state = 'queued' AND due = 0;
-- A deadline ends a queued job also when nobody serves its target.
CREATE INDEX job_states_deadline ON job_states (deadline) WHERE state = 'queued' AND deadline IS NOT NULL;
CREATE INDEX job_states_blocked ON job_states (blocked_reason) WHERE state = 'blocked';
-- What a restore has still to hold.
CREATE INDEX job_states_held ON job_states (held_at) WHERE state = 'blocked';
CREATE INDEX job_states_old ON job_states (finished_at) WHERE finished_at IS NOT NULL AND purged = 0;
-- Lists are read from the end: an index that grows there fills its pages.
CREATE INDEX jobs_by_owner ON jobs (owner, created_at, id);
CREATE INDEX jobs_by_time ON jobs (created_at, id);
CREATE INDEX jobs_tombstones ON jobs (created_at) WHERE purged_at IS NOT NULL AND policy <> '';

-- What rows cannot tell.
CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    part       INTEGER NOT NULL,
    job_id     TEXT    NOT NULL,
    attempt_id TEXT    NOT NULL DEFAULT '',
    kind       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL DEFAULT '',
    detail     TEXT    NOT NULL DEFAULT '',
    closed_at  INTEGER, -- of an incident
    closed_by  TEXT,
    note       TEXT CHECK (note <> ''), -- what came of it
    FOREIGN KEY (part, job_id) REFERENCES jobs (part, id),
    CONSTRAINT events_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL) AND (closed_at IS NULL) = (note IS NULL)),
    CONSTRAINT events_only_incidents_close CHECK (closed_at IS NULL OR kind IN ('duplicate_effect', 'effect_after_close'))
) STRICT;
CREATE INDEX events_by_job ON events (part, job_id, id);
CREATE INDEX events_open_incidents ON events (part, job_id)
    WHERE kind IN ('duplicate_effect', 'effect_after_close') AND closed_at IS NULL;
CREATE INDEX events_incidents ON events (at DESC, part DESC, id DESC)
    WHERE kind IN ('duplicate_effect', 'effect_after_close');

-- Each question to a provider about an attempt, and its answer.
CREATE TABLE probes (
    part       INTEGER NOT NULL,
    job_id     TEXT    NOT NULL,
    attempt_id TEXT    NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 1),
    method     TEXT    NOT NULL CHECK (method IN ('callback', 'lookup', 'search', 'replay')),
    at         INTEGER NOT NULL,
    outcome    TEXT    CHECK (outcome IN ('not_executed', 'refused', 'executed_failed', 'contract_violation', 'succeeded', 'accepted', 'unknown', 'result_lost', 'cancelled')),
    detail     TEXT    NOT NULL,
    evidence   TEXT    NOT NULL, -- JSON
    next_at    INTEGER,
    PRIMARY KEY (part, attempt_id, number)
) STRICT, WITHOUT ROWID;

-- The outbox: one webhook to one endpoint a row. Triggers write them.
CREATE TABLE deliveries (
    part        INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    job_id      TEXT    NOT NULL,
    attempt_id  TEXT    NOT NULL DEFAULT '',
    endpoint    TEXT    NOT NULL CHECK (endpoint <> ''),
    event       TEXT    NOT NULL CHECK (event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked',
        'attempt.unknown', 'attempt.asked', 'incident.duplicate_effect', 'incident.effect_after_close')),
    state       TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    tries       INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    resent      INTEGER NOT NULL DEFAULT 0, -- how often; a try under way meanwhile does not count
    status      INTEGER NOT NULL DEFAULT 0,
    error       TEXT    NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    since       INTEGER NOT NULL,         -- when it was made or last resent
    due_at      INTEGER,
    finished_at INTEGER,
    body        BLOB,                     -- what the first try sent
    PRIMARY KEY (part, id),
    FOREIGN KEY (part, job_id) REFERENCES jobs (part, id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT deliveries_pending  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
    CONSTRAINT deliveries_finished CHECK ((state = 'pending') = (finished_at IS NULL))
) STRICT;
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
    seq         INTEGER PRIMARY KEY, -- the job's
    part        INTEGER NOT NULL,
    job_id      TEXT    NOT NULL,
    owner       TEXT    NOT NULL, -- the job's, as its fingerprint is
    route       TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    token       TEXT    NOT NULL, -- '' once they have gone
    until       INTEGER NOT NULL  -- the end of the lease, or when they left
) STRICT;
CREATE INDEX waiters_alike ON waiters (part, fingerprint);
CREATE INDEX waiters_gone ON waiters (until);

-- What has come of an answer that arrives in pieces. Each but the first follows one of
-- the same attempt: a job shows nobody a piece of one answer after a piece of another.
CREATE TABLE chunks (
    seq      INTEGER NOT NULL, -- the job's
    number   INTEGER NOT NULL CHECK (number >= 0),
    attempt  INTEGER NOT NULL, -- its number
    previous INTEGER,          -- number - 1
    body     BLOB    NOT NULL CHECK (length(body) BETWEEN 1 AND 65536),
    CONSTRAINT chunks_number UNIQUE (seq, number),
    CONSTRAINT chunks_of_attempt UNIQUE (seq, attempt, number),
    CONSTRAINT chunks_follow CHECK (CASE number WHEN 0 THEN previous IS NULL ELSE previous IS NOT NULL AND previous = number - 1 END),
    FOREIGN KEY (seq, attempt) REFERENCES attempts (seq, number),
    FOREIGN KEY (seq, attempt, previous) REFERENCES chunks (seq, attempt, number)
) STRICT;
CREATE INDEX chunks_after ON chunks (seq, attempt, previous); -- what follows a piece is asked for when it is deleted

-- Endpoints that are not sent anything.
CREATE TABLE webhook_endpoints (
    id          TEXT    PRIMARY KEY,
    disabled_at INTEGER NOT NULL,
    reason      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    id         TEXT    PRIMARY KEY,
    owner      TEXT    NOT NULL CHECK (owner <> ''),
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'submitter', 'operator', 'admin')),
    act_as     INTEGER NOT NULL CHECK (act_as IN (0, 1)),
    hash       BLOB    NOT NULL, -- of the secret, which is stored nowhere
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- What people did with power: a chain of hashes for each owner, which only grows.
CREATE TABLE audit (
    part    INTEGER NOT NULL CHECK (part BETWEEN 0 AND 255),
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    seq     INTEGER NOT NULL CHECK (seq >= 1),
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL CHECK (action <> ''),
    subject TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    prev    BLOB    NOT NULL, -- hash of the entry before; empty for the first
    hash    BLOB    NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (part, owner, seq),
    CONSTRAINT audit_begins CHECK ((seq = 1) = (length(prev) = 0))
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_time ON audit (at DESC, owner DESC, seq DESC);

-- The end of each chain.
CREATE TABLE audit_heads (
    part  INTEGER NOT NULL,
    owner TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    hash  BLOB    NOT NULL,
    PRIMARY KEY (part, owner)
) STRICT, WITHOUT ROWID;

-- The latest time that was ever written. No row is written at an earlier one,
-- also after a restart with a clock that went back.
CREATE TABLE clock (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    high_water INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, high_water) VALUES (1, 0);

-- What each step of the schema was when it was applied, which is a part of it.
CREATE TABLE schema_steps (
    version INTEGER PRIMARY KEY,
    digest  TEXT    NOT NULL
) STRICT;

-- Whether the store went back in time: its number only grows while it lives on, and
-- the highest one seen is kept outside. With restored_at it waits for a person.
CREATE TABLE store_generation (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    number       INTEGER NOT NULL,
    restored_at  INTEGER,
    confirmed_at INTEGER,
    confirmed_by TEXT
) STRICT;
INSERT INTO store_generation (id, number) VALUES (1, 1);

-- What a kind of jobs asks of whoever does them, by content. The newest of a kind is
-- the one that was put last.
CREATE TABLE contract_versions (
    digest     TEXT    PRIMARY KEY CHECK (digest <> ''),
    kind       TEXT    NOT NULL CHECK (kind <> ''),
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE targets (
    digest     TEXT    PRIMARY KEY CHECK (digest <> ''),
    name       TEXT    NOT NULL CHECK (name <> ''),
    body       TEXT    NOT NULL, -- secrets left out
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE contract_runs (
    id              TEXT    PRIMARY KEY,
    contract_digest TEXT    NOT NULL CHECK (contract_digest <> ''),
    target_digest   TEXT    NOT NULL CHECK (target_digest <> ''),
    target_name     TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    environment     TEXT    NOT NULL CHECK (environment <> ''),
    asked_by        TEXT    NOT NULL,
    tool            TEXT    NOT NULL,
    started_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    state           TEXT    NOT NULL CHECK (state IN ('running', 'certified', 'refused', 'inconclusive')),
    calls           INTEGER NOT NULL DEFAULT 0,
    spend_micros    INTEGER NOT NULL DEFAULT 0,
    report          TEXT,
    CONSTRAINT contract_runs_finished CHECK ((state = 'running') = (finished_at IS NULL))
) STRICT;
CREATE INDEX contract_runs_of ON contract_runs (contract_digest, target_digest, environment);

-- Calls of verifications. None is an attempt, and none can win a job.
CREATE TABLE contract_samples (
    run_id      TEXT    NOT NULL REFERENCES contract_runs (id),
    stage       TEXT    NOT NULL,
    case_id     TEXT    NOT NULL,
    repeat_no   INTEGER NOT NULL,
    outcome     TEXT    NOT NULL CHECK (outcome IN ('passed', 'failed', 'infra')),
    fault_class TEXT    NOT NULL,
    detail      TEXT    NOT NULL,
    latency_ms  INTEGER NOT NULL,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    response_id TEXT    UNIQUE, -- NULL: the provider told none
    observed    TEXT,
    output      BLOB,
    at          INTEGER NOT NULL,
    UNIQUE (run_id, stage, case_id, repeat_no)
) STRICT;

CREATE TABLE certificates (
    id              TEXT    PRIMARY KEY,
    kind            TEXT    NOT NULL,
    contract_digest TEXT    NOT NULL,
    target_digest   TEXT    NOT NULL,
    target_name     TEXT    NOT NULL,
    environment     TEXT    NOT NULL,
    verdict         TEXT    NOT NULL CHECK (verdict IN ('certified', 'refused', 'inconclusive')),
    status          TEXT    NOT NULL CHECK (status IN ('active', 'suspended', 'revoked', 'superseded')),
    sandbox         INTEGER NOT NULL CHECK (sandbox IN (0, 1)),
    reason          TEXT    NOT NULL,
    detail          TEXT    NOT NULL,
    counts          TEXT,
    bounds          TEXT,
    observed        TEXT    NOT NULL,
    dropped         TEXT    NOT NULL,
    run_id          TEXT    NOT NULL REFERENCES contract_runs (id),
    issued_at       INTEGER NOT NULL,
    expires_at      INTEGER,
    renew_at        INTEGER,
    watch           TEXT    NOT NULL DEFAULT '{}', -- what production showed under it
    CONSTRAINT certificates_end CHECK ((verdict = 'certified') = (expires_at IS NOT NULL))
) STRICT;
-- One verdict stands.
CREATE UNIQUE INDEX certificates_standing ON certificates (contract_digest, target_digest, environment) WHERE status = 'active';
CREATE INDEX certificates_of ON certificates (contract_digest, target_digest, environment, issued_at);
CREATE INDEX certificates_by_kind ON certificates (environment, kind, issued_at) WHERE status <> 'superseded';

CREATE TABLE pair_results (
    contract_digest TEXT    NOT NULL,
    primary_digest  TEXT    NOT NULL CHECK (primary_digest <> ''),
    fallback_digest TEXT    NOT NULL,
    environment     TEXT    NOT NULL,
    agreed          INTEGER NOT NULL,
    cases           INTEGER NOT NULL,
    self_agreed     INTEGER NOT NULL,
    equivalent      INTEGER NOT NULL CHECK (equivalent IN (0, 1)),
    run_id          TEXT    NOT NULL,
    issued_at       INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    PRIMARY KEY (contract_digest, environment, primary_digest, fallback_digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE waivers (
    id              TEXT    PRIMARY KEY,
    kind            TEXT    NOT NULL,
    contract_digest TEXT    NOT NULL CHECK (contract_digest <> ''),
    target_digest   TEXT    NOT NULL CHECK (target_digest <> ''),
    target_name     TEXT    NOT NULL,
    environment     TEXT    NOT NULL CHECK (environment <> ''),
    actor           TEXT    NOT NULL CHECK (actor <> ''),
    reason          TEXT    NOT NULL CHECK (reason <> ''),
    granted_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL CHECK (expires_at > granted_at),
    revoked_at      INTEGER
) STRICT;
CREATE INDEX waivers_of ON waivers (contract_digest, environment, target_digest);
