package contract

import "encoding/json"

// File is a contract's file as it was read, defaults filled in.
//
// The tags are the format: yaml names a key, required and default say what is
// true without it, enum, min and max what it may be, and digest whether evidence
// depends on it. A key without a digest tag fails a test.
type File struct {
	// APIVersion is the version of the format.
	APIVersion string `yaml:"apiVersion" required:"true" enum:"onejob/contract.v1" digest:"out"`
	// Kind of job that the contract is about.
	Kind string `yaml:"kind" required:"true" form:"name" digest:"out"`
	// Maintainer is whom to ask. It has no effect.
	Maintainer string `yaml:"maintainer" digest:"out"`
	// InputSchema is what the caller hands in.
	InputSchema Schema `yaml:"input_schema" required:"true" digest:"in"`
	// Output is what any winner hands back.
	Output Output `yaml:"output" required:"true" digest:"in"`
	// Prompt is the request in neutral words. Nil: the target's own configuration
	// makes the request.
	Prompt *Prompt `yaml:"prompt" digest:"in"`
	// Params are the parameters in neutral words.
	Params Params `yaml:"params" digest:"in"`
	// Render is what is checked of a rendered prompt.
	Render Render `yaml:"render" digest:"in"`
	// Invariants hold of every output, in production too.
	Invariants []Assertion `yaml:"invariants" digest:"in"`
	// Expectations hold of the outputs of cases that carry what is expected.
	Expectations []Expectation `yaml:"expectations" digest:"in"`
	// Cases say where the evidence comes from. Their contents are in the digest,
	// the names of their files are not.
	Cases CaseFiles `yaml:"cases" required:"true" digest:"out"`
	// Sampling says how the cases are run.
	Sampling Sampling `yaml:"sampling" digest:"out"`
	// Gates are what must be shown.
	Gates Gates `yaml:"gates" required:"true" digest:"out"`
	// Equivalence compares a fallback with the primary. Nil: it is not asked for.
	Equivalence *Equivalence `yaml:"equivalence" digest:"out"`
	// SideEffects is the effect of the kind: what a duplicate would cost.
	SideEffects string `yaml:"side_effects" required:"true" enum:"none|idempotent|external" digest:"in"`
	// Verify bounds a verification.
	Verify Verify `yaml:"verify" digest:"out"`
	// Failover is what a certificate is good for.
	Failover Failover `yaml:"failover" digest:"out"`
	// Certificate is how long one lasts, and what ends it early.
	Certificate CertificateTerms `yaml:"certificate" digest:"out"`
	// Shadow asks for samples of production, which nothing takes: lint warns of it.
	Shadow *Shadow `yaml:"shadow" digest:"out"`
	// Runtime is what violations in production do.
	Runtime Runtime `yaml:"runtime" digest:"out"`
}

// Schema is a JSON Schema of draft 2020-12, as JSON.
type Schema json.RawMessage

// Media of an output.
const (
	MediaJSON     = "json"
	MediaText     = "text"
	MediaToolCall = "tool_call"
	MediaBinary   = "binary"
	MediaHTTP     = "http"
)

// Output is what any winner hands back.
type Output struct {
	Media string `yaml:"media" required:"true" enum:"json|text|tool_call|binary|http" digest:"in"`
	// Extract: strict means that the whole content is one JSON value.
	Extract string `yaml:"extract" default:"strict" enum:"strict" digest:"in"`
	// Schema of the value. Empty for text and binary.
	Schema Schema `yaml:"schema" digest:"in"`
	// Integers: literal means that 1200.0 is no integer; value, that it is.
	Integers string `yaml:"integers" default:"literal" enum:"literal|value" digest:"in"`
	// Finish are the ways to end that are no violation. Nil: complete.
	Finish []Finish `yaml:"finish" enum:"complete|length|filter|refusal|tool" digest:"in"`
}

// Prompt is the request, rendered for each wire protocol by its adapter.
type Prompt struct {
	System string `yaml:"system" digest:"in"`
	User   string `yaml:"user" required:"true" digest:"in"`
	// Untrusted are members of the input that somebody else wrote.
	Untrusted []string `yaml:"untrusted" digest:"in"`
}

// Params are parameters in neutral words, by name.
type Params struct {
	// Required ones: a target that cannot carry one is refused without a call.
	Required map[string]Value `yaml:"required" digest:"in"`
	// Tuning ones may be dropped by a target; every drop is recorded.
	Tuning map[string]Value `yaml:"tuning" digest:"in"`
	// Temperature is low (0, or the least that the target takes), or a number.
	Temperature Temperature `yaml:"temperature" digest:"in"`
}

// Value is any JSON value.
type Value json.RawMessage

// Temperature is "low" or a number as text. Empty: nothing was said.
type Temperature string

// Render is what is checked of a rendered prompt.
type Render struct {
	// ForbidUnrendered are texts that a template left standing would show.
	ForbidUnrendered []string `yaml:"forbid_unrendered" default:"{{ }} {% ${" digest:"in"`
	// SpecialTokensInUntrusted is what a control token in somebody's text does.
	SpecialTokensInUntrusted string  `yaml:"special_tokens_in_untrusted" default:"fail" enum:"fail|neutralise|allow" digest:"in"`
	RoundTrip                string  `yaml:"round_trip" default:"exact" enum:"exact|skip" digest:"in"`
	ContentFidelity          string  `yaml:"content_fidelity" default:"exact" enum:"exact|skip" digest:"in"`
	HiddenContent            string  `yaml:"hidden_content" default:"forbid" enum:"forbid|allow" digest:"in"`
	BOS                      string  `yaml:"bos" default:"at_most_one" enum:"at_most_one|allow" digest:"in"`
	Context                  Context `yaml:"context" digest:"in"`
	// CountTolerance is how far token counts may differ.
	CountTolerance CountTolerance `yaml:"count_tolerance" digest:"in"`
}

// Context is how much of a target's context a prompt may take.
type Context struct {
	MaxFraction         float64 `yaml:"max_fraction" default:"0.6" min:"0.01" max:"1" digest:"in"`
	ReserveOutputTokens int     `yaml:"reserve_output_tokens" default:"0" min:"0" max:"10000000" digest:"in"`
}

// CountTolerance is how far apart counts of the same prompt may be, as a fraction.
type CountTolerance struct {
	LocalVsRemote float64 `yaml:"local_vs_remote" default:"0.03" min:"0" max:"0.5" digest:"in"`
}

// Assertion is a CEL expression that must be true of input and output.
type Assertion struct {
	ID  string `yaml:"id" required:"true" form:"name" digest:"in"`
	CEL string `yaml:"cel" required:"true" digest:"in"`
}

// Gates of expectations.
const (
	GateSemantic = "semantic"
	GateAdvisory = "advisory" // shown, and never decides
)

// Expectation is a CEL expression over input, output and what a case expects.
type Expectation struct {
	ID   string `yaml:"id" required:"true" form:"name" digest:"in"`
	CEL  string `yaml:"cel" required:"true" digest:"in"`
	Gate string `yaml:"gate" required:"true" enum:"semantic|advisory" digest:"in"`
}
