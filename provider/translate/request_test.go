package translate_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/provider/translate"
)

// golden is a request and what becomes of it.
type golden struct {
	name, in, out string
	dropped       []string
}

const pixel = "iVBORw0KGgo="

// toMessages are chats in the words of the messages API.
var toMessages = []golden{
	{
		name: "Plain", in: `{"model":"m","messages":[{"role":"user","content":"hello <you> & \u00e9"}],"max_tokens":9}`,
		out: `{"model":"m","messages":[{"role":"user","content":"hello <you> & \u00e9"}],"max_tokens":9}`,
	},
	{
		name: "TheSystemsWord", in: `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}`,
		out: `{"system":"be brief","messages":[{"role":"user","content":"hi"}]}`,
	},
	{
		name: "TheSystemsWords", in: `{"messages":[{"role":"developer","content":"be brief"},{"role":"system","content":[{"type":"text","text":"be kind"}]},{"role":"user","content":"hi"}]}`,
		out: `{"system":[{"type":"text","text":"be brief"},{"type":"text","text":"be kind"}],"messages":[{"role":"user","content":"hi"}]}`,
	},
	{
		name: "Parts", in: `{"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}},{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"auto"}}]}]}`,
		out: `{"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}},{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}]}]}`,
	},
	{
		name: "Parameters", in: `{"max_completion_tokens":9,"temperature":0.70,"top_p":1e-1,"stop":"end","reasoning_effort":"high","user":"u1","service_tier":"default",` +
			`"messages":[{"role":"user","content":"hi"}]}`,
		out: `{"max_tokens":9,"temperature":0.70,"top_p":1e-1,"stop_sequences":["end"],"output_config":{"effort":"high"},"metadata":{"user_id":"u1"},"service_tier":"standard_only",` +
			`"messages":[{"role":"user","content":"hi"}]}`,
	},
	{name: "Stops", in: `{"stop":["a","b"],"safety_identifier":"u1"}`, out: `{"stop_sequences":["a","b"],"metadata":{"user_id":"u1"}}`},
	{name: "WhatTheOtherDoesAnyway", in: `{"n":1,"store":false,"logprobs":false,"top_logprobs":0,"logit_bias":{ },"frequency_penalty":0,"presence_penalty":0,"modalities":["text"],` +
		`"stream":true,"stream_options":{"include_usage":true},"service_tier":"auto","response_format":{"type":"text"},"parallel_tool_calls":true,"audio":null,"seed":null}`, out: `{}`},
	{
		name: "LabelsAndHints", in: `{"seed":7,"metadata":{"a":"b"},"prompt_cache_key":"k","prompt_cache_retention":"24h","prediction":{"type":"content","content":"x"}}`, out: `{}`,
		dropped: []string{"metadata", "prediction", "prompt_cache_key", "prompt_cache_retention", "seed"},
	},
	{
		name: "ASchema", in: `{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"description":"an answer","schema":{"type":"object","properties":{"a":{"minimum":1.0}}}}}}`,
		out:     `{"output_config":{"format":{"type":"json_schema","schema":{"description":"an answer","type":"object","properties":{"a":{"minimum":1.0}}}}}}`,
		dropped: []string{"response_format.json_schema.name"},
	},
	{
		name: "Tools", in: `{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","x":9007199254740993},"strict":true}},{"type":"function","function":{"name":"g"}}],` +
			`"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false}`,
		out: `{"tools":[{"name":"f","description":"d","input_schema":{"type":"object","x":9007199254740993},"strict":true},{"name":"g","input_schema":{"type":"object","properties":{}}}],` +
			`"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`,
	},
	{name: "OneToolAtATime", in: `{"parallel_tool_calls":false}`, out: `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
	{name: "ATool", in: `{"tool_choice":"required"}`, out: `{"tool_choice":{"type":"any"}}`},
	{name: "NoTool", in: `{"tool_choice":"none","parallel_tool_calls":false}`, out: `{"tool_choice":{"type":"none"}}`},
	{
		name: "CallsAndResults", in: `{"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":"let me see","refusal":null,"annotations":[],"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.50}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},{"role":"user","content":"and?"},{"role":"user","content":"now"}]}`,
		out: `{"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1.50}},{"type":"tool_use","id":"c2","name":"g","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"two"}]},{"type":"text","text":"and?"}]},` +
			`{"role":"user","content":"now"}]}`,
	},
	{
		name: "ACallWithoutAWord", in: `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"one"}]}`,
		out: `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"}]}]}`,
	},
}

// toChat are messages in the words of chat completions.
var toChat = []golden{
	{
		name: "Plain", in: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello <you>"}]}`,
		out: `{"model":"m","max_completion_tokens":9,"messages":[{"role":"user","content":"hello <you>"}]}`,
	},
	{
		name: "TheSystemsWord", in: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"system":"be brief"}`,
		out: `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}`,
	},
	{
		name: "TheSystemsWords", in: `{"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}},{"type":"text","text":"be kind","citations":null}],"messages":[]}`,
		out:     `{"messages":[{"role":"system","content":[{"type":"text","text":"be brief"},{"type":"text","text":"be kind"}]}]}`,
		dropped: []string{"cache_control"},
	},
	{
		name: "Parts", in: `{"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}},` +
			`{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}]}]}`,
		out: `{"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}},` +
			`{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]}]}`,
	},
	{
		name: "Parameters", in: `{"temperature":0.70,"top_p":1e-1,"stop_sequences":["end"],"metadata":{"user_id":"u1"},"service_tier":"standard_only","output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","x":1.0}}}}`,
		out: `{"temperature":0.70,"top_p":1e-1,"stop":["end"],"user":"u1","service_tier":"default","reasoning_effort":"low",` +
			`"response_format":{"json_schema":{"name":"output","schema":{"type":"object","x":1.0},"strict":true},"type":"json_schema"}}`,
	},
	{name: "WhatTheOtherDoesAnyway", in: `{"stream":true,"stop_sequences":[],"thinking":{"type":"disabled"},"service_tier":"auto","metadata":{},"top_k":null,"tool_choice":null}`, out: `{}`},
	{
		name: "Hints", in: `{"cache_control":{"type":"ephemeral"},"tools":[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}}]}`,
		out: `{"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`, dropped: []string{"cache_control"},
	},
	{
		name: "Tools", in: `{"tools":[{"type":"custom","name":"f","description":"d","input_schema":{"type":"object"},"strict":true}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`,
		out: `{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"function":{"name":"f"},"type":"function"},"parallel_tool_calls":false}`,
	},
	{name: "ATool", in: `{"tool_choice":{"type":"any","disable_parallel_tool_use":false}}`, out: `{"tool_choice":"required"}`},
	{
		name: "CallsAndResults", in: `{"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"let me see"},{"type":"tool_use","id":"c1","name":"f","input":{"a": 1.50},"caller":{"type":"direct"}},{"type":"tool_use","id":"c2","name":"g","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one","is_error":false},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"two"}]},{"type":"text","text":"and?"}]},` +
			`{"role":"assistant","content":"more"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c3"}]}]}`,
		out: `{"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":"let me see","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.50}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"user","content":"and?"},` +
			`{"role":"assistant","content":"more"},{"role":"tool","tool_call_id":"c3","content":""}]}`,
		dropped: []string{"thinking"},
	},
	{
		name: "ACallWithoutAWord", in: `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}]}`,
		out: `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]}`,
	},
}

