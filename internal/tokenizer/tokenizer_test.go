package tokenizer_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/tokenizer"
)

// lines reads a file with one JSON value a line.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func small(t testing.TB) *tokenizer.BPE {
	t.Helper()
	return load(t, readSmall(t))
}

func readSmall(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t testing.TB, text string) *tokenizer.BPE {
	t.Helper()
	b, err := tokenizer.Load([]byte(text))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return b
}

type golden struct {
	Text  string `json:"text"`
	Small []int  `json:"small"`
	O200k []int  `json:"o200k_base"`
	Cl100 []int  `json:"cl100k_base"`
}

// The tokens were computed by other implementations; testdata/README.md names them.
func TestTokensAreThoseOfOtherImplementations(t *testing.T) {
	t.Parallel()
	b := small(t)
	for _, g := range lines[golden](t, "testdata/tokens.jsonl") {
		if ids, err := b.Encode(g.Text); err != nil || !slices.Equal(ids, g.Small) {
			t.Errorf("%q: %v, %v\nwant %v", g.Text, ids, err, g.Small)
		}
	}
}

func TestEncodingsOfVendorsAreThoseOfOtherImplementations(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]func(golden) []int{
		"o200k_base": func(g golden) []int { return g.O200k }, "cl100k_base": func(g golden) []int { return g.Cl100 },
	} {
		k, err := tokenizer.Tiktoken(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range lines[golden](t, "testdata/tokens.jsonl") {
			ids, err := k.Encode(g.Text)
			if err != nil || !slices.Equal(ids, want(g)) {
				t.Errorf("%s: %q: %v, %v\nwant %v", name, g.Text, ids, err, want(g))
			}
			if back, err := k.Decode(ids); err != nil || back != g.Text {
				t.Errorf("%s: %q comes back as %q, %v", name, g.Text, back, err)
			}
		}
	}
	if _, err := tokenizer.Tiktoken("gpt2"); err == nil {
		t.Error("an encoding that is not here is taken")
	}
}

func TestPlainTextComesBackAsItWas(t *testing.T) {
	t.Parallel()
	raw := load(t, strings.Replace(readSmall(t), `"normalizer":{"type":"NFC"}`, `"normalizer":null`, 1))
	for _, g := range lines[golden](t, "testdata/tokens.jsonl") {
		ids, err := raw.EncodePlain(g.Text)
		if back, backErr := raw.Decode(ids); err != nil || backErr != nil || back != g.Text {
			t.Errorf("%q comes back as %q, %v, %v", g.Text, back, err, backErr)
		}
		if slices.ContainsFunc(ids, raw.Special) {
			t.Errorf("%q: %v has a control token", g.Text, ids)
		}
	}
	ids, err := small(t).EncodePlain("e\u0301")
	if back, _ := small(t).Decode(ids); err != nil || back != "é" {
		t.Errorf("%q, %v; want it composed: a normalizer loses what was written", back, err)
	}
}

func TestWhatLooksLikeAControlTokenIsOneInAPrompt(t *testing.T) {
	t.Parallel()
	b := small(t)
	ids, err := b.Encode("<|im_start|>hi")
	if err != nil || !b.Special(ids[0]) {
		t.Errorf("%v, %v", ids, err)
	}
	plain, err := b.EncodePlain("<|im_start|>hi")
	if err != nil || slices.ContainsFunc(plain, b.Special) || len(plain) <= len(ids) {
		t.Errorf("plain %v, %v", plain, err)
	}
	begin, known := b.Beginning()
	if text, err := b.Decode([]int{begin}); !known || text != "<s>" || err != nil {
		t.Errorf("the beginning is %q, %v, %v", text, known, err)
	}
	if _, err := b.Decode([]int{1 << 30}); err == nil {
		t.Error("a token that there is not is decoded")
	}
}

func TestWhatIsNotKnownExactlyIsRefused(t *testing.T) {
	t.Parallel()
	text := readSmall(t)
	for _, c := range [][2]string{
		{`"type":"BPE"`, `"type":"Unigram"`},
		{`"byte_fallback":false`, `"byte_fallback":true`},
		{`"dropout":null`, `"dropout":0.1`},
		{`"unk_token":null`, `"unk_token":"<unk>"`},
		{`{"type":"NFC"}`, `{"type":"NFKC"}`},
		{`"behavior":"Isolated"`, `"behavior":"MergedWithPrevious"`},
		{`"invert":false`, `"invert":true`},
		{`{"Regex":`, `{"Rgx":`},
		{`"lstrip":false`, `"lstrip":true`},
		{`"single_word":false`, `"single_word":true`},
		{`"truncation":null`, `"truncation":{}`},
		{`"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"Metaspace"`},
		{`"post_processor":{"type":"ByteLevel"`, `"post_processor":{"type":"BertProcessing"`},
		{`"add_prefix_space":false`, `"add_prefix_space":true`},
		{`"merges":["`, `"merges":["zz qq","`},
		{`"vocab":{"Ā":0,`, `"vocab":{`},
	} {
		if !strings.Contains(text, c[0]) {
			t.Fatalf("there is no %s", c[0])
		}
		if _, err := tokenizer.Load([]byte(strings.Replace(text, c[0], c[1], 1))); err == nil {
			t.Errorf("%s is taken", c[1])
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"model":{"type":"BPE"}}`} {
		if _, err := tokenizer.Load([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

type conversation struct {
	Template string          `json:"template"`
	Case     string          `json:"case"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Text     string          `json:"text"`
	Refused  bool            `json:"refused"`
}

var thatDay = time.Date(2026, 7, 4, 5, 6, 7, 0, time.UTC)

// The texts were made by jinja2; testdata/README.md says how.
func TestChatTemplatesMakeWhatJinjaMakes(t *testing.T) {
	t.Parallel()
	for _, c := range lines[conversation](t, "testdata/chat.jsonl") {
		source, err := os.ReadFile("testdata/" + c.Template + ".jinja")
		if err != nil {
			t.Fatal(err)
		}
		chat, err := tokenizer.NewChatTemplate(string(source), "<s>", "</s>")
		if err != nil {
			t.Fatalf("%s: %v", c.Template, err)
		}
		text, err := chat.Render(c.Messages, c.Tools, thatDay)
		if (err != nil) != c.Refused || err == nil && text != c.Text {
			t.Errorf("%s, %s: %v\n%q\nwant\n%q", c.Template, c.Case, err, text, c.Text)
		}
	}
}

func TestADirectiveThatIsNotKnownIsAnError(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{"{{ strftime_now('%d %b %Y %%') }}": "04 Jul 2026 %", "{{ strftime_now('%U') }}": "", "{{ strftime_now() }}": ""} {
		chat, err := tokenizer.NewChatTemplate(source, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := chat.Render([]byte("[]"), nil, thatDay); text != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", source, text, err)
		}
	}
}

func TestATokenizerIsUsedSideBySide(t *testing.T) {
	t.Parallel()
	b := small(t)
	want, _ := b.Encode(strings.Repeat("attempt ", 50))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if ids, err := b.Encode(strings.Repeat("attempt ", 50)); err != nil || !slices.Equal(ids, want) {
				t.Errorf("%v, %v", ids, err)
			}
		})
	}
	group.Wait()
}

func TestALongWordIsReadInTime(t *testing.T) {
	t.Parallel()
	b := small(t)
	began := time.Now()
	ids, err := b.Encode(strings.Repeat("abcdef", 50_000))
	if took := time.Since(began); err != nil || len(ids) == 0 || took > 20*time.Second {
		t.Errorf("%d tokens in %v, %v", len(ids), took, err)
	}
}
