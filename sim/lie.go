package sim

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// lieKind is a lie and how it is told. Each acts at one moment of a [thought] and
// reports whether it changed anything; what it cannot befall it leaves alone.
type lieKind struct {
	name     string
	class    string
	argument Argument // ArgRate if empty
	fallback string   // what the argument is if it is not given; empty: it must be
	least    int      // a count may be
	short    string
	late     bool // told after the others of its moment

	refuse func(*question, string) *failure // instead of an answer; loud
	see    func(*thought, string) bool      // what the model sees, or means to do
	shape  func(*value) bool                // the JSON value that it answers
	word   func(*thought) bool              // the text that it answers
	end    func(*thought) bool              // how it ends, and the answer around it
	bill   func(*thought, string) bool      // what is counted
}

// silent reports whether a lie looks well.
func (k lieKind) silent() bool { return k.refuse == nil }

func (k lieKind) fault() Fault {
	f := Fault{Name: k.name, Argument: k.argument, Executes: ExecutesAtOnce, Short: k.short, Lie: true, Class: k.class, Silent: k.silent()}
	if f.Argument == "" {
		f.Argument = ArgRate
	}
	if !f.Silent {
		f.Executes = ExecutesNever
	}
	return f
}

// parse reads what follows the lie's name.
func (k lieKind) parse(value string, given bool) (Lie, error) {
	l := Lie{Fault: k.name}
	rate, rated := value, given
	if k.argument != "" {
		l.Argument, rate, rated = strings.Cut(value, "@")
	}
	if rated {
		n, err := strconv.ParseFloat(rate, 64)
		if err != nil || !(n > 0 && n <= 1) {
			return Lie{}, fmt.Errorf("a rate is more than 0 and at most 1, as in 0.04; got %q", rate)
		}
		if l.Rate = n; n == 1 {
			l.Rate = 0
		}
	}
	return l, k.checkArgument(l.Argument)
}

func (k lieKind) checkArgument(arg string) error {
	switch {
	case k.argument == "" && arg != "":
		return fmt.Errorf("it takes no argument, got %q", arg)
	case k.argument == ArgParameter && !parameterName.MatchString(arg):
		return errors.New("it takes the name of a parameter, as in " + k.name + "=temperature")
	case k.argument == ArgCount && arg != "":
		n, err := strconv.Atoi(arg)
		if err != nil || n < k.least || n > 1<<24 {
			return fmt.Errorf("it takes a whole number of %d to %d, got %q", k.least, 1<<24, arg)
		}
	}
	return nil
}