type direction struct {
	name      string
	translate func([]byte) (translate.Request, error)
	goldens   []golden
}

var directions = []direction{{"ToMessages", translate.ToMessages, toMessages}, {"ToChat", translate.ToChat, toChat}}

func TestARequestSaysTheSameInTheOtherAPI(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		for _, g := range d.goldens {
			t.Run(d.name+"/"+g.name, func(t *testing.T) {
				t.Parallel()
				got, err := d.translate([]byte(g.in))
				if err != nil {
					t.Fatal(err)
				}
				if string(got.Body) != g.out {
					t.Errorf("got  %s\nwant %s", got.Body, g.out)
				}
				if !slices.Equal(got.Dropped, g.dropped) {
					t.Errorf("dropped %v; want %v", got.Dropped, g.dropped)
				}
			})
		}
	}
}

func TestWhatHasNoPlaceInTheOtherAPIIsRefusedByName(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"hi"}`
	for _, tt := range []struct{ to, in, member string }{
		{"ToMessages", `{"n":2}`, "n"},
		{"ToMessages", `{"n":1,"odd":"secret"}`, "odd"},
		{"ToMessages", `{"odd":null}`, "odd"},
		{"ToMessages", `{"logprobs":true}`, "logprobs"},
		{"ToMessages", `{"temperature":1.5}`, "temperature"},
		{"ToMessages", `{"temperature":"secret"}`, "temperature"},
		{"ToMessages", `{"max_tokens":1,"max_completion_tokens":2}`, "max_completion_tokens"},
		{"ToMessages", `{"user":"a","safety_identifier":"b"}`, "safety_identifier"},
		{"ToMessages", `{"audio":{"voice":"secret"}}`, "audio"},
		{"ToMessages", `{"modalities":["text","audio"]}`, "modalities"},
		{"ToMessages", `{"frequency_penalty":0.5}`, "frequency_penalty"},
		{"ToMessages", `{"store":true}`, "store"},
		{"ToMessages", `{"reasoning_effort":"none"}`, "reasoning_effort"},
		{"ToMessages", `{"service_tier":"flex"}`, "service_tier"},
		{"ToMessages", `{"response_format":{"type":"json_object"}}`, "response_format.type"},
		{"ToMessages", `{"response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`, "response_format.json_schema.schema"},
		{"ToMessages", `{"response_format":{"type":"json_schema","json_schema":{"description":"secret","schema":{"description":"b"}}}}`, "response_format.json_schema.description"},
		{"ToMessages", `{"tools":[{"type":"custom","custom":{}}]}`, "tools[0].custom"},
		{"ToMessages", `{"tool_choice":{"type":"allowed_tools"}}`, "tool_choice.type"},
		{"ToMessages", `{"stream_options":{"odd":1}}`, "stream_options.odd"},
		{"ToMessages", `{"messages":[` + user + `,{"role":"system","content":"secret"}]}`, "messages[1].role"},
		{"ToMessages", `{"messages":[` + user + `,{"role":"assistant","content":"secret"}]}`, "messages[1]"},
		{"ToMessages", `{"messages":[{"role":"user","name":"bob","content":"secret"}]}`, "messages[0].name"},
		{"ToMessages", `{"messages":[{"role":"function","content":"secret"}]}`, "messages[0].role"},
		{"ToMessages", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, "messages[0].content[0].input_audio"},
		{"ToMessages", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x","detail":"high"}}]}]}`, "messages[0].content[0].image_url.detail"},
		{"ToMessages", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,secret"}}]}]}`, "messages[0].content[0].image_url.url"},
		{"ToMessages", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"ftp://secret"}}]}]}`, "messages[0].content[0].image_url.url"},
		{"ToMessages", `{"messages":[{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]}`, "messages[0].content[0].type"},
		{"ToMessages", `{"messages":[{"role":"assistant","refusal":"secret"}]}`, "messages[0].refusal"},
		{"ToMessages", `{"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"arguments":"[\"secret\"]"}}]}]}`, "messages[0].tool_calls[0].function.arguments"},
		{"ToMessages", `[]`, ""},

		{"ToChat", `{"top_k":5}`, "top_k"},
		{"ToChat", `{"thinking":{"type":"enabled","budget_tokens":9}}`, "thinking"},
		{"ToChat", `{"temperature":1.5}`, "temperature"},
		{"ToChat", `{"stop_sequences":["a","b","c","d","e"]}`, "stop_sequences"},
		{"ToChat", `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "tools[0].type"},
		{"ToChat", `{"tools":[{"name":"f","input_examples":["secret"]}]}`, "tools[0].input_examples"},
		{"ToChat", `{"tool_choice":{"type":"auto","name":"f"}}`, "tool_choice.type"},
		{"ToChat", `{"metadata":{"odd":"secret"}}`, "metadata.odd"},
		{"ToChat", `{"container":"secret"}`, "container"},
		{"ToChat", `{"output_config":{"format":{"type":"odd","schema":{}}}}`, "output_config.format.type"},
		{"ToChat", `{"output_config":{"effort":"odd"}}`, "output_config.effort"},
		{"ToChat", `{"messages":[` + user + `,{"role":"assistant","content":"secret"}]}`, "messages[1]"},
		{"ToChat", `{"messages":[{"role":"system","content":"secret"}]}`, "messages[0].role"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]}`, "messages[0].content[0].type"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"secret"}}]}]}`, "messages[0].content[0].source.file_id"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"c"}]}]}`, "messages[0].content[1]"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true}]}]}`, "messages[0].content[0].is_error"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{}}]}]}]}`, "messages[0].content[0].content[0].source"},
		{"ToChat", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{}},{"type":"text","text":"secret"}]}]}`, "messages[0].content[1].type"},
		{"ToChat", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":"secret"}]}]}`, "messages[0].content[0].input"},
		{"ToChat", `{"messages":[{"role":"user","content":[{"type":"text","text":"a","citations":[{"odd":"secret"}]}]}]}`, "messages[0].content[0].citations"},
	} {
		d := directions[slices.IndexFunc(directions, func(d direction) bool { return d.name == tt.to })]
		got, err := d.translate([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), `"`+tt.member+`"`) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s of %s: %s, %v; want %q refused", tt.to, tt.in, got.Body, err, tt.member)
		}
	}
}

