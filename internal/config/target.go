package config

import (
	"sort"

	"github.com/goccy/go-yaml/ast"
)

// Target is one place where a job can be tried. Exactly one member is set.
type Target struct {
	HTTP      *HTTPTarget
	OpenAI    *OpenAITarget
	Anthropic *AnthropicTarget
	Worker    *WorkerTarget
}

// HTTPTarget is any HTTP endpoint.
type HTTPTarget struct {
	Provider          string        `yaml:"provider" required:"true" enum:"http" doc:"Any HTTP endpoint."`
	Request           Request       `yaml:"request" required:"true" doc:"The request that is sent."`
	IdempotencyHeader string        `yaml:"idempotency_header" doc:"The header that carries a key stable per job and target. Absent: none is sent."`
	MaxExecution      Duration      `yaml:"max_execution" min:"1ms" max:"3650d" doc:"The longest it can still be working after the request went out. Absent: not finding a job there never proves that it failed."`
	MaxResponseBytes  int64         `yaml:"max_response_bytes" min:"1" max:"1073741824" doc:"The largest answer that is kept, in bytes; the result of a larger one is lost. Absent: the provider's own bound."`
	DialTimeout       Duration      `yaml:"dial_timeout" min:"1ms" max:"5m" doc:"Bounds the making of a connection. Absent: the provider's own bound."`
	ResultType        string        `yaml:"result_type" default:"application/json" doc:"The media type that a success must have; */* takes anything."`
	StreamsBody       bool          `yaml:"streams_body" default:"false" doc:"The endpoint acts on a body before its end, so that one cut short proves nothing."`
	Sandbox           bool          `yaml:"sandbox" default:"false" doc:"Nothing done there is real, so that contracts with verify.mode sandbox may be verified at it."`
	Outcomes          []OutcomeRule `yaml:"outcomes" doc:"What certain answers prove, ahead of the usual table. The first that fits counts."`
	Cost              string        `yaml:"cost" doc:"A CEL expression over status, headers and body: the cost in millionths of the currency."`
	Currency          string        `yaml:"currency" doc:"The currency of cost. Absent: USD."`
	Usage             string        `yaml:"usage" doc:"A CEL expression: what the provider counted. Absent: the member usage of the body."`

	Accepted *Accepted `yaml:"accepted" doc:"The provider takes the work and answers later. Absent: it never does."`
	Lookup   *Lookup   `yaml:"lookup" doc:"How to ask the provider what became of an attempt. Absent: it cannot be asked."`
	Callback *Callback `yaml:"callback" doc:"How to read what the provider reports to callback_url. Absent: it reports nothing."`
	Cancel   *Cancel   `yaml:"cancel" doc:"How to ask the provider to give an attempt up. Absent: it cannot be asked."`
	Replay   *Replay   `yaml:"replay" doc:"Whether an unknown attempt may be sent again under its key, to find out. Absent: never."`
}

// Request is what is sent to an HTTP endpoint.
type Request struct {
	Method  string            `yaml:"method" default:"POST" enum:"POST|PUT|PATCH|GET|DELETE" doc:"The HTTP method."`
	URL     string            `yaml:"url" required:"true" doc:"The absolute URL, http or https."`
	Headers map[string]Secret `yaml:"headers" doc:"Headers to send. Values may hold ${env:NAME} and ${file:/path}."`
	Body    string            `yaml:"body" doc:"A Jinja template over input, job.id, attempt.id, attempt.number, metadata, provider_key and callback_url. Absent: the job's input, byte for byte."`
}

// OutcomeRule says what certain answers prove.
type OutcomeRule struct {
	When        string `yaml:"when" required:"true" doc:"A CEL expression over status, headers and body."`
	Class       string `yaml:"class" required:"true" enum:"not_executed|refused|executed_failed|succeeded|unknown|result_lost|accepted" doc:"What it proves. accepted needs accepted.id, or api responses: the work is looked up under that id."`
	TargetFault bool   `yaml:"target_fault" default:"false" doc:"The target is at fault, not the input: another target may do."`
}

