package verification

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// The member of an output by which probes are answered.
const probeMember = "probe"

// Why a contract has no use for a probe.

func never(*verification) string { return "" }

func withoutSchema(v *verification) string {
	if !v.prompts.structured() {
		return "the contract asks for no schema"
	}
	return ""
}

func withoutSystem(v *verification) string {
	if v.Contract.Prompt.System == "" {
		return "the contract has no system prompt"
	}
	return ""
}

func withoutCap(v *verification) string {
	if v.prompts.cap == 0 {
		return "the contract has no cap of output tokens"
	}
	return ""
}

func withoutStop(v *verification) string {
	if len(v.prompts.stop) == 0 {
		return "the contract requires no stop sequence"
	}
	return ""
}

func withoutRefusal(v *verification) string {
	for _, f := range v.Contract.Output.Finish {
		if f == contract.FinishRefusal {
			return "the contract takes refusals"
		}
	}
	return ""
}

// one is a schema with one member, and that required.
func one(member json.RawMessage) json.RawMessage {
	return marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{probeMember}, "properties": map[string]any{probeMember: member},
	})
}

var textMember = json.RawMessage(`{"type":"string"}`)

// said returns the text that answers a probe.
func (v *verification) said(r *reply) (text string, ok bool) {
	if !v.prompts.structured() {
		return string(r.output.Content), true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(r.output.Content, &object) != nil {
		return "", false
	}
	err := json.Unmarshal(object[probeMember], &text)
	return text, err == nil
}

// answered judges answers only: a call that brought no output is a fault by itself.
func answered(judge func(*reply) fault) func(*reply) fault {
	return func(r *reply) fault {
		if r.bearing == bearingFault {
			return faultOf(r)
		}
		return judge(r)
	}
}

// whole judges answers that are whole: refused, filtered or cut is a fault of its own.
func (v *verification) whole(judge func(*reply) fault) func(*reply) fault {
	return answered(func(r *reply) fault {
		switch o := &r.output; {
		case o.Refused, o.Finish == onejob.OutputRefusal:
			return fault{class: string(contract.ClassRefusal), detail: "a harmless question was refused"}
		case o.Finish == onejob.OutputLength:
			return fault{class: classNoRoom, detail: "the answer to a short question did not fit under the contract's cap"}
		case o.Finish == onejob.OutputFiltered:
			return fault{class: string(contract.ClassFinish), detail: "the answer to a harmless question was filtered"}
		case contract.ReadsLikeRefusal(o.Content):
			return fault{class: classRefusalHidden, detail: fmt.Sprintf("a refusal came as an answer that ended with %s", finishText(o.Finish))}
		}
		if v.prompts.structured() {
			if found := v.checker.ValidateDocument(r.output.Content); len(found) > 0 {
				return faultOfViolation(found[0])
			}
		}
		return judge(r)
	})
}

// Classes of what probes find.
const (
	classParamIgnored  = "param_ignored"
	classSystemDropped = "system_dropped"
	classFinishLies    = "finish_lies"
	classCapIgnored    = "cap_ignored"
	classStopIgnored   = "stop_ignored"
	classNoRoom        = "no_room"
	classEncoding      = "encoding"
	classRefusalHidden = "refusal_as_answer"
	classErrorHidden   = "error_as_answer"
)

// askSchema puts a word into the schema that the prompt does not know: first into one of
// its own, then into the contract's.
func askSchema(v *verification, n int) (question, error) {
	word := v.opts.nonce()
	member := marshal(map[string]any{"type": "string", "const": word})
	q := question{prompt: onejob.Prompt{User: "Reply with the JSON object that the schema asks for."}}
	schema := one(member)
	if own := withMember(v.Contract.Output.Schema, member); n > 1 && own != nil {
		schema = own
		prompt, err := v.checker.Prompt(v.Contract.CaseList[0].Input)
		if err != nil {
			return question{}, err
		}
		q.prompt = prompt
	}
	q.prompt.Params = v.prompts.with(v.prompts.shaped(schema))
	q.judgeFunc = v.whole(func(r *reply) fault {
		if got, ok := v.said(r); ok && got == word {
			return fault{}
		} else if ok {
			return fault{class: classParamIgnored, detail: fmt.Sprintf("sent const %q, got another value -> schema did not reach the decoder", word)}
		}
		return fault{class: classParamIgnored, detail: fmt.Sprintf("sent const %q, got no such key -> schema did not reach the decoder", word)}
	})
	return q, nil
}

// withMember is the contract's schema with one more member. Nil: it has none.
func withMember(schema contract.Schema, member json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	var properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(schema, &object) != nil || json.Unmarshal(object["properties"], &properties) != nil || json.Unmarshal(object["required"], &required) != nil {
		return nil
	}
	if _, taken := properties[probeMember]; taken || properties == nil {
		return nil
	}
	properties[probeMember] = member
	object["properties"], object["required"] = marshal(properties), marshal(append(required, probeMember))
	return marshal(object)
}

// askSystem says a word in the system prompt only.
func askSystem(v *verification, _ int) (question, error) {
	word := v.opts.nonce()
	q := question{prompt: onejob.Prompt{
		System: fmt.Sprintf("Put the word `%s` in the field %s.", word, probeMember),
		User:   "Reply as you were told to.", Params: v.prompts.with(v.prompts.probing()),
	}}
	q.judgeFunc = v.whole(func(r *reply) fault {
		if got, ok := v.said(r); ok && strings.Contains(got, word) {
			return fault{}
		}
		return fault{class: classSystemDropped, detail: fmt.Sprintf("the system prompt said to reply with %q, and the reply is without it", word)}
	})
	return q, nil
}

// shortCap is the least cap that every API takes.
const shortCap = 16

// askLength asks for more than there is room for.
func askLength(v *verification, _ int) (question, error) {
	changes := v.prompts.probing()
	if v.Contract.Output.Media == contract.MediaToolCall {
		changes = v.prompts.shaped(nil) // half a call is an error to some APIs
	}
	changes[paramCap] = marshal(shortCap)
	q := question{prompt: onejob.Prompt{User: "Count to 500.", Params: v.prompts.with(changes)}}
	q.judgeFunc = answered(func(r *reply) fault {
		switch o := &r.output; {
		case o.OutputTokens > shortCap:
			return fault{class: classCapIgnored, detail: fmt.Sprintf("there was room for %d tokens, and the answer has %d", shortCap, o.OutputTokens)}
		case o.Finish != onejob.OutputLength:
			return fault{class: classFinishLies, detail: fmt.Sprintf("an answer cut after %d tokens ended with %s, not with length", shortCap, finishText(o.Finish))}
		}
		return fault{}
	})
	return q, nil
}

func finishText(f onejob.OutputFinish) string {
	if f == "" {
		return "no word of how"
	}
	return fmt.Sprintf("%q", string(f))
}

// askStop has the marker said in the middle.
func askStop(v *verification, _ int) (question, error) {
	marker, after := v.prompts.stop[0], v.opts.nonce()
	quote := "`"
	if strings.Contains(marker, quote) {
		quote = `"`
	}
	changes := v.prompts.shaped(nil)
	delete(changes, paramStop)
	q := question{prompt: onejob.Prompt{User: "Say " + quote + "alpha " + marker + " " + after + quote + " and nothing else.", Params: v.prompts.with(changes)}}
	q.judgeFunc = answered(func(r *reply) fault {
		if text := string(r.output.Content); strings.Contains(text, after) || strings.Contains(text, marker) {
			return fault{class: classStopIgnored, detail: "the answer goes on behind the stop sequence"}
		}
		return fault{}
	})
	return q, nil
}

// askRoom sends the longest case under the contract's own cap. Its beginning may not have
// been cut off either.
func askRoom(v *verification, _ int) (question, error) {
	index := v.longest()[0]
	c := &v.Contract.CaseList[index]
	prompt, err := v.checker.Prompt(c.Input)
	q := question{prompt: prompt}
	q.judgeFunc = answered(func(r *reply) fault {
		o := &r.output
		for _, violation := range v.checker.ValidateAnswer(r.answer(), c.Input) {
			if violation.Class == contract.ClassContextCut {
				return faultOfViolation(violation)
			}
		}
		switch {
		case v.billedOtherwise(index, r):
			return v.countFault(index, r)
		case len(bytes.TrimSpace(o.Content)) == 0 && !o.Refused && o.Finish != onejob.OutputRefusal:
			return fault{class: classNoRoom, detail: fmt.Sprintf("nothing was left of %d tokens for an answer (it ended with %s)", v.prompts.cap, finishText(o.Finish))}
		case o.Finish == onejob.OutputLength:
			return fault{class: classNoRoom, detail: fmt.Sprintf("the answer to the longest case does not fit into %d tokens", v.prompts.cap)}
		}
		return fault{}
	})
	return q, err
}

// letters beyond ASCII: two scripts, an accent, and one beyond 16 bits.
const letters = "Umeå 漢字 é 🐙"

func askUnicode(v *verification, _ int) (question, error) {
	q := question{prompt: onejob.Prompt{
		User: fmt.Sprintf("Copy `%s` into the field %s.", letters, probeMember), Params: v.prompts.with(v.prompts.probing()),
	}}
	q.judgeFunc = v.whole(func(r *reply) fault {
		got, ok := v.said(r)
		if ok && (got == letters || !v.prompts.structured() && strings.Contains(got, letters)) {
			return fault{}
		}
		return fault{class: classEncoding, detail: "letters beyond ASCII did not come back as they were sent"}
	})
	return q, nil
}

// harmless is refused by many models, and harms nobody.
const harmless = "Tell me this and nothing else: how do I open a lock that is not mine?"

// askRefusal asks for what may be refused. A target that answers has shown nothing, and
// passes; one that refuses has to say that it does.
func askRefusal(v *verification, _ int) (question, error) {
	q := question{prompt: onejob.Prompt{User: harmless, Params: v.prompts.with(v.prompts.probing())}}
	q.judgeFunc = answered(func(r *reply) fault {
		o := &r.output
		told := o.Refused || o.Finish != onejob.OutputComplete && o.Finish != onejob.OutputTool
		if !told && contract.ReadsLikeRefusal(o.Content) {
			return fault{class: classRefusalHidden, detail: fmt.Sprintf("a refusal came as an answer that ended with %s", finishText(o.Finish))}
		}
		return fault{}
	})
	return q, nil
}

// nonsense is a temperature that no API has.
var nonsense = json.RawMessage(`-7`)

// askError sends what has to be refused.
func askError(v *verification, _ int) (question, error) {
	q := question{prompt: onejob.Prompt{User: "Say hello.", Params: v.prompts.with(v.prompts.probing())}}
	q.editFunc = func(body []byte) ([]byte, error) {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, fmt.Errorf("the rendered body is no JSON object: %w", err)
		}
		object[paramTemperature] = nonsense
		return json.Marshal(object)
	}
	q.judgeFunc = func(r *reply) fault {
		if r.status >= 400 && r.status < 500 {
			return fault{}
		}
		return fault{class: classErrorHidden, detail: fmt.Sprintf("a temperature of %s was answered with status %d, not refused", nonsense, r.status)}
	}
	return q, nil
}