// saysNothing are members, with a part of their values, that ask in the goldens for
// what the other API does anyway.
var saysNothing = strings.Fields(`n:1 store:false logprobs:false top_logprobs:0 frequency_penalty:0 presence_penalty:0 modalities:text
	stream:true stream_options:include_usage include_usage:true service_tier:auto response_format:text parallel_tool_calls: detail:auto
	thinking:disabled is_error:false caller:direct strict:true type:custom disable_parallel_tool_use:false signature:s`)

func TestNoMemberIsLostInSilence(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		for _, g := range d.goldens {
			t.Run(d.name+"/"+g.name, func(t *testing.T) {
				t.Parallel()
				var whole any
				if err := json.Unmarshal([]byte(g.in), &whole); err != nil {
					t.Fatal(err)
				}
				with, err := d.translate(encoded(t, whole))
				if err != nil {
					t.Fatal(err)
				}
				objects(whole, "", func(path string, object map[string]any) {
					object["x_added"] = "x_lost"
					if got, err := d.translate(encoded(t, whole)); err == nil && !strings.Contains(string(got.Body), "x_lost") && !anyDropped(got.Dropped, path) {
						t.Errorf("a member more at %q: it is lost in %s, dropped %v", path, got.Body, got.Dropped)
					}
					delete(object, "x_added")
					for name, value := range object {
						delete(object, name)
						got, err := d.translate(encoded(t, whole))
						object[name] = value
						if err == nil && reflect.DeepEqual(got, with) && !saysNothingOf(name, value) && !anyDropped(got.Dropped, path+"."+name) {
							t.Errorf("without %q of %q: the translation is the same: %s", name, path, got.Body)
						}
					}
				})
			})
		}
	}
}

