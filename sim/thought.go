package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// finish is how an answer ends.
type finish string

const (
	finishDone    finish = "done"
	finishStop    finish = "stop sequence"
	finishLength  finish = "length"
	finishCalls   finish = "tool calls"
	finishRefusal finish = "refusal"
	finishFilter  finish = "filter"
)

// thought is one answer on its way, from what a model sees to what is counted.
type thought struct {
	q      *question
	mind   Mind
	digest [sha256.Size]byte // of the request
	before int               // answers of the model so far
	nth    int               // repeats of the request so far; of flaky minds
	plans  []plan            // the lies that befall this request
	told   []string          // those that changed something
	bad    *failure          // refused; nil: there is an answer

	// What the model means to do.
	json        *schema.Value // nil: words
	aloud       string        // what it would say in words
	deaf        bool          // to stop sequences
	upgraded    bool
	refuses     bool
	refusesText bool
	trusting    bool // of parameters
	cutTo       int  // tokens; 0: nothing is cut

	// The answer.
	text    string
	isJSON  bool // the text is the JSON that was asked for
	refusal string
	calls   []toolCall
	finish  finish
	stopAt  string

	in, out, reasoning int

	// The answer around it.
	model, fingerprint                            string
	repeatID, noChoices, isError, blocks, noIndex bool
}

// think makes up the answer of a mind.
func think(q *question, mind Mind, body []byte, before, nth int) *thought {
	t := &thought{q: q, mind: mind, digest: sha256.Sum256(body), before: before, nth: nth, finish: finishDone}
	t.model, t.fingerprint = q.model, fingerprintOf(q.model)
	t.plan()
	if t.bad = t.objection(); t.bad != nil {
		return t
	}
	t.mean()
	if t.json != nil {
		t.text, t.isJSON = t.shaped(t.json, false).String(), true
	}
	for i := range t.calls {
		t.calls[i].text = t.shaped(t.calls[i].args, true).String()
	}
	t.each(func(k lieKind, _ string) bool { return k.word != nil && k.word(t) })
	t.limit()
	t.each(func(k lieKind, _ string) bool { return k.end != nil && k.end(t) })
	t.in = t.q.count()
	t.each(func(k lieKind, arg string) bool { return k.bill != nil && k.bill(t, arg) })
	return t
}

// plan is one lie that is to be told.
type plan struct {
	kind lieKind
	arg  string
}

// plan finds the lies that befall this request, those marked late after the others.
func (t *thought) plan() {
	kinds := lies()
	for _, late := range []bool{false, true} {
		for _, k := range kinds {
			for _, l := range t.mind.Lies {
				if l.Fault == k.name && k.late == late && t.befalls(l) {
					t.plans = append(t.plans, plan{k, cmp.Or(l.Argument, k.fallback)})
				}
			}
		}
	}
}

// each lets them act, and remembers which changed something.
func (t *thought) each(act func(k lieKind, arg string) bool) {
	for _, p := range t.plans {
		if act(p.kind, p.arg) {
			t.tell(p.kind.name)
		}
	}
}

func (t *thought) tell(name string) {
	if !slices.Contains(t.told, name) {
		t.told = append(t.told, name)
	}
}

// befalls rolls for a lie: the same for the same seed, request and repeat.
func (t *thought) befalls(l Lie) bool {
	if l.Rate == 0 || l.Rate == 1 {
		return true
	}
	h := sha256.New()
	_ = binary.Write(h, binary.BigEndian, []uint64{t.mind.Seed, uint64(t.nth)}) // a hash takes all
	_, _ = h.Write([]byte(l.Fault + "\x00" + l.Argument + "\x00"))
	_, _ = h.Write(t.digest[:])
	const digits = 53 // of a float64
	return float64(binary.BigEndian.Uint64(h.Sum(nil))>>(64-digits))/(1<<digits) < l.Rate
}

// objection is why there is no answer. Nil: there is one.
func (t *thought) objection() *failure {
	t.each(func(k lieKind, arg string) bool { return k.see != nil && k.see(t, arg) })
	if bad := t.q.disorder(); bad != nil {
		return bad
	}
	if bad := t.q.complaint(); bad != nil && !t.trusting {
		return bad
	} else if bad != nil {
		t.tell("bad_param_accepted")
	}
	if bad := t.q.tooLong(t.mind.window()); bad != nil {
		return bad
	}
	var bad *failure
	t.each(func(k lieKind, arg string) bool {
		if k.refuse == nil || bad != nil {
			return false
		}
		bad = k.refuse(t.q, arg)
		return bad != nil
	})
	return bad
}

