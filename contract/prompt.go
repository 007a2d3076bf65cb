package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/template"
)

// MaxPromptBytes bounds what a contract's templates make of one input.
const MaxPromptBytes = 4 << 20

// maxTurns bounds how often the loops of a template go round for one input.
const maxTurns = 100_000

// ErrNoPrompt : the contract leaves the request to the target's own configuration.
var ErrNoPrompt = errors.New("the contract has no prompt")

// Prompt renders the contract's prompt for an input, and puts its parameters beside it.
// The same input makes the same prompt. An input that the contract does not take, a
// value that is not there, and a prompt of more than [MaxPromptBytes] are errors.
func (k *Checker) Prompt(input []byte) (onejob.Prompt, error) {
	if k.prompt == nil {
		return onejob.Prompt{}, ErrNoPrompt
	}
	if found := k.ValidateInput(input); len(found) > 0 {
		return onejob.Prompt{}, fmt.Errorf("the input is not one that the contract takes: %s", found[0])
	}
	return k.prompt.render(input, k.prompt.neutral)
}

// promptTemplates are those of one contract. They are safe for concurrent use.
type promptTemplates struct {
	system, user *promptTemplate
	params       []onejob.PromptParam
	untrusted    [][]string // paths of members
	neutralise   bool
}

// neutral is the input as it goes into the templates.
func (p *promptTemplates) neutral(v jinja.Value) {
	if !p.neutralise {
		return
	}
	for _, path := range p.untrusted {
		rewrite(v, path, func(text string) string { return controlMarker.ReplaceAllStringFunc(text, parted) })
	}
}

// controlMarker is what control tokens of models look like.
var controlMarker = regexp.MustCompile(`<[|｜][^<>|｜\s]{1,64}[|｜]>|</?[a-z]{1,16}(?:_[a-z]{1,16}){0,4}>|\[/?[A-Z_]{2,32}\]|<0x[0-9A-F]{2}>`)

// zeroWidthJoiner shows nothing and parts what stands around it.
const zeroWidthJoiner = "\u200d"

// parted parts a marker behind its first character, so that it is read as text.
func parted(marker string) string { return marker[:1] + zeroWidthJoiner + marker[1:] }

// rewrite changes the texts at or below a path.
func rewrite(v jinja.Value, path []string, change func(string) string) {
	if !v.IsDict() {
		return
	}
	d := v.AsDict()
	for _, name := range d.Keys {
		if len(path) > 0 && name != path[0] {
			continue
		}
		d.Data[name] = rewritten(d.Data[name], path[min(1, len(path)):], change)
	}
}

func rewritten(v jinja.Value, path []string, change func(string) string) jinja.Value {
	switch {
	case v.IsString() && len(path) == 0:
		return jinja.NewString(change(v.AsString()))
	case v.IsList() && len(path) == 0:
		items := v.AsList().Items
		for i := range items {
			items[i] = rewritten(items[i], nil, change)
		}
	case v.IsDict():
		rewrite(v, path, change)
	}
	return v
}

func (p *promptTemplates) render(input []byte, change func(jinja.Value)) (onejob.Prompt, error) {
	value, err := template.Value(input)
	if err != nil {
		return onejob.Prompt{}, fmt.Errorf("the input: %w", err)
	}
	change(value)
	system, err := p.system.render(value)
	if err != nil {
		return onejob.Prompt{}, fmt.Errorf("prompt.system: %w", err)
	}
	user, err := p.user.render(value)
	if err != nil {
		return onejob.Prompt{}, fmt.Errorf("prompt.user: %w", err)
	}
	return onejob.Prompt{System: system, User: user, Params: slices.Clone(p.params)}, nil
}

// promptTemplate is one of them, compiled. Nil renders nothing.
type promptTemplate struct {
	compiled *jinja.Template
	outputs  []string // what each puts out, as it is written
}

// Functions that templates are given.
const (
	putFunction  = "onejob_put"
	turnFunction = "onejob_turn"
)

// foreign are statements that would read other templates, or that the scan of a template
// takes for something else.
var foreign = []string{"include", "import", "from", "extends", "block", "raw", "generation"}

