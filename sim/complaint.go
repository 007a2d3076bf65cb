package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// parameters are those that each API knows.
var parameters = map[surface]string{
	onChat: "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model n " +
		"parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier " +
		"stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options",
	onResponses: "background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls " +
		"previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text " +
		"tool_choice tools top_logprobs top_p truncation user",
	onMessages: "cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model output_config service_tier stop_sequences " +
		"stream system temperature thinking tool_choice tools top_k top_p",
}

// roles are those of each API.
var roles = map[surface][]string{
	onChat:      {"system", "developer", "user", "assistant", "tool"},
	onResponses: {"system", "developer", "user", "assistant", "tool"},
	onMessages:  {"system", "user", "assistant"},
}

func numberOf(v *schema.Value) (float64, bool) {
	if !v.Is(schema.Number) {
		return 0, false
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	return n, err == nil
}

// complaint is what an honest model refuses of a question's parameters. Nil: nothing.
func (q *question) complaint() *failure {
	known := strings.Fields(parameters[q.surface])
	for _, name := range q.body.Names {
		if !slices.Contains(known, name) {
			f := badRequest(name, "Unrecognized request argument supplied: "+name)
			f.Code = "unknown_parameter"
			return f
		}
	}
	hottest := 2.0
	if q.surface == onMessages {
		hottest = 1
	}
	for _, r := range []struct {
		name      string
		low, high float64
		whole     bool
	}{
		{"temperature", 0, hottest, false},
		{"top_p", 0, 1, false},
		{"max_tokens", 1, 1 << 30, true},
		{"max_completion_tokens", 1, 1 << 30, true},
		{"max_output_tokens", 1, 1 << 30, true},
		{"n", 1, 1, true},
	} {
		v := q.body.Get(r.name)
		if v == nil || v.Is(schema.Null) {
			continue
		}
		if n, ok := numberOf(v); !ok || n < r.low || n > r.high || r.whole && n != float64(int64(n)) {
			f := badRequest(r.name, fmt.Sprintf("Invalid value for '%s': it is %v to %v, got %s", r.name, r.low, r.high, v))
			f.Code = "invalid_value"
			return f
		}
	}
	return nil
}

// disorder is what no model understands about a question. Nil: nothing.
func (q *question) disorder() *failure {
	if q.surface == onMessages && q.limit == 0 {
		return badRequest("max_tokens", "max_tokens: Field required")
	}
	asked := map[string]bool{}
	for i, t := range q.turns {
		if !slices.Contains(roles[q.surface], t.role) {
			return badRequest("messages", fmt.Sprintf("messages: %q is not one of the roles %s", t.role, strings.Join(roles[q.surface], ", ")))
		}
		if i == 0 && q.surface == onMessages && t.role != "user" {
			return badRequest("messages", "messages: the first message must be of the user")
		}
		for _, c := range t.calls {
			asked[c.id] = true
		}
		for _, id := range t.results {
			if !asked[id] {
				return badRequest("messages", fmt.Sprintf("messages: the result of a tool answers the call %q, which is not in the messages before", id))
			}
		}
	}
	if n := len(q.system); q.surface == onMessages && n > 0 && slices.Index(q.order, "system") > 0 {
		return badRequest("messages", "messages: the system prompt is a parameter of its own")
	}
	if q.choice != "auto" && q.choice != "none" && q.chosenTool() < 0 {
		return badRequest("tool_choice", fmt.Sprintf("tool_choice: there is no tool %q", q.choice))
	}
	return q.badSchema()
}

// badSchema is what is wrong with the schemas. One that is to be enforced strictly
// names every member and forbids others, as the vendors ask.
func (q *question) badSchema() *failure {
	format := map[surface]string{onChat: "response_format", onResponses: "text.format", onMessages: "output_config.format"}[q.surface]
	if q.body.Get("response_format", "type").Str() == "json_schema" || q.body.Get("text", "format", "type").Str() == "json_schema" ||
		q.body.Get("output_config", "format", "type").Str() == "json_schema" {
		if q.schema == nil {
			return badRequest(format, "Missing required parameter: '"+format+".schema'")
		}
	}
	if q.schema != nil {
		if bad := writable(format, q.schema); bad != nil {
			return bad
		}
		if q.strict || q.surface == onMessages {
			return loose(format, q.schema)
		}
	}
	for _, t := range q.tools {
		if bad := writable("tools", t.schema); bad != nil {
			return bad
		}
	}
	return nil
}

func writable(param string, s *schema.Value) *failure {
	if _, err := schema.Write(s, &reading{}); err != nil {
		return badRequest(param, "Invalid schema for "+param+": "+err.Error())
	}
	return nil
}

// loose finds an object that leaves members open.
func loose(param string, s *schema.Value) *failure {
	var bad *failure
	s.Walk(func(v *schema.Value) bool {
		properties := v.Get("properties")
		if !properties.Is(schema.Object) || v.Get("type").Str() != "object" {
			return true
		}
		if other := v.Get("additionalProperties"); !other.Is(schema.Bool) || isTrue(other) {
			bad = badRequest(param, "Invalid schema for "+param+": 'additionalProperties' is required to be supplied and to be false")
		}
		required := texts(v.Get("required"))
		for _, name := range properties.Names {
			if !slices.Contains(required, name) && param != "output_config.format" {
				bad = badRequest(param, "Invalid schema for "+param+": 'required' is to name every property; missing '"+name+"'")
			}
		}
		return bad == nil
	})
	return bad
}

// tooLong refuses what does not fit into the window.
func (q *question) tooLong(window int) *failure {
	if n := q.count(); n >= window {
		return &failure{
			Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: "messages",
			Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, window),
		}
	}
	return nil
}

// chosenTool is the index of the tool that is to be called; -1: none.
func (q *question) chosenTool() int {
	if q.answersTool() && q.choice == "auto" {
		return -1
	}
	return slices.IndexFunc(q.tools, func(t tool) bool {
		switch q.choice {
		case "none":
			return false
		case "required":
			return true
		case "auto":
			return strings.Contains(q.last(), t.name)
		}
		return t.name == q.choice
	})
}
