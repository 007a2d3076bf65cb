package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// MaxFileBytes bounds a tokenizer.json.
const MaxFileBytes = 64 << 20

// file is what is read of a tokenizer.json.
type file struct {
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	Added         []added         `json:"added_tokens"`
	Normalizer    *step           `json:"normalizer"`
	PreTokenizer  *step           `json:"pre_tokenizer"`
	PostProcessor *step           `json:"post_processor"`
	Decoder       *step           `json:"decoder"`
	Model         struct {
		Type         string            `json:"type"`
		Vocab        map[string]int    `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		IgnoreMerges bool              `json:"ignore_merges"`

		Dropout      *float64 `json:"dropout"`
		Unknown      *string  `json:"unk_token"`
		Prefix       *string  `json:"continuing_subword_prefix"`
		Suffix       *string  `json:"end_of_word_suffix"`
		FuseUnknown  bool     `json:"fuse_unk"`
		ByteFallback bool     `json:"byte_fallback"`
	} `json:"model"`
}

// added is a token beside the model's own.
type added struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// step is a normalizer, a pre-tokenizer or the like.
type step struct {
	Type           string  `json:"type"`
	Normalizers    []*step `json:"normalizers"`
	PreTokenizers  []*step `json:"pretokenizers"`
	Processors     []*step `json:"processors"`
	Decoders       []*step `json:"decoders"`
	AddPrefixSpace bool    `json:"add_prefix_space"`
	UseRegex       *bool   `json:"use_regex"`
	Behavior       string  `json:"behavior"`
	Invert         bool    `json:"invert"`
	Pattern        struct {
		Regex  *string `json:"Regex"`
		String *string `json:"String"`
	} `json:"pattern"`
}

// gptPattern is the split of byte-level models that name none of their own.
const gptPattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// Load reads a tokenizer.json. Whatever in it this package does not do exactly is an
// error: another model than byte-level BPE, another normalizer than NFC, another split
// than by isolated patterns, tokens that take the space around them.
func Load(text []byte) (*BPE, error) {
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("a tokenizer.json has at most %d bytes", MaxFileBytes)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("it is no tokenizer.json: %w", err)
	}
	t := &BPE{special: map[int]bool{}}
	err := errors.Join(f.refuse(), t.normalizing(f.Normalizer), t.splitting(f.PreTokenizer), f.finishing())
	if err != nil {
		return nil, err
	}
	if err := t.learn(&f); err != nil {
		return nil, err
	}
	return t, t.add(f.Added)
}

// refuse names what a model must not have.
func (f *file) refuse() error {
	var errs []error
	no := func(bad bool, what string) {
		if bad {
			errs = append(errs, fmt.Errorf("model: %s is not supported", what))
		}
	}
	empty := func(s *string) bool { return s == nil || *s == "" }
	absent := func(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }
	no(f.Model.Type != "BPE", "type "+f.Model.Type)
	no(f.Model.Dropout != nil && *f.Model.Dropout != 0, "dropout")
	no(!empty(f.Model.Unknown), "unk_token")
	no(!empty(f.Model.Prefix), "continuing_subword_prefix")
	no(!empty(f.Model.Suffix), "end_of_word_suffix")
	no(f.Model.FuseUnknown, "fuse_unk")
	no(f.Model.ByteFallback, "byte_fallback")
	no(!absent(f.Truncation), "truncation")
	no(!absent(f.Padding), "padding")
	return errors.Join(errs...)
}

// finishing holds what comes after the model to what leaves tokens as they are. What
// a post-processor adds around a text is the chat template's task in a prompt.
func (f *file) finishing() error {
	var errs []error
	for _, s := range flat(f.PostProcessor, func(s *step) []*step { return s.Processors }) {
		if s.Type != "ByteLevel" && s.Type != "TemplateProcessing" {
			errs = append(errs, fmt.Errorf("post_processor %s is not supported", s.Type))
		}
	}
	for _, s := range flat(f.Decoder, func(s *step) []*step { return s.Decoders }) {
		if s.Type != "ByteLevel" {
			errs = append(errs, fmt.Errorf("decoder %s is not supported", s.Type))
		}
	}
	return errors.Join(errs...)
}

// flat lists the steps of a sequence, or the one that there is.
func flat(s *step, below func(*step) []*step) []*step {
	if s == nil {
		return nil
	}
	if s.Type != "Sequence" {
		return []*step{s}
	}
	var all []*step
	for _, inner := range below(s) {
		all = append(all, flat(inner, below)...)
	}
	return all
}

func (t *BPE) normalizing(s *step) error {
	for _, s := range flat(s, func(s *step) []*step { return s.Normalizers }) {
		if s.Type != "NFC" {
			return fmt.Errorf("normalizer %s is not supported", s.Type)
		}
		t.nfc = true
	}
	return nil
}

// splitting compiles the patterns by which text is cut into words.
func (t *BPE) splitting(s *step) error {
	steps := flat(s, func(s *step) []*step { return s.PreTokenizers })
	if len(steps) == 0 || steps[len(steps)-1].Type != "ByteLevel" {
		return errors.New("pre_tokenizer: it does not end with ByteLevel, and nothing else is supported")
	}
	for i, s := range steps {
		pattern := ""
		switch last := i == len(steps)-1; {
		case last && s.AddPrefixSpace:
			return errors.New("pre_tokenizer: add_prefix_space is not supported")
		case last && (s.UseRegex == nil || *s.UseRegex):
			pattern = gptPattern
		case last:
			continue
		case s.Type != "Split" || s.Behavior != "Isolated" || s.Invert:
			return fmt.Errorf("pre_tokenizer: %s %s is not supported", s.Type, s.Behavior)
		case s.Pattern.Regex != nil:
			pattern = *s.Pattern.Regex
		case s.Pattern.String != nil:
			pattern = regexp2.Escape(*s.Pattern.String)
		}
		if pattern == "" {
			return errors.New("pre_tokenizer: a split has no pattern")
		}
		compiled, err := regexp2.Compile(pattern)
		if err != nil {
			return fmt.Errorf("pre_tokenizer: %w", err)
		}
		compiled.MatchTimeout = splitTimeout
		t.splits = append(t.splits, compiled)
	}
	return nil
}

// learn takes the vocabulary and the merges.
func (t *BPE) learn(f *file) error {
	values := map[rune]byte{}
	for b, letter := range byteLetters() {
		values[letter] = byte(b)
	}
	m := &t.model
	m.ignoreMerges, m.whole, m.merges = f.Model.IgnoreMerges, map[string]int{}, make(map[pair]to, len(f.Model.Merges))
	for letters, id := range f.Model.Vocab {
		text, ok := bytesOf(letters, values)
		if id < 0 || id > maxToken {
			return fmt.Errorf("vocab: the id %d is out of range", id)
		}
		if !ok { // reached only as an added token
			continue
		}
		m.whole[text] = id
		m.set(id, text)
	}
	for b := range 256 {
		id, known := m.whole[string([]byte{byte(b)})]
		if !known {
			return fmt.Errorf("vocab: the byte %d has no token, so that this is no byte-level model", b)
		}
		m.bytes[b] = id
	}
	for rank, merge := range f.Model.Merges {
		left, right, err := halves(merge)
		if err != nil {
			return fmt.Errorf("merges[%d]: %w", rank, err)
		}
		if err := t.merge(left, right, rank, f.Model.Vocab); err != nil {
			return err
		}
	}
	return nil
}

// maxToken bounds the ids of tokens.
const maxToken = 1 << 24

func (m *model) set(id int, text string) {
	if id >= len(m.texts) {
		m.texts = slices.Grow(m.texts, id+1-len(m.texts))[:id+1]
	}
	m.texts[id] = []byte(text)
}

func (t *BPE) merge(left, right string, rank int, vocab map[string]int) error {
	a, knowsLeft := vocab[left]
	b, knowsRight := vocab[right]
	id, knows := vocab[left+right]
	if !knowsLeft || !knowsRight || !knows {
		return fmt.Errorf("merges[%d]: a part is not in the vocabulary", rank)
	}
	if _, twice := t.model.merges[pair{a, b}]; twice {
		return fmt.Errorf("merges[%d]: it is there twice", rank)
	}
	t.model.merges[pair{a, b}] = to{rank, id}
	return nil
}

// halves reads a merge: two words with a space between, or a list of two.
func halves(merge json.RawMessage) (left, right string, err error) {
	if bytes.HasPrefix(merge, []byte("[")) {
		var two []string
		if err := json.Unmarshal(merge, &two); err != nil || len(two) != 2 {
			return "", "", errors.New("a list of two belongs here")
		}
		return two[0], two[1], nil
	}
	var text string
	if err := json.Unmarshal(merge, &text); err != nil {
		return "", "", err
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(right, " ") {
		return "", "", errors.New("two words belong here")
	}
	return left, right, nil
}

// bytesOf reads a word that is written in the letters of bytes.
func bytesOf(letters string, values map[rune]byte) (string, bool) {
	text := make([]byte, 0, len(letters))
	for _, letter := range letters {
		b, ok := values[letter]
		if !ok {
			return "", false
		}
		text = append(text, b)
	}
	return string(text), len(text) > 0
}
