package translate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/provider/translate"
)

// values are what each member is given in turn.
var values = []string{
	`true`, `false`, `0`, `0.5`, `1`, `1.5`, `7`, `""`, `"text"`, `"auto"`, `"none"`, `"required"`, `"any"`, `"default"`, `"standard_only"`, `"flex"`,
	`"minimal"`, `"low"`, `"medium"`, `"high"`, `"xhigh"`, `"max"`, `[]`, `["text"]`, `["a","b","c","d"]`, `["a","b","c","d","e"]`, `{}`,
	`{"type":"text"}`, `{"type":"json_object"}`, `{"type":"disabled"}`, `{"type":"adaptive"}`, `{"type":"auto"}`, `{"type":"any"}`, `{"type":"none"}`, `{"type":"tool","name":"f"}`,
	`{"type":"any","disable_parallel_tool_use":true}`, `{"type":"function","function":{"name":"f"}}`, `{"include_usage":true}`, `{"user_id":"u1"}`, `{"effort":"high"}`, `{"type":"ephemeral"}`,
}

// said is what the translations make of everything here: a line each for the members that
// they know, for what becomes of a member and the values that it becomes of, for each
// golden and each answer.
func said() []string {
	var lines []string
	for _, d := range directions {
		members := translate.Members()[d.name]
		lines = append(lines, fmt.Sprintf("%s knows %s", d.name, strings.Join(members, " ")))
		for _, member := range members {
			lines = append(lines, becomes(d, member)...)
		}
		for _, g := range d.goldens {
			got, err := d.translate([]byte(g.in))
			lines = append(lines, fmt.Sprintf("%s %s is %s without %v, %v", d.name, g.in, got.Body, got.Dropped, err))
		}
	}
	for _, a := range answers {
		completion, err := translate.ToCompletion([]byte(a.message), noon)
		lines = append(lines, fmt.Sprintf("ToCompletion %s is %s, %v", a.message, completion, err))
		message, err := translate.ToMessage([]byte(a.completion))
		lines = append(lines, fmt.Sprintf("ToMessage %s is %s, %v", a.completion, message, err))
	}
	for _, end := range []string{"stop", "length", "tool_calls", "content_filter", "function_call", "end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "pause_turn"} {
		completion, err := translate.ToCompletion(fmt.Appendf(nil, `{"type":"message","content":[],"stop_reason":%q}`, end), noon)
		lines = append(lines, fmt.Sprintf("ToCompletion of the end %s is %s, %v", end, completion, err))
		message, err := translate.ToMessage(fmt.Appendf(nil, `{"choices":[{"finish_reason":%q,"message":{"content":"a"}}]}`, end))
		lines = append(lines, fmt.Sprintf("ToMessage of the end %s is %s, %v", end, message, err))
	}
	return lines
}

// becomes is what becomes of a member; … is its value. How many values are refused is said
// as well.
func becomes(d direction, member string) (lines []string) {
	of, refused := map[string][]string{}, 0
	for _, value := range values {
		got, err := d.translate(fmt.Appendf(nil, "{%q:%s}", member, value))
		if err != nil {
			refused++
			continue
		}
		outcome := fmt.Sprintf("%s without %v", strings.Replace(string(got.Body), ":"+value, ":…", 1), got.Dropped)
		of[outcome] = append(of[outcome], value)
	}
	for outcome, values := range of {
		lines = append(lines, fmt.Sprintf("%s %s is %s for %s", d.name, member, outcome, strings.Join(values, " ")))
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprintf("%s %s refuses %d others", d.name, member, refused))
}

// The version is a part of the digest that certificates are for: who changes what is said
// has to raise it, or they would stand for what nobody has verified.
func TestTheVersionChangesWithWhatIsSaid(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "said.txt")
	head := fmt.Sprintf("version %d", translate.Version)
	now := append([]string{head}, said()...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	then := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if slices.Equal(now, then) {
		return
	}
	if then[0] == head {
		for _, line := range then {
			if !slices.Contains(now, line) {
				t.Fatalf("version %d does not say any more:\n%s\nRaise translate.Version, so that certificates of what was translated in that way end. Then, or if only what is tried has\nchanged and the first line of %s says so by version 0: go test ./provider/translate -run TestTheVersion -update", translate.Version, line, path)
			}
		}
	}
	if !*update {
		t.Fatalf("%s is not of version %d, or lacks what is tried now: go test ./provider/translate -run TestTheVersion -update", path, translate.Version)
	}
	if err := os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