// mean decides what to answer: a refusal, a call, a JSON value or words.
func (t *thought) mean() {
	r := read(t.q, words(t.q.last()))
	t.aloud = r.aloud()
	switch i := t.q.chosenTool(); {
	case t.refusesText:
		t.text = "I cannot do that."
	case t.refuses || t.q.isRefused():
		t.refusal, t.finish = refusal, finishRefusal
	case i >= 0:
		args, _ := schema.Write(t.q.tools[i].schema, r) // has been tried
		t.calls, t.finish = []toolCall{{id: t.callID(), name: t.q.tools[i].name, args: args}}, finishCalls
	case t.q.schema != nil:
		t.json = t.made(r)
	case t.q.jsonOnly:
		t.json = loosely(r)
	default:
		t.text = t.aloud
	}
}

// made is the JSON value that was asked for.
func (t *thought) made(r *reading) *schema.Value {
	if t.mind.AnswerFunc != nil {
		if v, err := schema.Parse([]byte(t.mind.AnswerFunc(t.q.public()))); err == nil {
			schema.Attach(v, t.q.schema)
			return v
		}
	}
	v, err := schema.Write(t.q.schema, r)
	if err != nil { // it could be met with another input
		return schema.Obj("error", schema.Str(err.Error()))
	}
	return v
}

// loosely is a JSON object of no particular shape.
func loosely(r *reading) *schema.Value {
	v := &schema.Value{Kind: schema.Object}
	for _, name := range slices.Sorted(maps.Keys(r.puts)) {
		v.Set(name, schema.Str(r.puts[name]))
	}
	v.Set("answer", schema.Str(r.Words()))
	return v
}

// aloud is what a mind says in words.
func (r *reading) aloud() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.puts)) {
		fmt.Fprintf(&b, "%s: %s\n", name, r.puts[name])
	}
	return b.String() + r.words
}

// isRefused reports whether any message has [RefusedPhrase] in it.
func (q *question) isRefused() bool {
	return slices.ContainsFunc(slices.Concat(q.system, q.turns), func(t turn) bool {
		return t.role != "assistant" && strings.Contains(strings.ToLower(t.text), strings.ToLower(RefusedPhrase))
	})
}

// shaped lets the lies about JSON at a value.
func (t *thought) shaped(v *schema.Value, args bool) *schema.Value {
	made := &value{Value: v, t: t, args: args}
	t.each(func(k lieKind, _ string) bool { return k.shape != nil && k.shape(made) })
	return made.Value
}

// callID names a call: the same for the same request, and as the target asks.
func (t *thought) callID() string {
	id := hex.EncodeToString(t.digest[:])
	for _, l := range t.mind.Lies {
		if l.Fault == "tool_call_id_refused" {
			return id[:9]
		}
	}
	if t.q.surface == onMessages {
		return "toolu_01" + id[:22]
	}
	return "call_" + id[:24]
}

// limit ends the answer at a stop sequence, or where there is no more room.
func (t *thought) limit() {
	t.text = strings.TrimPrefix(t.text, t.q.prefill())
	t.stop()
	room := t.mind.window() - t.q.count()
	if t.q.limit > 0 {
		room = min(room, t.q.limit)
	}
	t.count()
	if t.out <= room {
		return
	}
	t.out, t.finish = room, finishLength
	t.refusal = ""
	t.text = cutBytes(t.text, 4*room)
	for i, c := range t.calls {
		t.calls[i].text = cutBytes(c.text, max(4*(room-tokenCount(c.name)), 0))
	}
}

func (t *thought) stop() {
	at := -1
	for _, marker := range t.q.stop {
		if i := strings.Index(t.text, marker); marker != "" && i >= 0 && (at < 0 || i < at) {
			at, t.stopAt = i, marker
		}
	}
	switch {
	case at < 0:
	case t.deaf:
		t.stopAt = ""
		t.tell("stop_ignored")
	default:
		t.text, t.finish = t.text[:at], finishStop
	}
}

// count counts the answer.
func (t *thought) count() {
	t.out = tokenCount(t.text) + tokenCount(t.refusal)
	for _, c := range t.calls {
		t.out += tokenCount(c.name) + tokenCount(c.text)
	}
}

// cutBytes cuts a text to so many bytes, or a few less: no character is halved.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

func fingerprintOf(model string) string {
	sum := sha256.Sum256([]byte(model))
	return "fp_" + hex.EncodeToString(sum[:5])
}
