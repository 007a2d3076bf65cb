package contract

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/onejob-dev/onejob"
)

// checkTokens counts and reads the tokens of a prompt here.
func (k *Checker) checkTokens(r *RenderReport, t RenderTarget) {
	if t.Tokens == nil {
		k.withoutTokens(r)
		return
	}
	if k.terms.RoundTrip != "skip" {
		k.checkRoundTrip(r, t.Tokens)
	}
	actual, benign, err := promptTokens(r, t)
	if err != nil {
		r.say(RenderSpecial, VerdictFail, "the tokens cannot be read: %s", err)
		return
	}
	r.Tokens = len(actual)
	k.checkSpecial(r, t.Tokens, actual, benign)
	k.checkBeginnings(r, t, actual)
	k.checkContext(r, t.ContextTokens)
}

// withoutTokens says what nobody can tell here.
func (k *Checker) withoutTokens(r *RenderReport) {
	if k.terms.RoundTrip != "skip" {
		r.say(RenderRoundTrip, VerdictAssumed, "the target's tokenizer is not known here")
	}
	if k.terms.SpecialTokensInUntrusted != "allow" {
		r.say(RenderSpecial, VerdictAssumed, "the target's tokenizer is not known here; %s in the prompt", plural(markers(r, controlMarker), "marker"))
	}
	r.say(RenderContext, VerdictAssumed, "nobody counted here")
}

// promptTokens are those of the whole prompt, and of the same with harmless texts. Without
// a template they are those of the messages alone.
func promptTokens(r *RenderReport, t RenderTarget) (actual, benign []int, err error) {
	text := func(p onejob.Prompt) (string, error) {
		if t.ChatFunc == nil {
			return p.System + "\n" + p.User, nil
		}
		return t.ChatFunc(messagesOf(p), oneDay)
	}
	for p, to := range map[*onejob.Prompt]*[]int{&r.prompt: &actual, &r.benign: &benign} {
		whole, err := text(*p)
		if err != nil {
			return nil, nil, err
		}
		if *to, err = t.Tokens.Encode(whole); err != nil {
			return nil, nil, err
		}
	}
	return actual, benign, nil
}

// checkRoundTrip holds tokens to being the text again.
func (k *Checker) checkRoundTrip(r *RenderReport, tokens Tokens) {
	for _, text := range []string{r.prompt.System, r.prompt.User} {
		ids, err := tokens.EncodePlain(text)
		if err == nil {
			var back string
			if back, err = tokens.Decode(ids); err == nil && back != text {
				err = errors.New("another text")
			}
		}
		if err != nil {
			r.say(RenderRoundTrip, VerdictFail, "decoding what was encoded gives %s", err)
			return
		}
	}
	r.say(RenderRoundTrip, VerdictPass, "decoding what was encoded gives each message again")
}

// checkSpecial compares the control tokens of the prompt with those that it has when
// all texts in it are harmless. It does not matter which they are.
func (k *Checker) checkSpecial(r *RenderReport, tokens Tokens, actual, benign []int) {
	if k.terms.SpecialTokensInUntrusted == "allow" {
		return
	}
	more := specials(tokens, actual) - specials(tokens, benign)
	if more != 0 {
		r.say(RenderSpecial, VerdictFail, "text of the input makes %s", plural(more, "control token"))
		return
	}
	r.say(RenderSpecial, VerdictPass, "text of the input makes no control token")
}

func specials(tokens Tokens, ids []int) int {
	n := 0
	for _, id := range ids {
		if tokens.Special(id) {
			n++
		}
	}
	return n
}

func (k *Checker) checkBeginnings(r *RenderReport, t RenderTarget, ids []int) {
	begin, known := t.Tokens.Beginning()
	if k.terms.BOS == "allow" || t.ChatFunc == nil || !known {
		return
	}
	n := 0
	for _, id := range ids {
		if id == begin {
			n++
		}
	}
	r.hold(RenderBOS, n <= 1, fmt.Sprintf("the prompt begins %d times", n), "the prompt begins at most once")
}

// checkContext holds the prompt to leaving room for the answer, and for what a model
// thinks before it.
func (k *Checker) checkContext(r *RenderReport, window int) {
	reserve := max(k.terms.Context.ReserveOutputTokens, k.cap)
	most := int(math.Floor(k.terms.Context.MaxFraction * float64(window)))
	switch {
	case window <= 0:
		r.say(RenderContext, VerdictAssumed, "%d tokens; how many the target takes is not known", r.Tokens)
	case r.Tokens > most:
		r.say(RenderContext, VerdictFail, "%d tokens are more than %s of %d", r.Tokens, percent(k.terms.Context.MaxFraction), window)
	case r.Tokens+reserve > window:
		r.say(RenderContext, VerdictFail, "%d tokens leave no room for %d in %d", r.Tokens, reserve, window)
	case r.Remote:
		r.say(RenderContext, VerdictPass, "%d tokens of %d, counted by the target", r.Tokens, window)
	default:
		r.say(RenderContext, VerdictAssumed, "%d tokens of %d, counted here", r.Tokens, window)
	}
}

