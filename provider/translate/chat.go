package translate

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// chatRequest says what becomes of a chat completion's members in a message's.
var chatRequest = table{
	{"model", to("model")},
	{"messages", chatMessages},
	{"max_completion_tokens", to("max_tokens")},
	{"max_tokens", to("max_tokens")}, // the older name; both at once are refused
	{"temperature", number("temperature", 0, 1)},
	{"top_p", to("top_p")},
	{"stop", chatStop},
	{"tools", chatTools},
	{"tool_choice", chatChoice},
	{"parallel_tool_calls", chatParallel},
	{"response_format", chatFormat},
	{"reasoning_effort", words("output_config.effort", efforts)},
	{"user", to("metadata.user_id")},
	{"safety_identifier", to("metadata.user_id")}, // the newer name of user
	{"service_tier", words("service_tier", map[string]string{"auto": "", "default": "standard_only"})},

	// The door makes a stream of the whole answer.
	{"stream", only("true", "false")},
	{"stream_options", chatStreamOptions},

	// What the other API does anyway.
	{"n", only("1")},
	{"store", only("false")},
	{"logprobs", only("false")},
	{"top_logprobs", only("0")},
	{"logit_bias", only("{}")},
	{"frequency_penalty", only("0", "0.0")},
	{"presence_penalty", only("0", "0.0")},
	{"modalities", only(`["text"]`)},

	// Labels and hints: no answer depends on them.
	{"seed", dropped},     // makes it likelier that an answer repeats, and promises nothing
	{"metadata", dropped}, // labels what is stored, and nothing is: store true is refused
	{"prediction", dropped},
	{"prompt_cache_key", dropped},
	{"prompt_cache_retention", dropped},

	// What would be lost; whatever is not in this table is refused too.
	{"audio", refused},
	{"functions", refused},
	{"function_call", refused},
	{"verbosity", refused},
	{"web_search_options", refused},
}

// efforts have the same names on both sides.
var efforts = map[string]string{"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

// ToMessages says a request for a chat completion in the words of the messages API.
func ToMessages(chat []byte) (Request, error) {
	return chatRequest.translate(chat, func(t *translation) error {
		const name = "parallel_tool_calls"
		switch {
		case !t.oneCall || t.choice == "none": // nothing is called then
			return nil
		case t.choice == "":
			if err := t.set(name, "tool_choice.type", "auto"); err != nil {
				return err
			}
		}
		return t.set(name, "tool_choice.disable_parallel_tool_use", true)
	})
}

func chatStreamOptions(_ *translation, name string, v jsontext.Value) error {
	_, err := fields(name, v, "include_usage", "include_obfuscation")
	return err
}

func chatStop(t *translation, name string, v jsontext.Value) error {
	if v.Kind() == '"' {
		return t.set(name, "stop_sequences", []raw{raw(v)})
	}
	if _, err := list(name, v); err != nil {
		return err
	}
	return t.set(name, "stop_sequences", raw(v))
}

func chatTools(t *translation, name string, v jsontext.Value) error {
	tools, err := list(name, v)
	if err != nil {
		return err
	}
	var written []*prompt.Body
	for i, each := range tools {
		tool, err := chatTool(at(name, i), each)
		if err != nil {
			return err
		}
		written = append(written, tool)
	}
	return t.set(name, "tools", bodies(written))
}

func chatTool(path string, v jsontext.Value) (*prompt.Body, error) {
	outer, err := fields(path, v, "type", "function")
	if err != nil {
		return nil, err
	}
	if literal(outer["type"]) != "function" {
		return nil, refuse(path+".type", noPlace)
	}
	f, err := fields(path+".function", outer["function"], "name", "description", "parameters", "strict")
	if err != nil {
		return nil, err
	}
	b := &builder{}
	b.copy("name", f["name"])
	b.copy("description", f["description"])
	if f["parameters"] == nil {
		f["parameters"] = jsontext.Value(`{"type":"object","properties":{}}`) // the other API wants one
	}
	b.copy("input_schema", f["parameters"])
	b.copy("strict", f["strict"])
	return b.body(path)
}

func chatChoice(t *translation, name string, v jsontext.Value) error {
	if v.Kind() == '"' {
		word, known := map[string]string{"auto": "auto", "required": "any", "none": "none"}[literal(v)]
		if !known {
			return refuse(name, noPlace)
		}
		t.choice = word
		return t.set(name, "tool_choice.type", word)
	}
	t.choice = "tool"
	outer, err := fields(name, v, "type", "function")
	if err != nil {
		return err
	}
	if literal(outer["type"]) != "function" {
		return refuse(name+".type", noPlace)
	}
	f, err := fields(name+".function", outer["function"], "name")
	if err != nil {
		return err
	}
	if err := t.set(name, "tool_choice.type", "tool"); err != nil {
		return err
	}
	return t.set(name, "tool_choice.name", raw(f["name"]))
}

func chatParallel(t *translation, name string, v jsontext.Value) error {
	switch literal(v) {
	case "true": // as it is without
		return nil
	case "false":
		t.oneCall = true
		return nil
	}
	return refuse(name, noPlace)
}

// chatFormat : the name of a schema is a label, and what the other API makes always
// keeps to it, strict or not.
func chatFormat(t *translation, name string, v jsontext.Value) error {
	outer, err := fields(name, v, "type", "json_schema")
	if err != nil {
		return err
	}
	switch literal(outer["type"]) {
	case "text":
		return nil
	case "json_schema":
	default:
		return refuse(name+".type", noPlace)
	}
	f, err := fields(name+".json_schema", outer["json_schema"], "name", "description", "schema", "strict")
	if err != nil {
		return err
	}
	if f["schema"] == nil {
		return refuse(name+".json_schema.schema", "it is missing")
	}
	if f["name"] != nil {
		t.drop(name + ".json_schema.name")
	}
	schema := []byte(f["schema"])
	if about := f["description"]; about != nil { // the schema says it instead
		if wire.HasMember(schema, "description") {
			return refuse(name+".json_schema.description", "its schema has one of its own")
		}
		if schema, err = wire.WithMember(schema, "description", []byte(about)); err != nil {
			return refuse(name+".json_schema.schema", "it is not an object")
		}
	}
	return t.set(name, "output_config.format", format{Type: "json_schema", Schema: schema})
}

type format struct {
	Type   string `json:"type"`
	Schema raw    `json:"schema"`
}
