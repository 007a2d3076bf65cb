package translate

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// messagesSystem : the other API has the system's word as the first message.
func messagesSystem(t *translation, name string, v jsontext.Value) error {
	said, err := t.texts(name, v)
	t.system = &said
	return err
}

// texts reads a text, or blocks of nothing else.
func (t *translation) texts(path string, v jsontext.Value) (content, error) {
	if v.Kind() == '"' {
		return content{whole: v}, nil
	}
	blocks, err := list(path, v)
	if err != nil {
		return content{}, err
	}
	var c content
	for i, each := range blocks {
		if err := t.addText(&c, at(path, i), each); err != nil {
			return content{}, err
		}
	}
	return c, nil
}

// addText adds a block of text as a part of a chat.
func (t *translation) addText(c *content, path string, v jsontext.Value) error {
	m, err := t.cached(path, v, "type", "text", "citations")
	switch {
	case err != nil:
		return err
	case literal(m["type"]) != "text":
		return refuse(path+".type", noPlace)
	case m["citations"] != nil && literal(m["citations"]) != "[]":
		return refuse(path+".citations", noPlace)
	}
	return c.addText(path, m["text"])
}

func messagesMessages(t *translation, name string, v jsontext.Value) error {
	messages, err := list(name, v)
	if err != nil {
		return err
	}
	role := ""
	for i, each := range messages {
		path := at(name, i)
		m, err := fields(path, each, "role", "content")
		if err != nil {
			return err
		}
		switch role = literal(m["role"]); role {
		case "user":
			err = t.addUser(path, m["content"])
		case "assistant":
			err = t.addAssistant(path, m["content"])
		default:
			err = refuse(path+".role", noPlace)
		}
		if err != nil {
			return err
		}
	}
	if role == "assistant" {
		return refuse(at(name, len(messages)-1), "the other API would not go on writing it")
	}
	t.talk = bodies(t.talk)
	return nil
}

// putTalk puts the messages, the system's before all others.
func (t *translation) putTalk() error {
	if t.system != nil {
		said, err := message("system", "system", *t.system)
		if err != nil {
			return err
		}
		t.talk = slices.Insert(t.talk, 0, said)
	}
	if t.talk == nil {
		return nil
	}
	return t.set("messages", "messages", t.talk)
}

// message is one of a chat. A single text stands by itself, which more servers take
// than a list of one.
func message(path, role string, said content) (*prompt.Body, error) {
	if len(said.blocks) == 1 && len(said.texts) == 1 {
		said.whole = said.texts[0]
	}
	b := &builder{}
	b.value("role", role)
	b.content(said.whole, said.blocks)
	return b.body(path)
}

func (t *translation) say(path, role string, said content) error {
	m, err := message(path, role, said)
	t.talk = append(t.talk, m)
	return err
}

// addUser : results of tools are messages of their own, before what the user says.
func (t *translation) addUser(path string, v jsontext.Value) error {
	path += ".content"
	if v.Kind() == '"' {
		return t.say(path, "user", content{whole: v})
	}
	blocks, err := list(path, v)
	if err != nil {
		return err
	}
	var said content
	results := 0
	for i, each := range blocks {
		path := at(path, i)
		switch kind := wordOf("type", each); {
		case kind == "text":
			err = t.addText(&said, path, each)
		case kind == "image":
			err = t.addImage(&said, path, each)
		case kind == "tool_result" && len(said.blocks) == 0:
			results++
			err = t.addResult(path, each)
		case kind == "tool_result":
			err = refuse(path, "the other API has results of tools before what the user says")
		default:
			err = refuse(path+".type", noPlace)
		}
		if err != nil {
			return err
		}
	}
	if results > 0 && len(said.blocks) == 0 {
		return nil
	}
	return t.say(path, "user", said)
}

func (t *translation) addResult(path string, v jsontext.Value) error {
	m, err := t.cached(path, v, "type", "tool_use_id", "content", "is_error")
	if err != nil {
		return err
	}
	if bad := m["is_error"]; bad != nil && literal(bad) != "false" {
		return refuse(path+".is_error", noPlace)
	}
	said := content{whole: jsontext.Value(`""`)} // the other API wants one
	if m["content"] != nil {
		if said, err = t.texts(path+".content", m["content"]); err != nil {
			return err
		}
	}
	if len(said.blocks) == 1 {
		said.whole = said.texts[0]
	}
	b := &builder{}
	b.value("role", "tool")
	b.copy("tool_call_id", m["tool_use_id"])
	b.content(said.whole, said.blocks)
	result, err := b.body(path)
	t.talk = append(t.talk, result)
	return err
}

// addAssistant : texts come before calls. Thoughts are of the model that had them, and
// are left out and told.
func (t *translation) addAssistant(path string, v jsontext.Value) error {
	path += ".content"
	if v.Kind() == '"' {
		return t.say(path, "assistant", content{whole: v})
	}
	blocks, err := list(path, v)
	if err != nil {
		return err
	}
	said := content{}
	var calls []*prompt.Body
	for i, each := range blocks {
		path := at(path, i)
		switch kind := wordOf("type", each); {
		case kind == "thinking", kind == "redacted_thinking":
			t.drop("thinking")
			_, err = fields(path, each, "type", "thinking", "signature", "data")
		case kind == "text" && len(calls) == 0:
			err = t.addText(&said, path, each)
		case kind == "tool_use":
			var call *prompt.Body
			call, err = t.call(path, each)
			calls = append(calls, call)
		default:
			err = refuse(path+".type", noPlace)
		}
		if err != nil {
			return err
		}
	}
	return t.sayWithCalls(path, said, calls)
}

func (t *translation) sayWithCalls(path string, said content, calls []*prompt.Body) error {
	if len(calls) == 0 {
		return t.say(path, "assistant", said)
	}
	if len(said.blocks) == 0 {
		said.whole = jsontext.Value("null")
	}
	m, err := message(path, "assistant", said)
	if err != nil {
		return err
	}
	t.talk = append(t.talk, m)
	return m.SetValue("tool_calls", calls)
}

func (t *translation) call(path string, v jsontext.Value) (*prompt.Body, error) {
	m, err := t.cached(path, v, "type", "id", "name", "input", "caller")
	if err != nil {
		return nil, err
	}
	if caller := m["caller"]; caller != nil && literal(caller) != `{"type":"direct"}` {
		return nil, refuse(path+".caller", noPlace)
	}
	if m["input"] == nil || m["input"].Kind() != '{' {
		return nil, refuse(path+".input", "it is not an object")
	}
	f := &builder{}
	f.copy("name", m["name"])
	f.value("arguments", literal(m["input"]))
	function, err := f.body(path)
	if err != nil {
		return nil, err
	}
	b := &builder{}
	b.copy("id", m["id"])
	b.value("type", "function")
	b.value("function", function)
	return b.body(path)
}
