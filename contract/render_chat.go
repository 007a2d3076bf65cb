package contract

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// Two days on which a template is asked: what tells of the day differs on them.
var (
	oneDay     = time.Date(2026, 3, 2, 4, 5, 6, 0, time.UTC)
	anotherDay = time.Date(2031, 11, 23, 17, 48, 59, 0, time.UTC)
)

// messagesOf are the messages of a prompt, as chat templates take them.
func messagesOf(p onejob.Prompt) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	list := []message{{"user", p.User}}
	if p.System != "" {
		list = []message{{"system", p.System}, list[0]}
	}
	text, err := json.Marshal(list)
	if err != nil { // texts always encode
		return nil
	}
	return text
}

// checkChat looks at what the target's template makes of the messages, as far as it is
// known here.
func (k *Checker) checkChat(r *RenderReport, t RenderTarget) {
	if t.ChatFunc == nil {
		if k.terms.HiddenContent != "allow" {
			r.say(RenderHidden, VerdictAssumed, "the target's template is not known here")
		}
		return
	}
	text, err := t.ChatFunc(messagesOf(r.prompt), oneDay)
	if err != nil {
		r.say(RenderFidelity, VerdictFail, "the target's template refuses these messages: %s", err)
		return
	}
	k.checkFidelity(r, text)
	r.hold(RenderTrailing, !strings.HasSuffix(text, " "), "the prompt ends with a space", "the prompt ends where the answer begins")
	if k.terms.HiddenContent != "allow" {
		k.checkHidden(r, t)
	}
}

// checkFidelity holds what the template made to having each message once.
func (k *Checker) checkFidelity(r *RenderReport, text string) {
	if k.terms.ContentFidelity == "skip" {
		return
	}
	system, user := r.prompt.System, r.prompt.User
	for _, m := range []struct{ name, content, other string }{{"system", system, user}, {"user", user, system}} {
		want := 1 + strings.Count(m.other, m.content)
		switch n := strings.Count(text, m.content); {
		case m.content == "":
		case n == 0:
			r.say(RenderFidelity, VerdictFail, "by the target's template the %s message is lost or changed", m.name)
			return
		case n != want && len(m.content) >= longContent:
			r.say(RenderFidelity, VerdictFail, "by the target's template the %s message is there %d times", m.name, n)
			return
		}
	}
	r.say(RenderFidelity, VerdictPass, "by the target's template each message is there once, verbatim")
}

// longContent is a content that stands in no template by chance.
const longContent = 16

// roleWords are what a template may say of its own accord: who speaks, where an answer
// is to begin. Everything else was sent by nobody.
var roleWords = regexp.MustCompile(`(?i)^(?:system|user|assistant|model|developer|human|ai|bot|instructions?|message|start|end|channel|final|[^\p{L}\p{N}]*)$`)

var wordBreak = regexp.MustCompile(`[\s:#*\-]+`)

// checkHidden looks for text that nobody sent. The prompt with harmless texts is looked
// at: in it control tokens are the template's.
func (k *Checker) checkHidden(r *RenderReport, t RenderTarget) {
	one, err := t.ChatFunc(messagesOf(r.benign), oneDay)
	another, err2 := t.ChatFunc(messagesOf(r.benign), anotherDay)
	if err := errors.Join(err, err2); err != nil {
		r.say(RenderHidden, VerdictFail, "the target's template refuses harmless messages: %s", err)
		return
	}
	if one != another {
		r.say(RenderHidden, VerdictFail, "the target's template puts the date into the prompt, so that it changes every day")
		return
	}
	for _, content := range []string{r.benign.System, r.benign.User} {
		if !strings.Contains(one, content) {
			content = strings.TrimSpace(content) // that it is changed is another check's
		}
		one = strings.Replace(one, content, "", 1)
	}
	one = withoutSpecial(one, t.Tokens)
	for _, word := range wordBreak.Split(one, -1) {
		if !roleWords.MatchString(word) {
			r.say(RenderHidden, VerdictFail, "the target's template adds text that nobody sent, as in %q", clip(word))
			return
		}
	}
	r.say(RenderHidden, VerdictPass, "the target's template adds nothing but roles and control tokens")
}

// withoutSpecial takes control tokens out of a text: those of the tokenizer, and where
// there is none what looks like one.
func withoutSpecial(text string, tokens Tokens) string {
	if tokens != nil {
		if ids, err := tokens.Encode(text); err == nil {
			var plain []int
			for _, id := range ids {
				if !tokens.Special(id) {
					plain = append(plain, id)
				}
			}
			if rest, err := tokens.Decode(plain); err == nil {
				text = rest
			}
		}
	}
	return controlMarker.ReplaceAllString(text, " ")
}
