package sim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// question is a request to a model, in the terms that all dialects share.
type question struct {
	surface surface
	body    *schema.Value
	model   string
	system  []turn // what stands outside the conversation, or in its system messages
	turns   []turn // the rest
	order   []string

	schema   *schema.Value // nil: no shape was asked for
	strict   bool          // the schema is of the subset that the vendor enforces
	jsonOnly bool          // some JSON object was asked for
	tools    []tool
	choice   string // auto, none, required, or the name of a tool
	limit    int    // on the tokens of the answer; 0: none
	stop     []string
	stream   bool
	usage    bool // of a stream: tell the usage at its end
}

// surface is the API by which a model is asked.
type surface string

const (
	onChat      surface = "chat"
	onResponses surface = "responses"
	onMessages  surface = "messages"
)

// turn is one message.
type turn struct {
	role    string
	text    string
	content *schema.Value // nil: absent
	calls   []toolCall
	results []string // the ids of the calls that it answers
}

type toolCall struct {
	id, name string
	args     *schema.Value // of an answer
	text     string        // the arguments as JSON text
}

type tool struct {
	name   string
	schema *schema.Value
	raw    *schema.Value
}

// tokenCount is the rule by which minds count: a token for each four bytes or part
// of them.
func tokenCount(text string) int { return (len(text) + 3) / 4 }

// perMessage is what each message costs beside its text.
const perMessage = 4

// count is how many tokens the request has: its messages, tools and schema.
func (q *question) count() int {
	n := 0
	for _, t := range slices.Concat(q.system, q.turns) {
		n += perMessage + tokenCount(t.text)
		for _, c := range t.calls {
			n += tokenCount(c.name) + tokenCount(c.text)
		}
	}
	for _, t := range q.tools {
		n += tokenCount(t.raw.String())
	}
	if q.schema != nil {
		n += tokenCount(q.schema.String())
	}
	return n
}

// last is the text of the last message that is not the model's own.
func (q *question) last() string {
	for _, t := range slices.Backward(q.turns) {
		if t.role != "assistant" {
			return t.text
		}
	}
	return ""
}

// answersTool reports whether the last message is what a tool said.
func (q *question) answersTool() bool {
	return len(q.turns) > 0 && len(q.turns[len(q.turns)-1].results) > 0
}

// prefill is the beginning of the answer, where the caller wrote it.
func (q *question) prefill() string {
	if n := len(q.turns); n > 0 && q.turns[n-1].role == "assistant" && q.surface == onMessages {
		return q.turns[n-1].text
	}
	return ""
}

// public is the question as [Mind.AnswerFunc] sees it.
func (q *question) public() Question {
	pub := Question{Model: q.model, Prompt: q.last()}
	for i, t := range q.system {
		if i > 0 {
			pub.System += "\n"
		}
		pub.System += t.text
	}
	if q.schema != nil {
		pub.Schema = q.schema.String()
	}
	return pub
}

// add puts a message where it belongs.
func (q *question) add(t turn) {
	q.order = append(q.order, t.role)
	if t.role == "system" || t.role == "developer" {
		q.system = append(q.system, t)
	} else {
		q.turns = append(q.turns, t)
	}
}

// textOf joins the texts of a content: a string, a list of parts, or null.
func textOf(content *schema.Value) string {
	if !content.Is(schema.Array) {
		return content.Str()
	}
	var b strings.Builder
	for _, part := range content.Items {
		b.WriteString(part.Get("text").Str())
		b.WriteString(part.Get("refusal").Str())
	}
	return b.String()
}

// badRequest is a refusal of what was asked.
func badRequest(param, message string) *failure {
	return &failure{Status: http.StatusBadRequest, Param: param, Message: message}
}

// parseQuestion reads what every dialect has.
func parseQuestion(on surface, body []byte) (*question, *failure) {
	v, err := schema.Parse(body)
	switch {
	case err != nil:
		return nil, badRequest("", "the body is not a JSON object of this API: "+err.Error())
	case !v.Is(schema.Object):
		return nil, badRequest("", "the body is not a JSON object of this API")
	case v.Get("model").Str() == "":
		return nil, badRequest("model", "you must provide a model parameter")
	}
	q := &question{surface: on, body: v, model: v.Get("model").Str(), choice: "auto"}
	q.stream = isTrue(v.Get("stream"))
	return q, nil
}

func isTrue(v *schema.Value) bool { return v.Is(schema.Bool) && v.Text == "true" }

// askChat reads a request to the chat completions API.
func askChat(body []byte) (*question, *failure) {
	q, bad := parseQuestion(onChat, body)
	if bad != nil {
		return nil, bad
	}
	messages := q.body.Get("messages")
	if !messages.Is(schema.Array) || len(messages.Items) == 0 {
		return nil, badRequest("messages", "messages: at least one message is required")
	}
	for _, m := range messages.Items {
		t := turn{role: m.Get("role").Str(), content: m.Get("content")}
		t.text = textOf(t.content)
		if calls := m.Get("tool_calls"); calls.Is(schema.Array) {
			for _, c := range calls.Items {
				t.calls = append(t.calls, toolCall{id: c.Get("id").Str(), name: c.Get("function", "name").Str(), text: c.Get("function", "arguments").Str()})
			}
		}
		if t.role == "tool" {
			t.results = []string{m.Get("tool_call_id").Str()}
		}
		q.add(t)
	}
	format := q.body.Get("response_format")
	q.format(format, format.Get("json_schema"))
	q.limit = whole(q.body.Get("max_tokens"))
	if n := whole(q.body.Get("max_completion_tokens")); n > 0 {
		q.limit = n
	}
	q.stop = texts(q.body.Get("stop"))
	q.usage = isTrue(q.body.Get("stream_options", "include_usage"))
	q.readTools("function")
	return q, nil
}