// anyDropped reports whether what is at path is part of something that was dropped.
func anyDropped(dropped []string, path string) bool {
	return slices.ContainsFunc(dropped, func(name string) bool { return slices.Contains(strings.Split(path, "."), name) })
}

func saysNothingOf(name string, value any) bool {
	text, _ := json.Marshal(value)
	return slices.Contains([]string{"null", "[]", "{}"}, string(text)) || slices.ContainsFunc(saysNothing, func(s string) bool {
		member, word, _ := strings.Cut(s, ":")
		return member == name && strings.Contains(string(text), word)
	})
}

// objects visits every object of a JSON value.
func objects(v any, path string, visit func(path string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for name, inner := range v {
			objects(inner, path+"."+name, visit)
		}
	case []any:
		for _, inner := range v {
			objects(inner, path, visit)
		}
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzATranslationIsARequestOrARefusal(f *testing.F) {
	for _, d := range directions {
		for _, g := range d.goldens {
			f.Add([]byte(g.in))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range directions {
			got, err := d.translate(body)
			if err != nil {
				continue
			}
			var members, out map[string]json.RawMessage
			if json.Unmarshal(body, &members) != nil || json.Unmarshal(got.Body, &out) != nil {
				t.Fatalf("%s of %q: %s", d.name, body, got.Body)
			}
			for name := range members {
				if strings.HasPrefix(name, "x_") {
					t.Errorf("%s of %q lost %q", d.name, body, name)
				}
			}
		}
	})
}

func TestThePageNamesWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/front-doors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range directions {
		for _, g := range d.goldens {
			for _, name := range g.dropped {
				if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(name, ".") && name != "thinking" {
					t.Errorf("docs/front-doors.md does not say that %s is left out", name)
				}
			}
		}
	}
}