// OpenAITarget speaks the OpenAI API, at OpenAI or at a compatible server.
type OpenAITarget struct {
	Provider         string            `yaml:"provider" required:"true" enum:"openai" doc:"OpenAI or a compatible server."`
	BaseURL          string            `yaml:"base_url" doc:"Where the API is, without the API's path. Absent: OpenAI's own."`
	API              string            `yaml:"api" enum:"chat|responses|embeddings|images" doc:"What is called: chat completions, responses, embeddings or images/generations. Absent: responses with background, else chat."`
	Background       bool              `yaml:"background" default:"false" doc:"Responses go on without a connection and are looked up until they are done: they are asked for with background and store true. It needs api responses."`
	Lookup           *OpenAILookup     `yaml:"lookup" doc:"How responses are looked up. Absent: every 2s, and one that is not found proves nothing."`
	Model            string            `yaml:"model" required:"true" doc:"The model's name there."`
	APIKey           Secret            `yaml:"api_key" doc:"The credential; ${env:NAME} and ${file:/path} are resolved. A base_url may do without."`
	Organization     string            `yaml:"organization" doc:"Absent: not sent."`
	Project          string            `yaml:"project" doc:"Absent: not sent."`
	Price            Price             `yaml:"price" doc:"What tokens cost. Absent: no price is told."`
	MaxExecution     Duration          `yaml:"max_execution" min:"1ms" max:"3650d" doc:"The longest it can still be working after the request went out."`
	MaxResponseBytes int64             `yaml:"max_response_bytes" min:"1" max:"1073741824" doc:"The largest answer that is kept, in bytes. Absent: the provider's own bound."`
	DialTimeout      Duration          `yaml:"dial_timeout" min:"1ms" max:"5m" doc:"Bounds the making of a connection. Absent: the provider's own bound."`
	Pinned           bool              `yaml:"pinned" default:"false" doc:"The name is a dated snapshot that does not move. Absent: it is taken for an alias, whose certificates last a shorter time."`
	SelfHosted       bool              `yaml:"self_hosted" default:"false" doc:"You serve the model yourself, so that it moves when you move it."`
	Sandbox          bool              `yaml:"sandbox" default:"false" doc:"Nothing done there is real, so that contracts with verify.mode sandbox may be verified at it."`
	ContextTokens    int               `yaml:"context_tokens" min:"1" max:"100000000" doc:"How many tokens the model's context has. Absent: a prompt is not held to it."`
	MinTemperature   float64           `yaml:"min_temperature" default:"0" min:"0" max:"2" doc:"The least temperature that the model takes."`
	Tokenizer        Tokenizer         `yaml:"tokenizer" doc:"How tokens are counted for contracts."`
	Map              map[string]string `yaml:"map" doc:"The wire's own names of parameters, as in max_output_tokens: max_tokens; drop leaves one out, and dots go inside. A contract's parameters go by its names. Of a caller's own body the top-level members are moved or dropped that are named here, as in max_completion_tokens: max_tokens. Absent: a contract's have the names that this program knows, and a caller's body is left as it is."`
	RetiresAt        string            `yaml:"retires_at" doc:"The day on which the provider retires the model, as in 2027-03-31. It is warned of 30 days ahead."`
	Upstream         Upstream          `yaml:"upstream" doc:"Who serves the model behind an aggregator."`
	Outcomes         []OutcomeRule     `yaml:"outcomes" doc:"What certain answers prove, ahead of the usual table."`
}

// OpenAILookup says how responses are looked up.
type OpenAILookup struct {
	Authoritative bool     `yaml:"authoritative" default:"false" doc:"A response that is not found proves that nothing happened, once max_execution has passed. OpenAI forgets responses, so this is for servers that do not."`
	Every         Duration `yaml:"every" default:"2s" min:"100ms" max:"1h" doc:"The pause after the first question. It grows to 5m."`
}

