package translate

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// chatRoles are the members of a message by who speaks.
var chatRoles = map[string][]string{
	"system": {"content"}, "developer": {"content"}, "user": {"content"}, "tool": {"content", "tool_call_id"},
	"assistant": {"content", "tool_calls", "refusal", "annotations", "audio", "function_call"},
}

// chatMessages : the other API has the system's word apart, and results of tools in
// the message of the user that follows.
func chatMessages(t *translation, name string, v jsontext.Value) error {
	messages, err := list(name, v)
	if err != nil {
		return err
	}
	var talk conversation
	for i, each := range messages {
		if err := talk.add(at(name, i), each); err != nil {
			return err
		}
	}
	if n := len(talk.turns); n > 0 && talk.turns[n-1].role == "assistant" {
		return refuse(at(name, len(messages)-1), "the other API would go on writing it")
	}
	if err := talk.putSystem(t, name); err != nil {
		return err
	}
	turns := make([]*prompt.Body, len(talk.turns))
	for i := range talk.turns {
		b := &builder{}
		b.value("role", talk.turns[i].role)
		b.content(talk.turns[i].whole, talk.turns[i].blocks)
		if turns[i], err = b.body(name); err != nil {
			return err
		}
	}
	return t.set(name, "messages", bodies(turns))
}

// conversation is what was said, in turns.
type conversation struct {
	system []content
	turns  []turn
}

// content is a text as it was written, or blocks.
type content struct {
	whole  jsontext.Value // nil: blocks
	blocks []*prompt.Body
	texts  []jsontext.Value // of the blocks
}

// addText adds a block of text.
func (c *content) addText(path string, v jsontext.Value) error {
	b := &builder{}
	b.value("type", "text")
	b.copy("text", v)
	block, err := b.body(path)
	c.blocks, c.texts = append(c.blocks, block), append(c.texts, v)
	return err
}

type turn struct {
	role string
	content
	results bool // of tools, so that more may follow in it
}

func (c *conversation) add(path string, v jsontext.Value) error {
	role := wordOf("role", v)
	known, ok := chatRoles[role]
	if !ok {
		return refuse(path+".role", noPlace)
	}
	m, err := fields(path, v, append([]string{"role"}, known...)...)
	if err != nil {
		return err
	}
	switch role {
	case "assistant":
		return c.addAssistant(path, m)
	case "tool":
		return c.addResult(path, m)
	}
	said, err := chatContent(path+".content", m["content"], role == "user")
	switch {
	case err != nil:
		return err
	case role == "user":
		c.addUser(said)
	case len(c.turns) > 0:
		return refuse(path+".role", "the other API has the system's word before all others")
	default:
		c.system = append(c.system, said)
	}
	return nil
}

// addUser : what follows results of tools stands in one message with them.
func (c *conversation) addUser(said content) {
	if n := len(c.turns); n > 0 && c.turns[n-1].results {
		c.turns[n-1].blocks = append(c.turns[n-1].blocks, said.asBlocks()...)
		c.turns[n-1].results = false
		return
	}
	c.turns = append(c.turns, turn{role: "user", content: said})
}

func (c *conversation) addResult(path string, m map[string]jsontext.Value) error {
	said, err := chatContent(path+".content", m["content"], false)
	if err != nil {
		return err
	}
	b := &builder{}
	b.value("type", "tool_result")
	b.copy("tool_use_id", m["tool_call_id"])
	b.content(said.whole, said.blocks)
	result, err := b.body(path)
	if err != nil {
		return err
	}
	if n := len(c.turns); n == 0 || !c.turns[n-1].results {
		c.turns = append(c.turns, turn{role: "user", results: true})
	}
	last := &c.turns[len(c.turns)-1]
	last.blocks = append(last.blocks, result)
	return nil
}

func (c *conversation) addAssistant(path string, m map[string]jsontext.Value) error {
	for _, name := range []string{"refusal", "audio", "function_call"} {
		if m[name] != nil {
			return refuse(path+"."+name, noPlace)
		}
	}
	if a := m["annotations"]; a != nil && literal(a) != "[]" {
		return refuse(path+".annotations", noPlace)
	}
	said, err := chatContent(path+".content", m["content"], false)
	if err != nil {
		return err
	}
	if m["tool_calls"] != nil {
		calls, err := chatCalls(path+".tool_calls", m["tool_calls"])
		if err != nil {
			return err
		}
		said = content{blocks: append(said.asBlocks(), calls...)}
	}
	c.turns = append(c.turns, turn{role: "assistant", content: said})
	return nil
}

func chatCalls(path string, v jsontext.Value) ([]*prompt.Body, error) {
	calls, err := list(path, v)
	if err != nil {
		return nil, err
	}
	var blocks []*prompt.Body
	for i, each := range calls {
		path := at(path, i)
		call, err := fields(path, each, "id", "type", "function")
		if err != nil {
			return nil, err
		}
		if literal(call["type"]) != "function" {
			return nil, refuse(path+".type", noPlace)
		}
		f, err := fields(path+".function", call["function"], "name", "arguments")
		if err != nil {
			return nil, err
		}
		arguments, err := objectIn(f["arguments"])
		if err != nil {
			return nil, refuse(path+".function.arguments", err.Error())
		}
		b := &builder{}
		b.value("type", "tool_use")
		b.copy("id", call["id"])
		b.copy("name", f["name"])
		b.copy("input", arguments)
		block, err := b.body(path)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// putSystem says the system's word where the other API has it.
func (c *conversation) putSystem(t *translation, name string) error {
	if len(c.system) == 1 && c.system[0].whole != nil {
		return t.set(name, "system", raw(c.system[0].whole))
	}
	var blocks []*prompt.Body
	for _, said := range c.system {
		blocks = append(blocks, said.asBlocks()...)
	}
	if len(blocks) == 0 {
		return nil
	}
	return t.set(name, "system", bodies(blocks))
}

// asBlocks is the content in parts. An empty text is none.
func (c content) asBlocks() []*prompt.Body {
	if c.whole == nil {
		return c.blocks
	}
	if literal(c.whole) == "" {
		return nil
	}
	var one content
	if one.addText("", c.whole) != nil { // two different names never meet
		return nil
	}
	return one.blocks
}

// chatContent reads a text, or parts of texts and, of a user, images.
func chatContent(path string, v jsontext.Value, images bool) (content, error) {
	switch {
	case v == nil:
		return content{}, nil
	case v.Kind() == '"':
		return content{whole: v}, nil
	}
	parts, err := list(path, v)
	if err != nil {
		return content{}, err
	}
	var c content
	for i, each := range parts {
		if err := c.addChatPart(at(path, i), each, images); err != nil {
			return content{}, err
		}
	}
	return c, nil
}

func (c *content) addChatPart(path string, v jsontext.Value, images bool) error {
	part, err := fields(path, v, "type", "text", "image_url")
	if err != nil {
		return err
	}
	switch kind := literal(part["type"]); {
	case kind == "text" && part["image_url"] == nil:
		return c.addText(path, part["text"])
	case kind == "image_url" && part["text"] == nil && images:
		source, err := chatImage(path+".image_url", part["image_url"])
		if err != nil {
			return err
		}
		return c.add(path, "image", "source", source)
	}
	return refuse(path+".type", noPlace)
}

// add adds a block of another type.
func (c *content) add(path, kind, member string, v any) error {
	b := &builder{}
	b.value("type", kind)
	b.value(member, v)
	block, err := b.body(path)
	c.blocks = append(c.blocks, block)
	return err
}
