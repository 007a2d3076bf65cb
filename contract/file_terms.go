package contract

import "time"

// CaseFiles says where the cases are.
type CaseFiles struct {
	// Files with one case a line, relative to the contract's own.
	Files []string `yaml:"files" required:"true" digest:"out"`
	// MinDistinct is how many distinct cases there must be.
	MinDistinct int `yaml:"min_distinct" required:"true" min:"1" max:"100000" digest:"out"`
}

// Sampling is how the cases are run.
type Sampling struct {
	// Repeats of each case. They show flakiness; they are no further samples.
	Repeats int `yaml:"repeats" default:"3" min:"1" max:"20" digest:"out"`
	// Unit is the case: it passes only if all its repeats do.
	Unit string `yaml:"unit" default:"case" enum:"case" digest:"out"`
	// Confidence of every bound, one-sided.
	Confidence float64 `yaml:"confidence" default:"0.95" min:"0.5" max:"0.9999" digest:"out"`
	// StopEarly: on failure only, since stopping on success would be peeking.
	StopEarly string `yaml:"stop_early" default:"on_fail_only" enum:"on_fail_only|never" digest:"out"`
}

// Gates are what a target must show.
type Gates struct {
	Probes     ProbeGate   `yaml:"probes" digest:"out"`
	Structure  *Gate       `yaml:"structure" required:"true" digest:"out"`
	Invariants *Gate       `yaml:"invariants" digest:"out"`
	Semantic   *Gate       `yaml:"semantic" digest:"out"`
	Operation  Operational `yaml:"operational" digest:"out"`
}

// ProbeGate is how many probes may fail.
type ProbeGate struct {
	MaxFailures int `yaml:"max_failures" default:"0" min:"0" max:"0" digest:"out"`
}

// Gate is a plan: so many failures are allowed, and with the cases there are they
// show at least such a rate.
type Gate struct {
	MinRate     float64 `yaml:"min_rate" required:"true" min:"0.5" max:"0.9999" digest:"out"`
	MaxFailures int     `yaml:"max_failures" required:"true" min:"0" max:"100000" digest:"out"`
}

// Operational bounds what a call may take.
type Operational struct {
	P95Millis int `yaml:"p95_ms" default:"0" min:"0" max:"86400000" digest:"out"` // zero: not judged
	// MaxCostUSD of one call. Zero: not judged.
	MaxCostUSD USD `yaml:"max_cost_usd" default:"0" digest:"out"`
	// MaxInfraErrorRate above which a run shows nothing.
	MaxInfraErrorRate float64 `yaml:"max_infra_error_rate" default:"0.05" min:"0" max:"0.5" digest:"out"`
}

// USD is an amount in millionths of a dollar.
type USD int64

// Equivalence compares a fallback with the primary on the same cases.
type Equivalence struct {
	// Compare are members of the output, as in output.severity.
	Compare []string `yaml:"compare" required:"true" digest:"out"`
	Method  string   `yaml:"method" default:"agreement" enum:"agreement" digest:"out"`
	// MinAgreement is a lower bound, like a gate's rate.
	MinAgreement float64 `yaml:"min_agreement" required:"true" min:"0.5" max:"0.9999" digest:"out"`
	// RelativeToSelf is how far agreement may lie under the primary's agreement with
	// itself, as a fraction.
	RelativeToSelf float64 `yaml:"relative_to_self" default:"0.05" min:"0" max:"0.5" digest:"out"`
}

// Verify bounds a verification.
type Verify struct {
	Mode        string `yaml:"mode" default:"live" enum:"live|sandbox|recorded" digest:"out"`
	MaxSpendUSD USD    `yaml:"max_spend_usd" default:"1.00" digest:"out"`
	MaxCalls    int    `yaml:"max_calls" default:"1000" min:"1" max:"1000000" digest:"out"`
}

// Failover is what a certificate is good for.
type Failover struct {
	// Automatic: nobody is asked. A certificate is needed all the same.
	Automatic bool `yaml:"automatic" default:"false" digest:"out"`
	// OnUncertified is what becomes of a job that would need a target without one.
	OnUncertified string `yaml:"on_uncertified" default:"hold" enum:"hold|fail|manual" digest:"out"`
}

// CertificateTerms is how long a certificate lasts, and what ends it early.
type CertificateTerms struct {
	TTL   Lifetimes `yaml:"ttl" digest:"out"`
	Drift Drift     `yaml:"drift" digest:"out"`
}

// Lifetimes of a certificate by how a model is named.
type Lifetimes struct {
	PinnedSnapshot Duration `yaml:"pinned_snapshot" default:"30d" min:"1h" max:"366d" digest:"out"`
	Alias          Duration `yaml:"alias" default:"3d" min:"1h" max:"366d" digest:"out"`
	SelfHosted     Duration `yaml:"self_hosted" default:"14d" min:"1h" max:"366d" digest:"out"`
}

// Duration is a time.Duration that may be written in days.
type Duration time.Duration

// Drift is what a change that production shows does to a certificate.
type Drift struct {
	ResponseModel     string `yaml:"response_model" default:"suspend" enum:"suspend|reverify|ignore" digest:"out"`
	UpstreamProvider  string `yaml:"upstream_provider" default:"suspend" enum:"suspend|reverify|ignore" digest:"out"`
	ServerBuild       string `yaml:"server_build" default:"suspend" enum:"suspend|reverify|ignore" digest:"out"`
	SystemFingerprint string `yaml:"system_fingerprint" default:"reverify" enum:"suspend|reverify|ignore" digest:"out"`
	Price             string `yaml:"price" default:"reverify" enum:"suspend|reverify|ignore" digest:"out"`
}

// Shadow asks for samples of production. Nothing takes them.
type Shadow struct {
	Rate              float64 `yaml:"rate" required:"true" min:"0" max:"1" digest:"out"`
	MaxPerDay         int     `yaml:"max_per_day" required:"true" min:"1" max:"1000000" digest:"out"`
	MaxSpendUSDPerDay USD     `yaml:"max_spend_usd_per_day" required:"true" digest:"out"`
	// Renew: enough good samples extend a certificate.
	Renew bool `yaml:"renew" default:"false" digest:"out"`
}

// Runtime is what violations in production do.
type Runtime struct {
	SuspendAfter SuspendAfter `yaml:"suspend_after" digest:"out"`
}

// SuspendAfter so many violations in a window of so many outputs a certificate is
// suspended.
type SuspendAfter struct {
	Violations int `yaml:"violations" default:"2" min:"1" max:"1000" digest:"out"`
	Window     int `yaml:"window" default:"50" min:"1" max:"100000" digest:"out"`
}