// AnthropicTarget speaks the Anthropic messages API.
type AnthropicTarget struct {
	Provider         string            `yaml:"provider" required:"true" enum:"anthropic" doc:"The Anthropic messages API."`
	BaseURL          string            `yaml:"base_url" doc:"Where the API is, without /v1/messages. Absent: Anthropic's own."`
	Version          string            `yaml:"version" doc:"The version of the API. Absent: the one this program knows."`
	Model            string            `yaml:"model" required:"true" doc:"The model's name there."`
	APIKey           Secret            `yaml:"api_key" doc:"The credential; ${env:NAME} and ${file:/path} are resolved."`
	MaxTokens        int64             `yaml:"max_tokens" min:"1" doc:"The bound on what is generated, for inputs that name none."`
	Price            Price             `yaml:"price" doc:"What tokens cost. Absent: no price is told."`
	MaxExecution     Duration          `yaml:"max_execution" min:"1ms" max:"3650d" doc:"The longest it can still be working after the request went out."`
	MaxResponseBytes int64             `yaml:"max_response_bytes" min:"1" max:"1073741824" doc:"The largest answer that is kept, in bytes. Absent: the provider's own bound."`
	DialTimeout      Duration          `yaml:"dial_timeout" min:"1ms" max:"5m" doc:"Bounds the making of a connection. Absent: the provider's own bound."`
	Pinned           bool              `yaml:"pinned" default:"false" doc:"The name is a dated snapshot that does not move. Absent: it is taken for an alias, whose certificates last a shorter time."`
	SelfHosted       bool              `yaml:"self_hosted" default:"false" doc:"You serve the model yourself, so that it moves when you move it."`
	Sandbox          bool              `yaml:"sandbox" default:"false" doc:"Nothing done there is real, so that contracts with verify.mode sandbox may be verified at it."`
	ContextTokens    int               `yaml:"context_tokens" min:"1" max:"100000000" doc:"How many tokens the model's context has. Absent: a prompt is not held to it."`
	MinTemperature   float64           `yaml:"min_temperature" default:"0" min:"0" max:"2" doc:"The least temperature that the model takes."`
	Tokenizer        Tokenizer         `yaml:"tokenizer" doc:"How tokens are counted for contracts."`
	Map              map[string]string `yaml:"map" doc:"The wire's own names of parameters, as in max_output_tokens: max_tokens; drop leaves one out, and dots go inside. A contract's parameters go by its names. Of a caller's own body the top-level members are moved or dropped that are named here, as in max_completion_tokens: max_tokens. Absent: a contract's have the names that this program knows, and a caller's body is left as it is."`
	RetiresAt        string            `yaml:"retires_at" doc:"The day on which the provider retires the model, as in 2027-03-31. It is warned of 30 days ahead."`
	Upstream         Upstream          `yaml:"upstream" doc:"Who serves the model behind an aggregator."`
	Outcomes         []OutcomeRule     `yaml:"outcomes" doc:"What certain answers prove, ahead of the usual table."`
}

// Tokenizer says how tokens are counted.
type Tokenizer struct {
	Count string `yaml:"count" doc:"remote, vllm and llama.cpp ask the target, each in its own way; tiktoken:o200k_base and tiktoken:cl100k_base count here; file:PATH counts by a tokenizer.json, relative to this file. Absent: remote where the API has a way, else not at all."`
}

// Upstream says who serves a model behind an aggregator.
type Upstream struct {
	Only []string `yaml:"only" doc:"The providers that the aggregator may use, and no other. A certificate of an aggregator needs it."`
}

// WorkerTarget is programs that take attempts over HTTP. Nothing is called.
type WorkerTarget struct {
	Provider     string   `yaml:"provider" required:"true" enum:"worker" doc:"Workers take these attempts over HTTP, with POST /v1/attempts:claim."`
	MaxExecution Duration `yaml:"max_execution" min:"1ms" max:"3650d" doc:"The longest a worker can still be working after its lease ended. Absent: nothing but a worker's word, or a person's at risk, ends a lost attempt as failed."`
}

// Price is what tokens cost.
type Price struct {
	InputMicros  int64  `yaml:"input_micros" min:"0" doc:"Millionths of the currency for a million tokens of input."`
	OutputMicros int64  `yaml:"output_micros" min:"0" doc:"The same for output."`
	Currency     string `yaml:"currency" doc:"As in USD."`
}

// variants makes one target of each provider, by its name in the file.
func variants() map[string]func() (Target, any) {
	return map[string]func() (Target, any){
		"http":      func() (Target, any) { t := &HTTPTarget{}; return Target{HTTP: t}, t },
		"openai":    func() (Target, any) { t := &OpenAITarget{}; return Target{OpenAI: t}, t },
		"anthropic": func() (Target, any) { t := &AnthropicTarget{}; return Target{Anthropic: t}, t },
		"worker":    func() (Target, any) { t := &WorkerTarget{}; return Target{Worker: t}, t },
	}
}

func providerNames() []string {
	var names []string
	for name := range variants() {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// variant returns the member that is set, or nil.
func (t *Target) variant() any {
	switch {
	case t.HTTP != nil:
		return t.HTTP
	case t.OpenAI != nil:
		return t.OpenAI
	case t.Anthropic != nil:
		return t.Anthropic
	case t.Worker != nil:
		return t.Worker
	}
	return nil
}

// decodeNode finds the provider first, for it says which keys there are.
func (t *Target) decodeNode(d *decoder, n ast.Node, path string) {
	entries, ok := d.entries(n, path)
	if !ok {
		return
	}
	for _, e := range entries {
		if e.key != "provider" {
			continue
		}
		name := scalarText(d.unalias(e.value))
		makeVariant, known := variants()[name]
		if !known {
			d.faultAt(e.value, path+".provider", "there is no provider "+quote(name)+Suggest(name, providerNames()))
			return
		}
		target, member := makeVariant()
		d.decodeInto(n, path, member)
		*t = target
		return
	}
	d.faultAt(n, path, "provider is required"+Suggest("", providerNames()))
}
