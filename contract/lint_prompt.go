package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parameters in neutral words.
const (
	paramSchema = "response_schema"
	paramCap    = "max_output_tokens"
	paramStream = "stream"
)

// paramForms says what each parameter may be. An adapter maps them; what is not here
// no adapter would know.
func paramForms() map[string]func(any) string {
	return map[string]func(any) string{
		paramSchema: oneOfForm("write output.schema: the schema is in this file", "output.schema"),
		paramCap:    capForm, paramStream: oneOfForm("true or false belongs here", true, false),
		"stop": textsForm, "seed": wholeNumberForm, "top_k": wholeNumberForm,
		"top_p": anyNumberForm, "frequency_penalty": anyNumberForm, "presence_penalty": anyNumberForm,
		"reasoning_effort": oneOfForm("none, low, medium or high belongs here", "none", "low", "medium", "high"),
	}
}

// oneOfForm takes the values that are listed.
func oneOfForm(otherwise string, values ...any) func(any) string {
	return func(v any) string {
		if slices.Contains(values, v) {
			return ""
		}
		return otherwise
	}
}

func wholeNumberForm(v any) string {
	if n, ok := v.(json.Number); ok && wholeForm.MatchString(n.String()) && !strings.HasPrefix(n.String(), "-") {
		return ""
	}
	return "a whole number belongs here"
}

func capForm(v any) string {
	if n, _ := strconv.Atoi(fmt.Sprint(v)); n <= 0 || wholeNumberForm(v) != "" {
		return "a whole number above 0 belongs here"
	}
	return ""
}

func anyNumberForm(v any) string {
	if _, ok := v.(json.Number); ok {
		return ""
	}
	return "a number belongs here"
}

func textsForm(v any) string {
	list, ok := v.([]any)
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText && text != ""
	}
	if !ok || len(list) == 0 {
		return "a list of texts belongs here"
	}
	return ""
}

// prompt checks what can be checked of the request without rendering it.
func (l *linter) prompt() {
	if l.Prompt == nil {
		return
	}
	l.templates()
	in := l.checker.inputSchema
	var used []string
	for _, part := range []struct{ path, text string }{{"prompt.system", l.Prompt.System}, {"prompt.user", l.Prompt.User}} {
		members := membersOf(part.text)
		used = append(used, members...)
		if in == nil || in.shape.kind != objectShape {
			continue
		}
		for _, member := range members {
			if in.shape.fields[member] == nil {
				l.error("prompt-unknown", part.path, fmt.Sprintf("input has no %q%s", member, suggest(member, in.shape.names())))
			}
		}
		for _, path := range unknownMembers(part.text, in.shape) {
			if strings.Count(path, ".") > 1 {
				l.error("prompt-unknown", part.path, path+" is not there")
			}
		}
	}
	for i, name := range l.Prompt.Untrusted {
		at := fmt.Sprintf("prompt.untrusted[%d]", i)
		if s, ok := l.member(name, inputVariable); !ok {
			l.error("prompt-untrusted", at, fmt.Sprintf("%q is not a member of the input, as in input.subject%s", name, suggest(name, prefixed("input.", s.names()))))
		}
	}
	l.trusted(used)
}

// trusted warns of free text that goes into the prompt without being called
// untrusted.
func (l *linter) trusted(used []string) {
	in := l.checker.inputSchema
	if in == nil {
		return
	}
	slices.Sort(used)
	for _, name := range slices.Compact(used) {
		if s := in.shape.fields[name]; s != nil && s.kind != textShape && s.kind != anyShape {
			continue
		}
		if !slices.Contains(l.Prompt.Untrusted, "input."+name) {
			l.warning("prompt-untrusted", "prompt.untrusted", "input."+name+" is text and goes into the prompt; list it, unless nobody else can write it")
		}
	}
}

