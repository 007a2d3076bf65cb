package openai

import (
	"errors"
	"fmt"

	"github.com/onejob-dev/onejob/provider/wire"
)

// errNoPrompt is what [Provider.Render] and [Provider.ReadOutput] say where the API is
// not one of texts.
var errNoPrompt = errors.New("the API takes no prompt and answers with no text")

// inspectList holds an answer of the embeddings or the images API to what was promised:
// data, each of it with one of the members.
func inspectList(members ...string) func(*wire.Seen) {
	return func(s *wire.Seen) {
		wire.SaysFailed(s)
		if s.Finding != "" {
			return
		}
		object, _ := s.JSON.(map[string]any)
		data, isList := object["data"].([]any)
		switch {
		case !isList:
			s.Finding, s.Detail = wire.FindingUnusable, "the answer has no data"
		case len(data) == 0:
			s.Finding, s.Detail = wire.FindingFailed, "the list of data is empty"
		}
		for i, item := range data {
			if s.Finding == "" && !hasOne(item, members) {
				s.Finding, s.Detail = wire.FindingUnusable, fmt.Sprintf("data[%d] has nothing of %q", i, members)
			}
		}
	}
}

func hasOne(item any, members []string) bool {
	object, _ := item.(map[string]any)
	for _, m := range members {
		if object[m] != nil {
			return true
		}
	}
	return false
}
