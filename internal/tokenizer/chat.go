package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob/internal/template"
)

// MaxChatBytes bounds what a chat template makes.
const MaxChatBytes = 16 << 20

// ChatTemplate makes a prompt of messages as a model's server does, to its model: the
// template is the model's own. It is safe for concurrent use.
type ChatTemplate struct {
	compiled   *jinja.Template
	begin, end string
}

// NewChatTemplate compiles a model's template. Begin and end are the tokens that it
// knows as bos_token and eos_token.
func NewChatTemplate(source, begin, end string) (*ChatTemplate, error) {
	compiled, err := jinja.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("the chat template does not compile: %w", err)
	}
	return &ChatTemplate{compiled: compiled, begin: begin, end: end}, nil
}

// Render makes the prompt of messages, a JSON list, and ends it where the answer is to
// begin. Tools is a JSON list too; nil is none. A template that asks for the date is
// told today's.
func (c *ChatTemplate) Render(messages, tools []byte, today time.Time) (string, error) {
	list, err := template.Value(messages)
	if err != nil || !list.IsList() {
		return "", errors.New("the messages are no JSON list")
	}
	values := map[string]jinja.Value{
		"messages": list, "add_generation_prompt": jinja.NewBool(true), "bos_token": jinja.NewString(c.begin), "eos_token": jinja.NewString(c.end),
		"tools": jinja.None(), "documents": jinja.None(), "strftime_now": dateOf(today), "range": jinja.NewCallable("range", template.Range),
	}
	if tools != nil {
		if values["tools"], err = template.Value(tools); err != nil {
			return "", fmt.Errorf("the tools: %w", err)
		}
	}
	text, err := c.compiled.RenderValues(values)
	switch {
	case err != nil:
		return "", fmt.Errorf("the chat template: %w", err)
	case len(text) > MaxChatBytes:
		return "", fmt.Errorf("the chat template makes more than %d bytes", MaxChatBytes)
	}
	return text, nil
}

// dateOf returns the function strftime_now for one day.
func dateOf(today time.Time) jinja.Value {
	return jinja.NewCallable("strftime_now", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) != 1 || !args[0].IsString() {
			return jinja.Undefined(), errors.New("strftime_now takes one text")
		}
		text, err := strftime(args[0].AsString(), today)
		return jinja.NewString(text), err
	})
}

// strftime writes a date. A directive that is not known is an error, not a guess.
func strftime(format string, t time.Time) (string, error) {
	layouts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'j': "002",
	}
	var text strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			text.WriteByte(format[i])
			continue
		}
		i++
		layout, known := layouts[format[i]]
		switch {
		case format[i] == '%':
			text.WriteByte('%')
		case !known:
			return "", fmt.Errorf("strftime_now: %%%c is not supported", format[i])
		default:
			text.WriteString(t.Format(layout))
		}
	}
	return text.String(), nil
}