// member finds what a path such as input.subject names. When it names nothing, the
// root's shape is returned.
func (l *linter) member(path, root string) (*shape, bool) {
	s := &shape{}
	switch {
	case root == inputVariable && l.checker.inputSchema != nil:
		s = l.checker.inputSchema.shape
	case root == outputVariable && l.checker.outputSchema != nil:
		s = l.checker.outputSchema.shape
	default:
		return s, true // what is wrong with the schema was said
	}
	steps := strings.Split(path, ".")
	if len(steps) < 2 || steps[0] != root {
		return s, false
	}
	found := s
	for _, step := range steps[1:] {
		if found.fields[step] == nil {
			return s, false
		}
		found = found.fields[step]
	}
	return found, true
}

func prefixed(prefix string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = prefix + name
	}
	return list
}

// Where a template speaks of the input.
var (
	templateCode = regexp.MustCompile(`(?s)\{\{.*?\}\}|\{%.*?%\}`)
	inputMember  = regexp.MustCompile(`\binput\.([A-Za-z_][A-Za-z0-9_]*)`)
)

// membersOf lists the members of input that a template names.
func membersOf(template string) []string {
	var found []string
	for _, code := range templateCode.FindAllString(template, -1) {
		for _, m := range inputMember.FindAllStringSubmatch(code, -1) {
			if !slices.Contains(found, m[1]) {
				found = append(found, m[1])
			}
		}
	}
	return found
}

// params checks the parameters, and that those are there without which a target
// chooses for itself.
func (l *linter) params() {
	forms := paramForms()
	for _, group := range []struct {
		path   string
		params map[string]Value
	}{{"params.required", l.Params.Required}, {"params.tuning", l.Params.Tuning}} {
		for _, name := range slices.Sorted(maps.Keys(group.params)) {
			form, known := forms[name]
			switch at := join(group.path, name); {
			case name == "temperature":
				l.error("param-temperature", at, "temperature stands beside required and tuning: it is never dropped in silence")
			case !known:
				l.error("param-unknown", at, fmt.Sprintf("there is no parameter %q%s", name, suggest(name, slices.Sorted(maps.Keys(forms)))))
			default:
				if message := form(expected(json.RawMessage(group.params[name]))); message != "" {
					l.error("param-value", at, message)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Params.Tuning)) {
		if _, both := l.Params.Required[name]; both {
			l.error("param-twice", join("params.tuning", name), name+" is required already; a parameter is one or the other")
		}
	}
	if l.Prompt != nil {
		l.requiredParams()
	}
}

// requiredParams: whoever writes the prompt also says these.
func (l *linter) requiredParams() {
	if l.outputCap() == 0 && l.Output.Media != MediaBinary {
		l.error("param-missing", "params.required", paramCap+" is required: without it every target has its own")
	}
	if _, ok := l.Params.Required[paramSchema]; !ok && l.Output.Media == MediaJSON {
		l.error("param-missing", "params.required", paramSchema+": output.schema is required for media json")
	}
	if reserve := l.Render.Context.ReserveOutputTokens; reserve < l.outputCap() {
		l.error("render-reserve", "render.context.reserve_output_tokens",
			fmt.Sprintf("it reserves %d tokens, and an output may take %d; reserve as many, and more for models that think", reserve, l.outputCap()))
	}
	switch t := l.Params.Temperature; t {
	case "":
		l.error("param-temperature", "params", "temperature is required: low, or a number")
	case "low":
	default:
		if n, _ := strconv.ParseFloat(string(t), 64); n > mildTemperature {
			l.warning("param-temperature", "params.temperature", "above 0.3 structure breaks more often; low is 0, or the least that a target takes")
		}
	}
}

// mildTemperature is up to where outputs still repeat themselves.
const mildTemperature = 0.3

// outputCap returns how many tokens an output may take. Zero: it was not said.
func (l *linter) outputCap() int {
	n, _ := strconv.Atoi(string(l.Params.Required[paramCap]))
	return max(n, 0)
}