// askResponses reads a request to the responses API.
func askResponses(body []byte) (*question, *failure) {
	q, bad := parseQuestion(onResponses, body)
	if bad != nil {
		return nil, bad
	}
	if text := q.body.Get("instructions").Str(); text != "" {
		q.add(turn{role: "system", text: text, content: q.body.Get("instructions")})
	}
	input := q.body.Get("input")
	switch {
	case input.Is(schema.String):
		q.add(turn{role: "user", text: input.Text, content: input})
	case input.Is(schema.Array) && len(input.Items) > 0:
		for _, item := range input.Items {
			q.add(responsesTurn(item))
		}
	default:
		return nil, badRequest("input", "you must provide an input parameter")
	}
	if isTrue(q.body.Get("background")) && (q.stream || q.body.Has("store") && !isTrue(q.body.Get("store"))) {
		return nil, badRequest("background", "background responses must be stored, and do not stream here")
	}
	format := q.body.Get("text", "format")
	q.format(format, format)
	q.limit = whole(q.body.Get("max_output_tokens"))
	q.readTools("")
	return q, nil
}

func responsesTurn(item *schema.Value) turn {
	switch item.Get("type").Str() {
	case "function_call":
		call := toolCall{id: item.Get("call_id").Str(), name: item.Get("name").Str(), text: item.Get("arguments").Str()}
		return turn{role: "assistant", calls: []toolCall{call}}
	case "function_call_output":
		return turn{role: "tool", text: textOf(item.Get("output")), content: item.Get("output"), results: []string{item.Get("call_id").Str()}}
	}
	return turn{role: item.Get("role").Str(), text: textOf(item.Get("content")), content: item.Get("content")}
}

// askMessages reads a request to the messages API.
func askMessages(body []byte) (*question, *failure) {
	q, bad := parseQuestion(onMessages, body)
	if bad != nil {
		return nil, bad
	}
	if system := q.body.Get("system"); system != nil {
		q.add(turn{role: "system", text: textOf(system), content: system})
	}
	messages := q.body.Get("messages")
	if !messages.Is(schema.Array) || len(messages.Items) == 0 {
		return nil, badRequest("messages", "messages: at least one message is required")
	}
	for _, m := range messages.Items {
		t := turn{role: m.Get("role").Str(), content: m.Get("content")}
		t.text = textOf(t.content)
		if t.content.Is(schema.Array) {
			t.readBlocks()
		}
		q.add(t)
	}
	format := q.body.Get("output_config", "format")
	q.format(format, format)
	q.limit = whole(q.body.Get("max_tokens"))
	q.stop = texts(q.body.Get("stop_sequences"))
	q.usage = true
	q.readTools("")
	return q, nil
}

// readBlocks reads what an Anthropic content has beside text.
func (t *turn) readBlocks() {
	for _, b := range t.content.Items {
		switch b.Get("type").Str() {
		case "tool_use":
			input := b.Get("input")
			if input == nil {
				input = &schema.Value{Kind: schema.Object}
			}
			t.calls = append(t.calls, toolCall{id: b.Get("id").Str(), name: b.Get("name").Str(), text: input.String()})
		case "tool_result":
			t.results = append(t.results, b.Get("tool_use_id").Str())
			t.text += textOf(b.Get("content"))
		}
	}
}

// format reads which shape the answer is to have.
func (q *question) format(format, of *schema.Value) {
	switch format.Get("type").Str() {
	case "json_schema":
		q.schema, q.strict = of.Get("schema"), isTrue(of.Get("strict"))
	case "json_object":
		q.jsonOnly = true
	}
}

// readTools reads the tools and which is to be called. Chat completions put a tool
// into a member of its own.
func (q *question) readTools(member string) {
	list := q.body.Get("tools")
	if !list.Is(schema.Array) {
		list = &schema.Value{Kind: schema.Array}
	}
	for _, raw := range list.Items {
		of := raw
		if member != "" {
			of = raw.Get(member)
		}
		params := of.Get("parameters")
		if q.surface == onMessages {
			params = of.Get("input_schema")
		}
		if params == nil {
			params = &schema.Value{Kind: schema.Object, Names: []string{"type"}, Items: []*schema.Value{schema.Str("object")}}
		}
		q.tools = append(q.tools, tool{name: of.Get("name").Str(), schema: params, raw: raw})
	}
	choice := q.body.Get("tool_choice")
	kind := choice.Str()
	if choice.Is(schema.Object) {
		kind = choice.Get("type").Str()
	}
	switch kind {
	case "none":
		q.choice = "none"
	case "required", "any":
		q.choice = "required"
	case "function":
		q.choice = choice.Get("name").Str() + choice.Get("function", "name").Str()
	case "tool":
		q.choice = choice.Get("name").Str()
	}
}

// whole is a number as a count; 0 where it is none.
func whole(v *schema.Value) int {
	if n, ok := numberOf(v); ok && n > 0 {
		return int(min(n, 1<<30))
	}
	return 0
}

// texts is a string or a list of them.
func texts(v *schema.Value) []string {
	switch {
	case v.Is(schema.String):
		return []string{v.Text}
	case v.Is(schema.Array):
		var list []string
		for _, item := range v.Items {
			list = append(list, item.Str())
		}
		return list
	}
	return nil
}
