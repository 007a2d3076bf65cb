package config

import "github.com/onejob-dev/onejob"

// File is onejob.yaml, with its defaults filled in.
//
// The tags are what the decoder, the schema and the print-out go by: yaml names
// the key, doc explains it, default is what stands when it is absent, enum, min
// and max limit it, required refuses its absence.
type File struct {
	Listen string `yaml:"listen" default:"127.0.0.1:4545" doc:"The address to listen at, as host:port."`
	// PublicURL is for providers that report by themselves.
	PublicURL string `yaml:"public_url" doc:"Where providers can reach this server, as in https://onejob.example. callback_url is made of it."`
	Store     Secret `yaml:"store" default:"sqlite:onejob.db" doc:"Where jobs are kept: sqlite:FILE or postgres://user:password@host/database."`

	// GenerationFile is outside the store, and outside its backups.
	GenerationFile string `yaml:"generation_file" doc:"The file that tells a store that was restored from a backup: it keeps the highest number of the store's generation that this node has seen. Keep it out of the store's backups. Absent: beside a SQLite store, FILE.generation; PostgreSQL then has none."`

	Environment string `yaml:"environment" default:"default" doc:"What certificates are issued for and looked for under, as in prod."`

	Targets map[string]Target `yaml:"targets" keys:"names" doc:"The places where a job can be tried, by name."`
	Kinds   map[string]Kind   `yaml:"kinds" keys:"names" doc:"The sorts of job there are, by name."`

	Retention  Retention `yaml:"retention" doc:"How long what has ended is kept."`
	Workers    Workers   `yaml:"workers" doc:"How attempts are worked on."`
	Durability string    `yaml:"durability" default:"local" enum:"local|replicated" doc:"replicated refuses a PostgreSQL without a synchronous standby."`
	Secret     Secret    `yaml:"secret" doc:"The instance secret that fingerprints are made with. It must stay the same for the life of the store. Absent: made once and kept beside a SQLite store; PostgreSQL needs it."`
	Limits     Limits    `yaml:"limits" doc:"Bounds on what callers may send."`

	Webhooks Webhooks `yaml:"webhooks" doc:"Who is told when a job ends."`
}

// later is a key that a version to come will know.
type later struct{}

// Retention says how long what has ended is kept.
type Retention struct {
	Jobs Lifetime `yaml:"jobs" default:"30d" doc:"How long after its end a job's payloads are kept. Its key goes on answering."`
	Keys Lifetime `yaml:"keys" default:"400d" doc:"How long after its creation an emptied job stays whole; then only its key and fingerprint stay, for ever."`
}

// Workers says how attempts are worked on.
type Workers struct {
	Slots int      `yaml:"slots" default:"64" min:"1" max:"10000" doc:"How many attempts are under way at once, those left out that linger for a late answer."`
	Lease Duration `yaml:"lease" default:"30s" min:"1s" max:"1h" doc:"How long a worker's claim is trusted without news. Renewed at a third."`
	Drain Duration `yaml:"drain" default:"60s" min:"1ms" max:"24h" doc:"How long a stop waits for attempts under way."`
}

// Limits bounds what callers may send.
type Limits struct {
	MaxBodyBytes int64    `yaml:"max_body_bytes" default:"1048576" min:"1024" max:"1073741824" doc:"The largest request body and job input, in bytes."`
	MaxRequests  int      `yaml:"max_requests" default:"1024" min:"1" max:"1000000" doc:"HTTP requests being served at once, those held apart."`
	MaxQueued    int64    `yaml:"max_queued" default:"1000000" min:"0" doc:"Jobs that may wait to be tried, of all owners together; one more is refused with 429. 0: unlimited."`
	PerOwner     PerOwner `yaml:"per_owner" doc:"Bounds for each owner."`
}

// PerOwner bounds what each owner may send.
type PerOwner struct {
	Rate        float64 `yaml:"rate" default:"0" min:"0" doc:"New jobs a second. 0: unlimited."`
	StoredBytes int64   `yaml:"stored_bytes" default:"0" min:"0" max:"0" doc:"Only 0, unlimited, for now."`
}

