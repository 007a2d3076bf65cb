package sim

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

func refused(param, code, message string) *failure {
	f := badRequest(param, message)
	f.Code = code
	return f
}

func unsupported(param, advice string) *failure {
	return refused(param, "unsupported_parameter", "Unsupported parameter: '"+param+"' is not supported with this model."+advice)
}

// given reports whether a parameter is there and not null.
func (q *question) given(param string) bool {
	v := q.body.Get(param)
	return v != nil && !v.Is(schema.Null)
}

func refuseMaxTokens(q *question, _ string) *failure {
	if q.surface != onChat || !q.given("max_tokens") {
		return nil
	}
	return unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
}

func refuseTemperature(q *question, _ string) *failure {
	n, set := numberOf(q.body.Get("temperature"))
	if !set || n == 1 {
		return nil
	}
	return refused("temperature", "unsupported_value",
		fmt.Sprintf("Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", n))
}

func refuseStop(q *question, _ string) *failure {
	for _, name := range []string{"stop", "stop_sequences"} {
		if q.given(name) {
			return unsupported(name, "")
		}
	}
	return nil
}

func refuseParam(q *question, param string) *failure {
	if !q.given(param) {
		return nil
	}
	return unsupported(param, "")
}

func refuseDeveloper(q *question, _ string) *failure {
	i := slices.Index(q.order, "developer")
	if i < 0 {
		return nil
	}
	return badRequest("messages", fmt.Sprintf("messages[%d].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`", i))
}

func refuseLateSystem(q *question, _ string) *failure {
	for i, role := range q.order {
		if i > 0 && (role == "system" || role == "developer") {
			return badRequest("messages", "System message must be at the beginning.")
		}
	}
	return nil
}

func refuseSystem(q *question, _ string) *failure {
	if len(q.system) == 0 {
		return nil
	}
	return badRequest("messages", "Conversation roles must alternate user/assistant/user/assistant/...")
}

var ninePlain = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

func refuseCallID(q *question, _ string) *failure {
	for _, t := range q.turns {
		for _, c := range t.calls {
			if !ninePlain.MatchString(c.id) {
				return badRequest("messages", "Tool call id was "+c.id+" but must be a-z, A-Z, 0-9, with a length of 9.")
			}
		}
	}
	return nil
}

func refuseNullContent(q *question, _ string) *failure {
	for i, t := range q.turns {
		if len(t.calls) > 0 && q.surface == onChat && (t.content == nil || t.content.Is(schema.Null)) {
			return badRequest("messages", fmt.Sprintf("messages[%d]: content is to be a string", i))
		}
	}
	return nil
}

func refuseEmptyContent(q *question, _ string) *failure {
	for i, t := range q.turns {
		if len(t.calls) > 0 && t.content.Is(schema.String) && t.text == "" {
			return badRequest("messages", fmt.Sprintf("messages[%d]: text content must be non-empty", i))
		}
	}
	return nil
}

// unsupportedKeywords are those that some vendors' subsets lack.
var unsupportedKeywords = []string{"oneOf", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"}

func refuseSchema(q *question, _ string) *failure {
	all := []*schema.Value{}
	if q.schema != nil {
		all = append(all, q.schema)
	}
	for _, t := range q.tools {
		all = append(all, t.schema)
	}
	for _, s := range all {
		found := ""
		s.Walk(func(v *schema.Value) bool {
			for _, keyword := range unsupportedKeywords {
				if v.Has(keyword) {
					found = keyword
				}
			}
			if v.Get("type").Is(schema.Array) {
				found = "type"
			}
			return found == ""
		})
		if found != "" {
			return badRequest("response_format", fmt.Sprintf("Invalid JSON payload received. Unknown name %q at 'schema': Cannot find field.", found))
		}
	}
	return nil
}

func refusePrefill(q *question, _ string) *failure {
	if n := len(q.turns); n == 0 || q.turns[n-1].role != "assistant" {
		return nil
	}
	return badRequest("messages", "This model does not support assistant message prefill. The conversation must end with a user message.")
}
