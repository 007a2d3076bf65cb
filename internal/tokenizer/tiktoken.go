package tokenizer

import (
	"errors"
	"fmt"

	tiktoken "github.com/tiktoken-go/tokenizer"
)

// Tiktoken returns the encoding o200k_base or cl100k_base; another name is an error. It
// reads every byte as text, as those who serve these encodings do with what they are
// sent: there are no control tokens in it.
func Tiktoken(encoding string) (Tokenizer, error) {
	name := tiktoken.Encoding(encoding)
	if name != tiktoken.O200kBase && name != tiktoken.Cl100kBase {
		return nil, fmt.Errorf("there is no encoding %q here", encoding)
	}
	codec, err := tiktoken.Get(name)
	if err != nil {
		return nil, err
	}
	return tiktokens{codec}, nil
}

type tiktokens struct{ codec tiktoken.Codec }

func (t tiktokens) Encode(text string) ([]int, error) { return t.EncodePlain(text) }

func (t tiktokens) EncodePlain(text string) ([]int, error) {
	ids, _, err := t.codec.Encode(text)
	if err != nil {
		return nil, err
	}
	plain := make([]int, len(ids))
	for i, id := range ids {
		plain[i] = int(id)
	}
	return plain, nil
}

func (t tiktokens) Decode(ids []int) (string, error) {
	given := make([]uint, len(ids))
	for i, id := range ids {
		if id < 0 {
			return "", errors.New("a token is negative")
		}
		given[i] = uint(id)
	}
	return t.codec.Decode(given)
}

func (t tiktokens) Special(int) bool { return false }

func (t tiktokens) Beginning() (id int, known bool) { return 0, false }
