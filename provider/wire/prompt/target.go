package prompt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Ways to count the tokens of a prompt, as a target's tokenizer says.
const (
	CountRemote = "remote"    // by the API's own endpoint
	CountVLLM   = "vllm"      // by a vLLM server's /tokenize
	CountLlama  = "llama.cpp" // by a llama.cpp server's /apply-template and /tokenize
)

// Prefixes of a tokenizer that counts here, without asking anybody.
const (
	CountTiktoken = "tiktoken:" // and o200k_base or cl100k_base
	CountFile     = "file:"     // and the path of a tokenizer.json
)

// CheckTokenizer says what is wrong with a target's tokenizer. Empty is the API's own
// way, or none. Remote ones are those that the adapter has.
func CheckTokenizer(text string, remote ...string) error {
	name, encoding := strings.CutPrefix(text, CountTiktoken)
	file, isFile := strings.CutPrefix(text, CountFile)
	switch {
	case text == "", slices.Contains(remote, text):
		return nil
	case encoding && (name == "o200k_base" || name == "cl100k_base"):
		return nil
	case isFile && path.Base(file) != "." && path.Base(file) != "/":
		return nil
	}
	return fmt.Errorf("tokenizer: %q is none of %s, tiktoken:o200k_base, tiktoken:cl100k_base, file:PATH", text, strings.Join(remote, ", "))
}

// CheckTarget says what is wrong with what a target says of its model.
func CheckTarget(contextTokens int, upstream []string) error {
	var errs []error
	if contextTokens < 0 {
		errs = append(errs, errors.New("context_tokens is negative"))
	}
	if slices.Contains(upstream, "") {
		errs = append(errs, errors.New("upstream has an empty name"))
	}
	return errors.Join(errs...)
}