// compilePrompt makes a template in which a value that is not there is an error, and
// whose loops have an end.
func compilePrompt(source string) (*promptTemplate, error) {
	segments, err := template.Scan(source)
	if err != nil {
		return nil, err
	}
	t := &promptTemplate{}
	var text strings.Builder
	for _, s := range segments {
		verb := ""
		if names := template.Names(s.Text); s.Kind == template.Statement && len(names) > 0 {
			verb = names[0]
		}
		switch {
		case slices.Contains(foreign, verb):
			return nil, fmt.Errorf("{%% %s %%} is not for prompts", verb)
		case s.Kind == template.Output:
			t.outputs = append(t.outputs, strings.TrimSpace(s.Text))
			s.Text = fmt.Sprintf(" %s(%d, %s) ", putFunction, len(t.outputs)-1, s.Text)
		}
		text.WriteString(s.String())
		if verb == "for" { // a statement, trimmed as the loop's own: it leaves the text as it is
			text.WriteString("{%" + strings.TrimSuffix(s.End, "%}") + " set _ = " + turnFunction + "() " + s.End)
		}
	}
	t.compiled, err = jinja.Compile(text.String())
	return t, err
}

var (
	errPromptLong = fmt.Errorf("the prompt would be longer than %d bytes", MaxPromptBytes)
	errTurns      = fmt.Errorf("its loops go round more than %d times", maxTurns)
)

// render puts an input into a template.
func (t *promptTemplate) render(input jinja.Value) (string, error) {
	if t == nil {
		return "", nil
	}
	text, err := t.compiled.RenderValues(map[string]jinja.Value{
		"input": input, putFunction: t.put(), turnFunction: turn(), "range": jinja.NewCallable("range", template.Range),
		"strftime_now": jinja.Undefined(), // one input makes one prompt
	})
	if err == nil && len(text) > MaxPromptBytes {
		err = errPromptLong
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// put returns the function that passes on what is put out, if it is there.
func (t *promptTemplate) put() jinja.Value {
	bytes := 0
	return jinja.NewCallable(putFunction, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) != 2 || !args[0].IsInt() {
			return jinja.Undefined(), errors.New("an output is one value")
		}
		v := args[1]
		if v.IsUndefined() {
			return v, fmt.Errorf("%s is not there", clip(t.outputs[args[0].AsInt()]))
		}
		if v.IsString() {
			bytes += len(v.AsString())
		}
		if bytes > MaxPromptBytes {
			return v, errPromptLong
		}
		return v, nil
	})
}

// turn returns the function that counts how often loops go round.
func turn() jinja.Value {
	turns := 0
	return jinja.NewCallable(turnFunction, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		if turns++; turns > maxTurns {
			return jinja.None(), errTurns
		}
		return jinja.None(), nil
	})
}

// neutralParams are the parameters of a contract, sorted by name.
func neutralParams(f *File) []onejob.PromptParam {
	var params []onejob.PromptParam
	add := func(name string, value json.RawMessage, required bool) {
		params = append(params, onejob.PromptParam{Name: name, Value: value, Required: required})
	}
	byCall := f.Output.Media == MediaToolCall
	for _, group := range []struct {
		params   map[string]Value
		required bool
	}{{f.Params.Required, true}, {f.Params.Tuning, false}} {
		for name, value := range group.params {
			switch {
			case name != paramSchema:
				add(name, json.RawMessage(value), group.required)
			case !byCall:
				add(name, json.RawMessage(f.Output.Schema), group.required)
			}
		}
	}
	if byCall {
		add("tools", toolOf(f), true)
	}
	switch t := f.Params.Temperature; t {
	case "":
	case "low":
		add("temperature", json.RawMessage(onejob.TemperatureLow), false)
	default:
		add("temperature", json.RawMessage(t), true)
	}
	slices.SortFunc(params, func(a, b onejob.PromptParam) int { return strings.Compare(a.Name, b.Name) })
	return params
}

// notInToolNames is what APIs refuse in the name of a tool.
var notInToolNames = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

const maxToolName = 64

// toolOf is the tool whose call is the output, named as the kind is.
func toolOf(f *File) json.RawMessage {
	name := notInToolNames.ReplaceAllString(f.Kind, "_")
	tools, err := json.Marshal([]map[string]any{{"name": name[:min(len(name), maxToolName)], "parameters": json.RawMessage(f.Output.Schema)}})
	if err != nil { // a schema that was read is JSON
		return nil
	}
	return tools
}
