package translate

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// messagesRequest says what becomes of a message's members in a chat completion's.
var messagesRequest = table{
	{"model", to("model")},
	{"system", messagesSystem},
	{"messages", messagesMessages},
	{"max_tokens", to("max_completion_tokens")},
	{"temperature", number("temperature", 0, 1)}, // a model of the other API takes more, and this one's callers never meant it
	{"top_p", to("top_p")},
	{"stop_sequences", messagesStop},
	{"tools", messagesTools},
	{"tool_choice", messagesChoice},
	{"output_config", messagesOutput},
	{"metadata", messagesMetadata},
	{"service_tier", words("service_tier", map[string]string{"auto": "", "standard_only": "default"})},

	// The door makes a stream of the whole answer.
	{"stream", only("true", "false")},

	// What the other API does anyway.
	{"thinking", only(`{"type":"disabled"}`)},

	// A hint: no answer depends on it.
	{"cache_control", dropped},

	// What would be lost; whatever is not in this table is refused too.
	{"top_k", refused},
	{"container", refused},
	{"context_management", refused},
	{"inference_geo", refused},
	{"mcp_servers", refused},
}

// maxStops is how many sequences a chat completion stops at.
const maxStops = 4

// ToChat says a request for a message in the words of chat completions.
func ToChat(messages []byte) (Request, error) {
	return messagesRequest.translate(messages, func(t *translation) error {
		if t.oneCall {
			if err := t.set("tool_choice.disable_parallel_tool_use", "parallel_tool_calls", false); err != nil {
				return err
			}
		}
		return t.putTalk()
	})
}

func messagesStop(t *translation, name string, v jsontext.Value) error {
	stops, err := list(name, v)
	switch {
	case err != nil:
		return err
	case len(stops) > maxStops:
		return refuse(name, fmt.Sprintf("the other API takes %d", maxStops))
	case len(stops) == 0:
		return nil
	}
	return t.set(name, "stop", raw(v))
}

func messagesMetadata(t *translation, name string, v jsontext.Value) error {
	m, err := fields(name, v, "user_id")
	if err != nil || m["user_id"] == nil {
		return err
	}
	return t.set(name, "user", raw(m["user_id"]))
}

// schemaName is what a schema is called where the other API wants a name.
const schemaName = "output"

func messagesOutput(t *translation, name string, v jsontext.Value) error {
	m, err := fields(name, v, "format", "effort")
	if err != nil {
		return err
	}
	if effort := m["effort"]; effort != nil {
		if err := words("reasoning_effort", efforts)(t, name+".effort", effort); err != nil {
			return err
		}
	}
	if m["format"] == nil {
		return nil
	}
	f, err := fields(name+".format", m["format"], "type", "schema")
	if err != nil {
		return err
	}
	if literal(f["type"]) != "json_schema" || f["schema"] == nil {
		return refuse(name+".format.type", noPlace)
	}
	return t.set(name, "response_format", map[string]any{"type": "json_schema", "json_schema": map[string]any{
		"name": schemaName, "strict": true, "schema": raw(f["schema"]),
	}})
}

func messagesTools(t *translation, name string, v jsontext.Value) error {
	tools, err := list(name, v)
	if err != nil {
		return err
	}
	var written []*prompt.Body
	for i, each := range tools {
		path := at(name, i)
		m, err := t.cached(path, each, "type", "name", "description", "input_schema", "strict")
		if err != nil {
			return err
		}
		if m["type"] != nil && literal(m["type"]) != "custom" {
			return refuse(path+".type", noPlace)
		}
		f := &builder{}
		f.copy("name", m["name"])
		f.copy("description", m["description"])
		f.copy("parameters", m["input_schema"])
		f.copy("strict", m["strict"])
		function, err := f.body(path)
		if err != nil {
			return err
		}
		b := &builder{}
		b.value("type", "function")
		b.value("function", function)
		tool, err := b.body(path)
		if err != nil {
			return err
		}
		written = append(written, tool)
	}
	return t.set(name, "tools", bodies(written))
}

func messagesChoice(t *translation, name string, v jsontext.Value) error {
	m, err := fields(name, v, "type", "name", "disable_parallel_tool_use")
	if err != nil {
		return err
	}
	switch one := m["disable_parallel_tool_use"]; {
	case one == nil, literal(one) == "false":
	case literal(one) == "true":
		t.oneCall = true
	default:
		return refuse(name+".disable_parallel_tool_use", noPlace)
	}
	kind := literal(m["type"])
	if kind == "tool" && m["name"] != nil {
		return t.set(name, "tool_choice", map[string]any{"type": "function", "function": map[string]raw{"name": raw(m["name"])}})
	}
	word, known := map[string]string{"auto": "auto", "any": "required", "none": "none"}[kind]
	if !known || m["name"] != nil {
		return refuse(name+".type", noPlace)
	}
	return t.set(name, "tool_choice", word)
}

// cached is [fields] of an object that may say how it is cached, which is a hint.
func (t *translation) cached(path string, v jsontext.Value, known ...string) (map[string]jsontext.Value, error) {
	m, err := fields(path, v, append(known, "cache_control")...)
	if m["cache_control"] != nil {
		t.drop("cache_control")
	}
	return m, err
}
