package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// Local is what is known here of how a target reads a prompt.
type Local struct {
	Tokens Tokenizer
	// Chat is the model's template. Nil: it is not known.
	Chat *ChatTemplate
}

// Open finds what a target's tokenizer setting names: "tiktoken:o200k_base",
// "tiktoken:cl100k_base", or "file:" and the path of a tokenizer.json. Beside such a file
// the model's template is looked for, in chat_template.jinja or tokenizer_config.json; not
// to find it is no error. Any other setting is counted by the target: it gives nil and
// no error.
func Open(setting string, readFunc func(path string) ([]byte, error)) (*Local, error) {
	if encoding, ok := strings.CutPrefix(setting, "tiktoken:"); ok {
		tokens, err := Tiktoken(encoding)
		if err != nil {
			return nil, err
		}
		return &Local{Tokens: tokens}, nil
	}
	path, ok := strings.CutPrefix(setting, "file:")
	if !ok {
		return nil, nil
	}
	text, err := readFunc(path)
	if err != nil {
		return nil, err
	}
	tokens, err := Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	chat, err := openChat(filepath.Dir(path), readFunc)
	if err != nil {
		return nil, err
	}
	return &Local{Tokens: tokens, Chat: chat}, nil
}

// modelConfig is what is read of a tokenizer_config.json.
type modelConfig struct {
	Template json.RawMessage `json:"chat_template"` // a text; older files have a list of them
	Begin    json.RawMessage `json:"bos_token"`
	End      json.RawMessage `json:"eos_token"`
}

// openChat looks for the template beside a tokenizer. Nil: there is none.
func openChat(folder string, readFunc func(string) ([]byte, error)) (*ChatTemplate, error) {
	var config modelConfig
	name := filepath.Join(folder, "tokenizer_config.json")
	text, err := readFunc(name)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var source string
	_ = json.Unmarshal(config.Template, &source) // a list, or nothing: there is none
	own, err := readFunc(filepath.Join(folder, "chat_template.jinja"))
	switch {
	case err == nil:
		source = string(own)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if source == "" {
		return nil, nil
	}
	return NewChatTemplate(source, tokenText(config.Begin), tokenText(config.End))
}

// tokenText reads a token: a text, or an object with its content.
func tokenText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var object struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(value, &object) // null, or nothing: there is none
	return object.Content
}

// RenderMessages is what a target's server makes of messages without tools.
func (l *Local) RenderMessages(messages []byte, today time.Time) (string, error) {
	if l.Chat == nil {
		return "", errors.New("the chat template is not known")
	}
	return l.Chat.Render(messages, nil, today)
}
