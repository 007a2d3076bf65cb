package verification

import "github.com/onejob-dev/onejob/contract"

// hints say what a class of fault mostly comes from.
var hints = map[string]string{
	classParamIgnored:   "gateway accepted the schema and ignored it, or it has another name there: see the target's map",
	classSystemDropped:  "a layer on the way drops the system prompt, or the role by which it is sent",
	classFinishLies:     "whoever relies on the finish takes half an answer for a whole one",
	classCapIgnored:     "the cap has another name there: see the target's map",
	classStopIgnored:    "the stop sequences are not passed on",
	classNoRoom:         "reasoning takes the tokens of the answer: raise max_output_tokens, or lower reasoning_effort",
	classEncoding:       "escapes are broken on the way; the JSON stays valid",
	classRefusalHidden:  "refusals pass for outputs there",
	classErrorHidden:    "errors pass for answers there, and may be cached as such",
	classRequestRefused: "the target refuses the request as it is rendered: see the parameter that it names, and the target's map",
	classCached:         "a cache on the way answers: a certificate would be about what it once said",
	classAnswerShape:    "the answer has not the shape that this API promises",
	classCount:          "the prompt is changed or cut after it was counted, or another model counts",

	string(contract.ClassContextCut): "the beginning of long prompts is cut off in silence",
	string(contract.ClassFenced):     "the schema is not enforced while decoding",
	string(contract.ClassProse):      "the schema is not enforced while decoding",
	string(contract.ClassWrapped):    "a layer on the way answers by a tool of its own",
}

func hintOf(class string) string { return hints[class] }