// CheckCount asks the target how many tokens a prompt has, and compares. It adds to
// what [Checker.CheckRender] found. An error says that the target could not be asked
// now, which shows nothing; that it cannot be asked at all is assumed, and no error.
func (k *Checker) CheckCount(ctx context.Context, t RenderTarget, r *RenderReport) error {
	remote, err := 0, errors.ErrUnsupported
	if t.Counter != nil {
		remote, err = t.Counter.CountTokens(ctx, r.Rendered.Body)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		r.say(RenderCount, VerdictAssumed, "the target cannot be asked")
		return nil
	case err != nil:
		return err
	}
	local := r.Tokens
	r.Tokens, r.Remote = remote, true
	switch whole := t.Tokens != nil && t.ChatFunc != nil; {
	case whole:
		k.compare(r, "counted here", local)
	default:
		r.say(RenderCount, VerdictPass, "%d tokens, counted by the target alone", remote)
	}
	k.checkContext(r, t.ContextTokens)
	if k.terms.SpecialTokensInUntrusted != "allow" {
		return k.checkMarkers(ctx, t, r)
	}
	return nil
}

// CheckUsage compares what an answer was billed with what was counted. Nil: there is
// nothing to compare.
func (k *Checker) CheckUsage(r *RenderReport, out onejob.Output) *RenderFinding {
	if out.InputTokens == 0 || !r.Remote {
		return nil
	}
	compared := &RenderReport{Tokens: r.Tokens}
	k.compare(compared, "billed", out.InputTokens)
	return &compared.Findings[0]
}

// compare holds another count to the target's.
func (k *Checker) compare(r *RenderReport, what string, other int) {
	tolerance := k.terms.CountTolerance.LocalVsRemote
	apart := math.Abs(float64(other-r.Tokens)) / float64(r.Tokens)
	detail := fmt.Sprintf("%d tokens by the target, %d %s: %s apart", r.Tokens, other, what, percent(apart))
	r.hold(RenderCount, apart <= tolerance, detail+", more than "+percent(tolerance), detail)
}

// barMarker is a marker long enough to tell: read as text it is several tokens.
var barMarker = regexp.MustCompile(`<[|｜][^<>|｜\s]{1,64}[|｜]>`)

// parsedMarker is by how many tokens such a marker grows at least when it is parted, if
// it was a control token before. Of seven in use, those that were text grew by 1 to 3
// tokens in o200k_base and cl100k_base, and would have grown by 4 to 13.
const parsedMarker = 4

// checkMarkers asks for the count of the same prompt, its markers parted: where they were
// control tokens it has many more. It is a guess, and only made where there are any.
func (k *Checker) checkMarkers(ctx context.Context, t RenderTarget, r *RenderReport) error {
	n := markers(r, barMarker)
	if n == 0 {
		return nil
	}
	part := func(text string) string { return barMarker.ReplaceAllStringFunc(text, parted) }
	apart := r.prompt
	apart.System, apart.User = part(apart.System), part(apart.User)
	rendered, err := t.Prompter.Render(apart)
	if err != nil {
		return err
	}
	counted, err := t.Counter.CountTokens(ctx, rendered.Body)
	if err != nil {
		return err
	}
	grown := counted - r.Tokens
	r.hold(RenderRemoteMarker, grown < parsedMarker*n,
		fmt.Sprintf("%s of the input parted, the target counts %d tokens more: it seems to read them as control tokens", plural(n, "marker"), grown),
		fmt.Sprintf("%s of the input parted, the target counts %d tokens more, as for text", plural(n, "marker"), grown))
	return nil
}

// markers counts what looks like control tokens in a prompt and not in its harmless
// form.
func markers(r *RenderReport, marker *regexp.Regexp) int {
	find := func(p onejob.Prompt) int { return len(marker.FindAllString(p.System+"\n"+p.User, -1)) }
	return max(0, find(r.prompt)-find(r.benign))
}

// Summary is one line for a table: the checks that did not pass.
func (r *RenderReport) Summary() string {
	var failed, assumed []string
	for _, f := range r.Findings {
		switch f.Verdict {
		case VerdictFail:
			failed = append(failed, f.Check)
		case VerdictAssumed:
			assumed = append(assumed, f.Check)
		case VerdictPass, VerdictInconclusive: // a check of the prompt's text is never the latter
		}
	}
	switch {
	case len(failed) > 0:
		return "failed: " + strings.Join(failed, ", ")
	case len(assumed) > 0:
		return "assumed: " + strings.Join(assumed, ", ")
	}
	return "passed"
}
