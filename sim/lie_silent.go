package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// What the model sees, or means to do.

func seeUpgrade(t *thought, arg string) bool {
	n, _ := strconv.Atoi(arg) // has been checked
	t.upgraded = t.before >= n
	return false // told where it shows
}

func seeNoSystem(t *thought, _ string) bool {
	return t.q.keepSystem(func(int, turn) bool { return false })
}

func seeNoDeveloper(t *thought, _ string) bool {
	return t.q.keepSystem(func(_ int, s turn) bool { return s.role != "developer" })
}

func seeFirstSystem(t *thought, _ string) bool {
	return t.q.keepSystem(func(i int, _ turn) bool { return i == 0 })
}

// keepSystem drops the other system messages, and reports whether there were any.
func (q *question) keepSystem(keep func(int, turn) bool) bool {
	var kept []turn
	for i, s := range q.system {
		if keep(i, s) {
			kept = append(kept, s)
		}
	}
	dropped := len(kept) < len(q.system)
	q.system = kept
	return dropped
}

func seeNoTools(t *thought, _ string) bool {
	dropped := len(t.q.tools) > 0
	t.q.tools, t.q.choice = nil, "none"
	return dropped
}

func seeNoStop(t *thought, _ string) bool {
	t.deaf = true
	return false // told where it shows
}

func seeNoStream(t *thought, _ string) bool {
	asked := t.q.stream
	t.q.stream = false
	return asked
}

func seeNothingBad(t *thought, _ string) bool {
	t.trusting = true
	return false // told where it shows
}

func seeRefusal(t *thought, _ string) bool {
	t.refuses = true
	return !t.q.isRefused()
}

func seeRefusalText(t *thought, _ string) bool {
	t.refusesText = true
	return true
}

// seeCut drops the beginning of what is longer than the window leaves room for: a
// quarter is the answer's, or what it may have at most.
func seeCut(t *thought, arg string) bool {
	window, _ := strconv.Atoi(arg) // has been checked
	reserve := window / 4
	if t.q.limit > 0 {
		reserve = min(t.q.limit, window/2)
	}
	over := t.q.count() - (window - reserve)
	if over <= 0 {
		return false
	}
	t.cutTo = window
	for _, turns := range [][]turn{t.q.system, t.q.turns} {
		for i := range turns {
			gone := min(4*over, len(turns[i].text))
			before := tokenCount(turns[i].text)
			turns[i].text = strings.ToValidUTF8(turns[i].text[gone:], "")
			over = max(over-(before-tokenCount(turns[i].text)), 0)
		}
	}
	return true
}

func billCut(t *thought, _ string) bool {
	if t.cutTo == 0 {
		return false
	}
	t.in = max(t.cutTo-t.out, 1)
	return true
}

func billDrift(t *thought, _ string) bool {
	t.in += t.in/10 + 1
	return true
}

func billEmpty(t *thought, _ string) bool {
	if !slices.Contains(t.told, "cut_to_empty") {
		return false
	}
	t.out = t.q.limit
	return true
}

// The JSON value.

// answersJSON reports whether a value is the answer itself, and not arguments.
func (v *value) answersJSON() bool { return !v.args }

func shapeIgnored(v *value) bool {
	if !v.answersJSON() {
		return false
	}
	v.Value = schema.Obj("verdict", schema.Str("fine"))
	v.Set("suggestion", schema.Str("none"))
	return true
}

func shapeWrap(v *value) bool     { return v.inside("parameters") }
func shapeEnvelope(v *value) bool { return v.inside("json_tool_call") }

func (v *value) inside(name string) bool {
	if !v.answersJSON() {
		return false
	}
	v.Value = schema.Obj(name, v.Value)
	return true
}

func shapeStringly(v *value) bool {
	changed := false
	v.Walk(func(at *schema.Value) bool {
		switch at.Kind {
		case schema.Bool:
			at.Text = strings.ToUpper(at.Text[:1]) + at.Text[1:]
			fallthrough
		case schema.Number:
			at.Kind, changed = schema.String, true
		default:
		}
		return true
	})
	return changed
}

func shapeEnum(v *value) bool {
	changed := false
	v.Walk(func(at *schema.Value) bool {
		choices := texts(at.By.Get("enum"))
		if at.Kind != schema.String || at.Text == "" || len(choices) == 0 {
			return true
		}
		drifted := strings.ToUpper(at.Text[:1]) + at.Text[1:]
		if slices.Contains(choices, drifted) {
			drifted = at.Text + "-ish"
		}
		at.Text, changed = drifted, true
		return false
	})
	return changed
}

func shapeBounds(v *value) bool {
	changed := false
	v.Walk(func(at *schema.Value) bool {
		changed = exceed(at)
		return !changed
	})
	return changed
}

// exceed puts a value just beyond the first bound that it has.
func exceed(v *schema.Value) bool {
	if n, found := numberOf(v.By.Get("maxLength")); found && v.Kind == schema.String {
		v.Text += strings.Repeat(".", max(int(n)+1-len([]rune(v.Text)), 0))
		return true
	}
	if n, found := numberOf(v.By.Get("maximum")); found && v.Kind == schema.Number {
		v.Text = strconv.FormatFloat(n+1, 'f', -1, 64)
		return true
	}
	if n, found := numberOf(v.By.Get("minimum")); found && v.Kind == schema.Number {
		v.Text = strconv.FormatFloat(n-1, 'f', -1, 64)
		return true
	}
	if n, found := numberOf(v.By.Get("maxItems")); found && v.Kind == schema.Array && len(v.Items) > 0 {
		for len(v.Items) <= int(n) {
			v.Items = append(v.Items, v.Items[len(v.Items)-1])
		}
		return true
	}
	return false
}