// Kind is a named sort of job.
type Kind struct {
	Effect  onejob.Effect `yaml:"effect" required:"true" enum:"none|idempotent|external" doc:"What a duplicate would cost. none: money only. idempotent: the provider promises one effect per key. external: a second charge, a second email."`
	Targets []string      `yaml:"targets" required:"true" doc:"Names of targets, in the order of fallback."`

	Timeout     Duration `yaml:"timeout" default:"60s" min:"1ms" max:"24h" doc:"How long an attempt may stay silent before it becomes unknown. It does not end the provider's work."`
	Linger      Duration `yaml:"linger" default:"10m" min:"1ms" max:"24h" doc:"How much longer the connection stays open for a late answer."`
	SendWithin  Duration `yaml:"send_within" default:"30s" min:"1ms" max:"15m" doc:"From the mark to the last byte out. At most timeout."`
	MaxAttempts int      `yaml:"max_attempts" default:"5" min:"1" max:"1000" doc:"Proven failures of providers over the whole job."`
	PerTarget   int      `yaml:"per_target" default:"3" min:"1" max:"1000" doc:"The same at one target."`
	Backoff     Backoff  `yaml:"backoff" doc:"The pause between attempts, with full jitter. A provider's Retry-After wins."`
	Deadline    Duration `yaml:"deadline" min:"1ms" doc:"After this age of the job no new attempt starts. Absent: none."`
	Failover    Failover `yaml:"failover" doc:"What lets the next target take over: certified (the default), never, or declared with the reason why the targets are equal."`
	Unknown     Unknown  `yaml:"unknown" doc:"What happens to an attempt whose outcome is not known."`
	Race        Race     `yaml:"race" optional:"true" doc:"Several targets at once, for effect none only. Absent: no race."`

	FrontDoor FrontDoor `yaml:"front_door" doc:"How calls in the shape of a provider's API are taken that name the kind as their model."`

	Contract string `yaml:"contract" doc:"The contract of the kind, a file relative to this one. Every output is held to it, and failover certified goes by certificates for it. Absent: nothing is judged, and nothing is certified."`
}

// FrontDoor says how calls without an idempotency key are taken.
type FrontDoor struct {
	RequireKey     bool     `yaml:"require_key" doc:"Refuse calls without an Idempotency-Key."`
	TakeOver       bool     `yaml:"take_over" doc:"Let a call without a key, of a client that does not count its tries, take over the job of an equal call whose client left without the answer at most take_over_within ago. A client that counts them needs no leave for its retries."`
	TakeOverWithin Duration `yaml:"take_over_within" default:"15m" min:"1s" max:"24h" doc:"How long after its caller went without the answer the job of a call without a key may be taken over."`
	Heartbeat      Duration `yaml:"heartbeat" min:"1s" max:"5m" doc:"How often a call that waits for a whole answer is sent a space, so that what lies between does not give it up. The first one says 200: a call that then has no answer is broken off, and its repeat is told why. Absent: never. Streams are sent comments every 15s anyway."`
}

// Backoff is the pause between attempts.
type Backoff struct {
	Initial Duration `yaml:"initial" default:"1s" min:"1ms" max:"24h" doc:"The first pause, at most."`
	Max     Duration `yaml:"max" default:"60s" min:"1ms" max:"24h" doc:"The longest pause."`
}

// Race says when another target starts beside one that has not answered.
type Race struct {
	After Duration `yaml:"after" required:"true" min:"1ms" max:"24h" doc:"How long a lane may stay silent before the next starts. Less than timeout."`
	Lanes int      `yaml:"lanes" default:"2" min:"2" max:"16" doc:"How many attempts may be in doubt at once, each at a target of its own."`
}

// Unknown says what happens to an attempt whose outcome is not known.
type Unknown struct {
	AskAfter Duration `yaml:"ask_after" default:"1h" min:"1ms" max:"3650d" doc:"After so long in doubt a person is asked. Looking goes on."`
	Assume   later    `yaml:"assume"`
}
