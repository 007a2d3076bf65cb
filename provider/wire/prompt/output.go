package prompt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// Decode reads the body of an answer into v, exactly: a name that is there twice,
// half of a surrogate pair or a value of another type is an error, which repeats no
// value.
func Decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) {
			return fmt.Errorf("the answer has not the shape of one: %s at %s", kindName(semantic), semantic.JSONPointer)
		}
		return errors.New("the answer is not JSON that everybody reads alike")
	}
	return nil
}

func kindName(e *json.SemanticError) string {
	names := map[byte]string{'"': "a text", '{': "an object", '[': "a list", '0': "a number", 't': "true", 'f': "false", 'n': "null"}
	if name := names[byte(e.JSONKind)]; name != "" {
		return "unexpectedly " + name
	}
	return "something else"
}

// maxFinish bounds a word for an end that is not known here.
const maxFinish = 40

// Finish puts a provider's word for an end into neutral ones. One that is not known
// is passed on: it is no end that a contract takes.
func Finish(word string, known map[string]onejob.OutputFinish) onejob.OutputFinish {
	if finish, ok := known[word]; ok {
		return finish
	}
	if len(word) > maxFinish {
		word = strings.ToValidUTF8(word[:maxFinish], "")
	}
	return onejob.OutputFinish(word)
}

// UpstreamName reads the member by which aggregators say who answered. Empty: it says
// nothing.
func UpstreamName(value jsontext.Value) string {
	var name string
	if value.Kind() != '"' || json.Unmarshal(value, &name) != nil {
		return ""
	}
	return name
}

// Count holds a count of tokens to be one.
func Count(tokens int) (int, error) {
	if tokens <= 0 {
		return 0, errors.New("the provider counted nothing: its answer has no count")
	}
	return tokens, nil
}
