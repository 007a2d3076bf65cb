package contract

import "fmt"

// Class names what is wrong with an output. Classes are part of what certificates
// and metrics say, and are never renamed.
type Class string

// Every class.
const (
	ClassEmpty           Class = "empty"                // nothing but white space
	ClassRefusal         Class = "refusal"              // the model says that it will not
	ClassFenced          Class = "fenced"               // JSON in a Markdown fence
	ClassProse           Class = "prose"                // JSON with text before it
	ClassReasoning       Class = "reasoning_in_content" // thoughts before the answer
	ClassTrailing        Class = "trailing_data"        // something after the JSON
	ClassCut             Class = "cut"                  // it ends too soon
	ClassNotJSON         Class = "not_json"             // no JSON, and none of the above
	ClassWrapped         Class = "wrapped_in_key"       // the value is inside one more member
	ClassDoubleEncoded   Class = "double_encoded"       // JSON inside a JSON string
	ClassErrorBody       Class = "error_body"           // an error where an output belongs
	ClassStringlyTyped   Class = "stringly_typed"       // "5" for 5, "True" for true
	ClassEnum            Class = "enum"                 // a word outside the set
	ClassSchema          Class = "schema"               // anything else the schema refuses
	ClassDuplicateName   Class = "duplicate_name"       // the same member twice
	ClassInteger         Class = "integer_literal"      // 1200.0, 1e3, or beyond 64 bits
	ClassNumberRange     Class = "number_range"         // not a float64
	ClassNotUTF8         Class = "not_utf8"             // bad UTF-8 or a lone surrogate
	ClassControl         Class = "control_character"    // in a text, escaped or not
	ClassTooLarge        Class = "too_large"            // more than [MaxOutputBytes]
	ClassTooDeep         Class = "too_deep"             // nested deeper than anybody reads
	ClassInvariant       Class = "invariant"            // an invariant is false
	ClassExpectation     Class = "expectation"          // an expectation is false
	ClassUndecidable     Class = "undecidable"          // an assertion could not be evaluated
	ClassFinish          Class = "finish"               // it ended in a way the contract refuses
	ClassUnexpectedCall  Class = "unexpected_tool_call" // tool calls beside the content
	ClassContextCut      Class = "context_cut"          // the tokens fill a window exactly
	ClassTooManyFindings Class = "too_many"             // more violations than are listed
)

// Classes lists every class.
func Classes() []Class {
	return []Class{
		ClassEmpty, ClassRefusal, ClassFenced, ClassProse, ClassReasoning, ClassTrailing, ClassCut, ClassNotJSON,
		ClassWrapped, ClassDoubleEncoded, ClassErrorBody, ClassStringlyTyped, ClassEnum, ClassSchema,
		ClassDuplicateName, ClassInteger, ClassNumberRange, ClassNotUTF8, ClassControl, ClassTooLarge, ClassTooDeep,
		ClassInvariant, ClassExpectation, ClassUndecidable, ClassFinish, ClassUnexpectedCall, ClassContextCut,
		ClassTooManyFindings,
	}
}

// Violation is one way in which an output breaks its contract. It shows nothing of
// the output's values.
type Violation struct {
	Class Class `json:"class"`
	// Path is a JSON pointer into the output. Empty: the whole of it.
	Path string `json:"path,omitempty"`
	// Keyword of the schema that refuses it, as in maxLength. Empty: none does.
	Keyword string `json:"keyword,omitempty"`
	// Assertion is the id of the invariant or expectation. Empty: none is concerned.
	Assertion string `json:"assertion,omitempty"`
	// Message says it in words.
	Message string `json:"message"`
}

// String returns the violation as one line.
func (v Violation) String() string {
	where := v.Path
	if v.Assertion != "" {
		where = v.Assertion
	}
	if where == "" {
		return fmt.Sprintf("%s: %s", v.Class, v.Message)
	}
	return fmt.Sprintf("%s at %s: %s", v.Class, where, v.Message)
}

// maxViolations bounds what is listed of one output.
const maxViolations = 32

// bounded cuts a list that nobody would read, and says so.
func bounded(found []Violation) []Violation {
	if len(found) <= maxViolations {
		return found
	}
	more := len(found) - maxViolations
	return append(found[:maxViolations:maxViolations], Violation{Class: ClassTooManyFindings, Message: fmt.Sprintf("and %d more", more)})
}

// Finish is how an output ended, in neutral words.
type Finish string

// The ways to end.
const (
	FinishComplete Finish = "complete"
	FinishLength   Finish = "length"
	FinishFilter   Finish = "filter"
	FinishRefusal  Finish = "refusal"
	FinishTool     Finish = "tool"
)

// Answer is an output with what the provider said beside it.
type Answer struct {
	// Raw is the whole content, or the arguments of the tool call, byte for byte.
	Raw []byte
	// Finish is how it ended. Empty: nobody said, and it is not judged.
	Finish Finish
	// Refused is true when the provider itself called it a refusal.
	Refused bool
	// ToolCalls beside the content. They are a violation unless the media is tool_call.
	ToolCalls int
	// InputTokens and OutputTokens as the provider counted them. Zero: not told.
	InputTokens, OutputTokens int
}
