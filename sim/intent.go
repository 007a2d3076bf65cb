package sim

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// IntentHeader names the intent by a request header.
func IntentHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// IntentMember names the intent by a member of the JSON body, its names joined
// by dots as in "metadata.order". Strings stand for themselves, other values
// for their JSON text. A body without the member has the intent "".
func IntentMember(path string) func(*http.Request) string {
	names := strings.Split(path, ".")
	return func(r *http.Request) string {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return "" // whoever reads the body next meets the same error
		}
		value := json.RawMessage(body)
		for _, name := range names {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				return ""
			}
			value = object[name]
		}
		var text string
		if json.Unmarshal(value, &text) == nil {
			return text
		}
		return string(value)
	}
}
