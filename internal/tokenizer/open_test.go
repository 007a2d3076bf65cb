package tokenizer_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/tokenizer"
)

// folder holds files by their path.
type folder map[string]string

func (f folder) read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func TestATemplateIsFoundBesideItsTokenizer(t *testing.T) {
	t.Parallel()
	const config = `{"chat_template":"{{ bos_token }}{{ messages[0].content }}{{ eos_token }}","bos_token":{"content":"<s>"},"eos_token":"</s>"}`
	for name, c := range map[string]struct {
		files folder
		want  string
	}{
		"none":         {folder{}, ""},
		"config":       {folder{"m/tokenizer_config.json": config}, "<s>hi</s>"},
		"a list":       {folder{"m/tokenizer_config.json": `{"chat_template":[{"name":"default"}]}`}, ""},
		"its own file": {folder{"m/tokenizer_config.json": config, "m/chat_template.jinja": "{{ bos_token }}!"}, "<s>!"},
	} {
		c.files["m/tokenizer.json"] = readSmall(t)
		l, err := tokenizer.Open("file:m/tokenizer.json", c.files.read)
		if err != nil || l.Tokens == nil || (l.Chat == nil) != (c.want == "") {
			t.Errorf("%s: %+v, %v", name, l, err)
			continue
		}
		if text, err := l.RenderMessages([]byte(`[{"role":"user","content":"hi"}]`), thatDay); text != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestWhatIsNoTokenizerIsNotOpened(t *testing.T) {
	t.Parallel()
	files := folder{"bad.json": "{}", "m/tokenizer.json": readSmall(t), "m/tokenizer_config.json": "{"}
	for _, setting := range []string{"tiktoken:gpt2", "file:none.json", "file:bad.json", "file:m/tokenizer.json"} {
		if l, err := tokenizer.Open(setting, files.read); err == nil {
			t.Errorf("%s: %+v", setting, l)
		}
	}
	if l, err := tokenizer.Open("remote", os.ReadFile); l != nil || err != nil {
		t.Errorf("remote: %+v, %v; want nothing: the target is asked", l, err)
	}
	if l, err := tokenizer.Open("tiktoken:cl100k_base", os.ReadFile); err != nil || l.Chat != nil {
		t.Errorf("tiktoken: %+v, %v", l, err)
	}
	if _, err := (&tokenizer.Local{}).RenderMessages(nil, thatDay); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("no template: %v", err)
	}
}
