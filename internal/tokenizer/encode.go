package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"
)

// splitTimeout bounds one match: patterns are somebody else's.
const splitTimeout = 10 * time.Second

// BPE is a byte-level BPE tokenizer. [Load] makes one.
type BPE struct {
	model   model
	nfc     bool
	splits  []*regexp2.Regexp
	raw     finder // added tokens that are looked for in the text as it is
	normed  finder // and in the normalized text
	special map[int]bool
	begin   int
	begins  bool
}

// beginnings are what the first token of a sequence is called.
var beginnings = []string{"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>", "<｜begin▁of▁sentence｜>", "[BOS]", "<|begin_of_sentence|>"}

// add takes the added tokens.
func (t *BPE) add(tokens []added) error {
	for _, a := range tokens {
		switch {
		case a.Content == "" || a.ID < 0 || a.ID > maxToken:
			return fmt.Errorf("added_tokens: %d is no token", a.ID)
		case a.SingleWord || a.LStrip || a.RStrip:
			return fmt.Errorf("added_tokens: %q takes what stands around it, which is not supported", a.Content)
		}
		t.model.set(a.ID, a.Content)
		t.special[a.ID] = a.Special
		if a.Special && slices.Contains(beginnings, a.Content) {
			t.begin, t.begins = a.ID, true
		}
		if a.Normalized && t.nfc {
			a.Content = norm.NFC.String(a.Content)
			t.normed.add(a.Content, a.ID)
		} else {
			t.raw.add(a.Content, a.ID)
		}
	}
	return nil
}

// Special implements [Tokenizer].
func (t *BPE) Special(id int) bool { return t.special[id] }

// Beginning implements [Tokenizer].
func (t *BPE) Beginning() (id int, known bool) { return t.begin, t.begins }

// Decode implements [Tokenizer].
func (t *BPE) Decode(ids []int) (string, error) { return t.model.decode(ids) }

// Encode implements [Tokenizer].
func (t *BPE) Encode(text string) ([]int, error) {
	var ids []int
	err := t.raw.cut(text, func(piece string, id int) (err error) {
		if id >= 0 {
			ids = append(ids, id)
			return nil
		}
		return t.normed.cut(t.normalized(piece), func(piece string, id int) (err error) {
			if id >= 0 {
				ids = append(ids, id)
				return nil
			}
			ids, err = t.words(ids, piece, t.splits)
			return err
		})
	})
	return ids, err
}

// EncodePlain implements [Tokenizer].
func (t *BPE) EncodePlain(text string) ([]int, error) {
	return t.words(nil, t.normalized(text), t.splits)
}

func (t *BPE) normalized(text string) string {
	if t.nfc {
		return norm.NFC.String(text)
	}
	return text
}

// words cuts a text by one pattern after the other, and appends the tokens of what is left.
func (t *BPE) words(ids []int, text string, splits []*regexp2.Regexp) ([]int, error) {
	if text == "" {
		return ids, nil
	}
	if len(splits) == 0 {
		return t.model.word(ids, text), nil
	}
	found, err := splits[0].FindAllStringIndex(text, -1)
	if err != nil {
		return nil, err
	}
	end := 0
	for _, at := range append(found, []int{len(text), len(text)}) {
		for _, piece := range []string{text[end:at[0]], text[at[0]:at[1]]} {
			if ids, err = t.words(ids, piece, splits[1:]); err != nil {
				return nil, err
			}
		}
		end = at[1]
	}
	return ids, nil
}

// finder looks for texts, of those that begin at one place the longest.
type finder struct{ by [256][]known }

type known struct {
	text string
	id   int
}

func (f *finder) add(text string, id int) {
	list := append(f.by[text[0]], known{text, id})
	slices.SortStableFunc(list, func(a, b known) int { return len(b.text) - len(a.text) })
	f.by[text[0]] = list
}

// cut calls visit with each piece of a text: what is found under its id, and what is
// between under -1.
func (f *finder) cut(text string, visit func(piece string, id int) error) error {
	start := 0
	for i := 0; i < len(text); {
		at := slices.IndexFunc(f.by[text[i]], func(k known) bool { return strings.HasPrefix(text[i:], k.text) })
		if at < 0 {
			i++
			continue
		}
		k := f.by[text[i]][at]
		if start < i {
			if err := visit(text[start:i], -1); err != nil {
				return err
			}
		}
		if err := visit(k.text, k.id); err != nil {
			return err
		}
		i += len(k.text)
		start = i
	}
	if start < len(text) {
		return visit(text[start:], -1)
	}
	return nil
}