var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_.]*$`)

func lieNamed(name string) (lieKind, bool) {
	for _, k := range lies() {
		if k.name == name {
			return k, true
		}
	}
	return lieKind{}, false
}

// lies is the whole set, by the classes of docs/sim.md.
func lies() []lieKind {
	return []lieKind{
		// What stands around the JSON.
		{name: "free_text", class: "6", short: "the format asked for is dropped: a sentence in place of the JSON", word: wordFreeText},
		{name: "upgraded", class: "7", argument: ArgCount, fallback: "100", short: "after so many answers of the model (100) a sentence in place of the JSON, under the same name", see: seeUpgrade, word: wordUpgraded},
		{name: "surface_broken", class: "8", short: "on the responses API only: closing brackets too many after the JSON", word: wordBrackets},
		{name: "trailing", class: "", short: "a second JSON value after the first", word: wordTrailing},
		{name: "fence", class: "1", short: "the JSON in a markdown fence", word: wordFence},
		{name: "prose", class: "2", short: "a sentence before the JSON and one after", word: wordProse},
		{name: "think_in_content", class: "27", short: "the reasoning, in <think>, before the answer", word: wordThink, late: true},

		// The JSON itself.
		{name: "schema_ignored", class: "5", short: "JSON of the model's own shape", shape: shapeIgnored},
		{name: "stringly", class: "17", short: "numbers and booleans as strings, in answers and arguments: \"5\", \"True\"", shape: shapeStringly},
		{name: "enum_drift", class: "19", short: "a value that is not in the enum: Low for low", shape: shapeEnum},
		{name: "bounds_ignored", class: "30", short: "the first bound of the schema exceeded: maxLength, maximum, minimum or maxItems", shape: shapeBounds},
		{name: "float_integers", class: "", short: "integers written with a fraction: 1200.0", shape: shapeFloats},
		{name: "escape_corrupt", class: "32", short: "letters beyond ASCII as a NUL and their code: Ume\\u0000e5", shape: shapeEscapes, word: wordEscapes},
		{name: "cut_to_empty", class: "25", short: "lists and texts empty, valid and complete, the tokens at the limit; where there is a limit", shape: shapeEmpty, bill: billEmpty},
		{name: "duplicate_names", class: "", short: "the first member twice, as null before its value", shape: shapeDuplicate, late: true},
		{name: "double_encoded", class: "18", short: "nested values as strings of JSON; the whole value if nothing is nested", shape: shapeDouble, late: true},
		{name: "wrap", class: "3", short: "the value inside {\"parameters\": …}", shape: shapeWrap, late: true},
		{name: "tool_envelope", class: "4", short: "the value inside {\"json_tool_call\": …}", shape: shapeEnvelope, late: true},

		// What reaches the model.
		{name: "system_dropped", class: "16", short: "the model never sees the system prompt", see: seeNoSystem},
		{name: "developer_dropped", class: "", short: "the model never sees messages of the role developer", see: seeNoDeveloper},
		{name: "late_system_dropped", class: "", short: "the model sees the first system message only", see: seeFirstSystem},
		{name: "tools_dropped", class: "", short: "the model never sees the tools, and answers in words", see: seeNoTools},
		{name: "stop_ignored", class: "11", short: "the answer runs on past the stop sequence", see: seeNoStop},
		{name: "context_cut", class: "33", argument: ArgCount, fallback: "4096", least: 16, short: "the beginning of a long request is cut off; prompt and answer count exactly so many tokens (4096)", see: seeCut, bill: billCut},
		{name: "bad_param_accepted", class: "", short: "unknown parameters and values out of range are accepted", see: seeNothingBad},

		// How it ends.
		{name: "finish_lies", class: "20", short: "the finish of a tool call says that it is an answer; chat and messages", end: endFinish},
		{name: "delta_without_index", class: "21", short: "streamed parts of tool calls lack index and id", end: endNoIndex},
		{name: "reasoning_eats", class: "24", short: "reasoning uses all tokens: no answer, and the finish says length", end: endReasoning},
		{name: "cut_says_stop", class: "26", short: "the answer ends in the middle and the finish says that it is complete", end: endCut},
		{name: "refuses", class: "28", short: "a refusal of something harmless, in its proper shape", see: seeRefusal},
		{name: "refusal_as_text", class: "28", short: "a refusal as an ordinary answer", see: seeRefusalText},
		{name: "filtered", class: "28", short: "no answer, and the finish says content filter", end: endFiltered},

		// The answer around it.
		{name: "empty_choices", class: "29", short: "200 without any choice, output or content", end: endEmpty},
		{name: "error_200", class: "29", short: "200 with the body of an error", end: endError},
		{name: "stream_ignored", class: "", short: "a stream that was asked for comes as one whole answer", see: seeNoStream},
		{name: "content_blocks", class: "", short: "the content of a chat completion as a list of parts", end: endBlocks},
		{name: "id_repeated", class: "", short: "the same response id whenever a request is repeated, as a cache has it", end: endID},
		{name: "model_swapped", class: "", short: "another model answers, and says so: NAME-lite", end: endModel},
		{name: "fingerprint_changed", class: "", short: "another system_fingerprint; chat completions", end: endFingerprint},
		{name: "count_drifts", class: "", short: "the prompt is billed a tenth above its count", bill: billDrift},

		// Refusals of what others accept: 400.
		{name: "max_tokens_refused", class: "9", short: "max_tokens: use max_completion_tokens", refuse: refuseMaxTokens},
		{name: "temperature_fixed", class: "10", short: "any temperature but 1", refuse: refuseTemperature},
		{name: "stop_refused", class: "11", short: "stop sequences", refuse: refuseStop},
		{name: "param_unsupported", class: "12", argument: ArgParameter, short: "the parameter named", refuse: refuseParam},
		{name: "role_developer_refused", class: "13", short: "the role developer", refuse: refuseDeveloper},
		{name: "late_system_refused", class: "14", short: "a system message that is not the first of all, or a second one", refuse: refuseLateSystem},
		{name: "system_refused", class: "15", short: "any system message", refuse: refuseSystem},
		{name: "tool_call_id_refused", class: "22", short: "ids of tool calls that are not 9 letters or digits; its own are", refuse: refuseCallID},
		{name: "null_content_refused", class: "23", short: "content null beside tool calls", refuse: refuseNullContent},
		{name: "empty_content_refused", class: "23", short: "content \"\" beside tool calls", refuse: refuseEmptyContent},
		{name: "schema_subset_refused", class: "30", short: "schemas with oneOf, uniqueItems, exclusiveMinimum, exclusiveMaximum or lists of types", refuse: refuseSchema},
		{name: "prefill_refused", class: "31", short: "a conversation that ends with a message of the assistant", refuse: refusePrefill},
	}
}

// value is a JSON value on its way out of a thought.
type value struct {
	*schema.Value
	t    *thought
	args bool // it is the arguments of a tool call
}