func shapeFloats(v *value) bool {
	changed := false
	v.Walk(func(at *schema.Value) bool {
		if at.Kind == schema.Number && slices.Contains(texts(at.By.Get("type")), "integer") && !strings.ContainsAny(at.Text, ".eE") {
			at.Text, changed = at.Text+".0", true
		}
		return true
	})
	return changed
}

func shapeEscapes(v *value) bool {
	changed := false
	v.Walk(func(at *schema.Value) bool {
		if at.Kind == schema.String {
			before := at.Text
			at.Text = corrupt(at.Text)
			changed = changed || at.Text != before
		}
		return true
	})
	return changed
}

// corrupt writes a NUL and a code in place of letters beyond ASCII.
func corrupt(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\x00%02x", r)
		}
	}
	return b.String()
}

func shapeEmpty(v *value) bool {
	changed := false
	if v.t.q.limit == 0 || !v.answersJSON() {
		return false
	}
	v.Walk(func(at *schema.Value) bool {
		switch {
		case at.By.Get("enum") != nil || at.By.Get("const") != nil:
		case at.Kind == schema.Array && len(at.Items) > 0:
			at.Items, changed = nil, true
		case at.Kind == schema.String && at.Text != "":
			at.Text, changed = "", true
		}
		return true
	})
	return changed
}

func shapeDuplicate(v *value) bool {
	if v.Kind != schema.Object || len(v.Names) == 0 {
		return false
	}
	v.Names = slices.Insert(v.Names, 0, v.Names[0])
	v.Items = slices.Insert(v.Items, 0, &schema.Value{})
	return true
}

func shapeDouble(v *value) bool {
	nested := false
	for i, item := range v.Items {
		if item.Kind == schema.Object || item.Kind == schema.Array {
			v.Items[i], nested = schema.Str(item.String()), true
		}
	}
	if !nested {
		v.Value = schema.Str(v.String())
	}
	return true
}

// The text.

// wordFreeText is what is said where the schema never arrived: nothing that only the
// schema tells may be in it.
func wordFreeText(t *thought) bool {
	if !t.isJSON {
		return false
	}
	t.text, t.isJSON = "Here is my answer. "+t.aloud, false
	return true
}

func wordUpgraded(t *thought) bool { return t.upgraded && wordFreeText(t) }

func wordBrackets(t *thought) bool { return t.q.surface == onResponses && t.around("", "]}]}]}") }
func wordTrailing(t *thought) bool { return t.around("", "\n{\"done\":true}") }
func wordFence(t *thought) bool    { return t.around("```json\n", "\n```") }

func wordProse(t *thought) bool {
	return t.around("Sure! Here is the result:\n", "\nLet me know if you need anything else.")
}

// around writes something before and after the JSON.
func (t *thought) around(before, after string) bool {
	if t.isJSON {
		t.text = before + t.text + after
	}
	return t.isJSON
}

func wordThink(t *thought) bool {
	if t.text == "" {
		return false
	}
	t.text = "<think>They want an answer to that.</think>" + t.text
	return true
}

func wordEscapes(t *thought) bool {
	before := t.text
	if !t.isJSON {
		t.text = corrupt(t.text)
	}
	return t.text != before
}

// The end.

func endFinish(t *thought) bool {
	if t.finish != finishCalls || t.q.surface == onResponses {
		return false
	}
	t.finish = finishDone
	return true
}

func endNoIndex(t *thought) bool {
	t.noIndex = t.q.stream && len(t.calls) > 0
	return t.noIndex
}

// thinkingTokens is what reasoning uses where nothing limits it.
const thinkingTokens = 1024

func endReasoning(t *thought) bool {
	t.text, t.refusal, t.calls, t.isJSON, t.finish = "", "", nil, false, finishLength
	t.out = thinkingTokens
	if t.q.limit > 0 {
		t.out = t.q.limit
	}
	t.reasoning = t.out
	return true
}

func endCut(t *thought) bool {
	whole := finishDone
	if len(t.calls) > 0 {
		whole = finishCalls
	}
	if t.finish == finishLength {
		t.finish = whole
		return true
	}
	if t.finish == finishRefusal || len(t.text) < 2 && len(t.calls) == 0 {
		return false
	}
	t.text = cutBytes(t.text, len(t.text)/2)
	for i, c := range t.calls {
		t.calls[i].text = cutBytes(c.text, len(c.text)/2)
	}
	t.count()
	return true
}

func endFiltered(t *thought) bool {
	t.text, t.refusal, t.calls, t.isJSON, t.finish = "", "", nil, false, finishFilter
	t.count()
	return true
}

func endEmpty(t *thought) bool { t.noChoices = true; return true }
func endError(t *thought) bool { t.isError = true; return true }
func endID(t *thought) bool    { t.repeatID = true; return true }
func endModel(t *thought) bool { t.model += "-lite"; return true }

func endBlocks(t *thought) bool {
	t.blocks = t.q.surface == onChat && t.finish != finishRefusal && len(t.calls) == 0
	return t.blocks
}

func endFingerprint(t *thought) bool {
	t.fingerprint = fingerprintOf(t.q.model + " after an upgrade")
	return t.q.surface == onChat
}
