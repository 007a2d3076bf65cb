package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// VerdictAssumed : nothing speaks against it, and only a local model of the target was
// asked, or nobody could be.
const VerdictAssumed Verdict = "assumed"

// Names of what is checked of a rendered prompt.
const (
	RenderRendered     = "render"           // it can be rendered, and the target carries what is required
	RenderUnrendered   = "unrendered"       // no template is left standing in our own text
	RenderFidelity     = "content_fidelity" // each message is there once, as it was written
	RenderHidden       = "hidden_content"   // nothing is there that nobody sent
	RenderSpecial      = "special_tokens"   // what somebody else wrote makes no control token
	RenderRoundTrip    = "round_trip"       // tokens of a text are the text again
	RenderBOS          = "bos"              // a prompt begins once
	RenderTrailing     = "trailing_space"   // and ends where the answer begins
	RenderContext      = "context"          // with room for the answer
	RenderCount        = "count"            // two counts agree
	RenderRemoteMarker = "remote_markers"   // the target's count shows no control token
)

// RenderFinding is what one check says of one prompt.
type RenderFinding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"` // pass, fail or assumed
	Detail  string  `json:"detail"`  // in words, without values of the input
}

// Tokens is a tokenizer like a target's own.
type Tokens interface {
	// Encode reads a rendered prompt: what is written like a control token is one.
	Encode(text string) ([]int, error)
	// EncodePlain reads every byte as text.
	EncodePlain(text string) ([]int, error)
	Decode(ids []int) (string, error)
	Special(id int) bool
	// Beginning is the token that begins a sequence. False: none is known.
	Beginning() (id int, known bool)
}

// RenderTarget is a target as its rendering is checked.
type RenderTarget struct {
	Prompter onejob.Prompter
	// Counter asks the target for counts. Nil: it cannot be asked.
	Counter onejob.TokenCounter
	// Tokens is a tokenizer like the target's. Nil: none is known here.
	Tokens Tokens
	// ChatFunc makes the text that the target's server makes of messages (a JSON list of
	// role and content) on a day, by its chat template. Nil: none is known here.
	ChatFunc func(messages []byte, today time.Time) (string, error)
	// ContextTokens is how long a prompt and its answer may be. Zero: not known.
	ContextTokens int
}

// RenderReport is what was checked of one input.
type RenderReport struct {
	Rendered onejob.Rendered
	Findings []RenderFinding
	// Tokens of the prompt as they were counted last: by the target, else here. Zero:
	// nobody could.
	Tokens int
	// Remote says that the target counted.
	Remote bool

	prompt onejob.Prompt
	benign onejob.Prompt // the same with harmless texts in place of what others wrote
}

// Passed reports whether no check failed.
func (r *RenderReport) Passed() bool {
	return !slices.ContainsFunc(r.Findings, func(f RenderFinding) bool { return f.Verdict == VerdictFail })
}

func (r *RenderReport) say(check string, verdict Verdict, format string, args ...any) {
	r.Findings = append(r.Findings, RenderFinding{Check: check, Verdict: verdict, Detail: fmt.Sprintf(format, args...)})
}

// hold says pass or fail.
func (r *RenderReport) hold(check string, good bool, otherwise, detail string) {
	if good {
		r.say(check, VerdictPass, "%s", detail)
	} else {
		r.say(check, VerdictFail, "%s", otherwise)
	}
}

// CheckRender renders the prompt of an input for a target and checks what can be checked
// without asking anybody. Where the target's tokenizer or template is not known here, a
// verdict is assumed.
func (k *Checker) CheckRender(t RenderTarget, input []byte) *RenderReport {
	r := &RenderReport{}
	var err error
	if r.prompt, err = k.Prompt(input); err == nil {
		r.benign, err = k.prompt.render(input, k.prompt.harmless)
	}
	if err == nil {
		r.Rendered, err = t.Prompter.Render(r.prompt)
	}
	if err != nil {
		r.say(RenderRendered, VerdictFail, "%s", err)
		return r
	}
	r.say(RenderRendered, VerdictPass, "%s", droppedWords(r.Rendered.Dropped))
	k.checkText(r)
	k.checkBody(r)
	k.checkChat(r, t)
	k.checkTokens(r, t)
	return r
}

func droppedWords(dropped []string) string {
	if len(dropped) == 0 {
		return "nothing is dropped"
	}
	return "dropped on this target: " + strings.Join(dropped, ", ")
}

// harmless puts a plain word in place of what somebody else wrote.
func (p *promptTemplates) harmless(v jinja.Value) {
	for _, path := range p.untrusted {
		rewrite(v, path, func(text string) string {
			if text == "" {
				return ""
			}
			return harmlessWord
		})
	}
}

const harmlessWord = "x"

// checkText looks for what a template left standing, in our own text alone: somebody's
// text may have braces.
func (k *Checker) checkText(r *RenderReport) {
	for _, text := range []string{r.benign.System, r.benign.User} {
		for _, forbidden := range k.terms.ForbidUnrendered {
			if strings.Contains(text, forbidden) {
				r.say(RenderUnrendered, VerdictFail, "%q stands in the prompt", forbidden)
				return
			}
		}
	}
	r.say(RenderUnrendered, VerdictPass, "no template is left standing")
}

// checkBody holds the body to saying each message once, as it was written. It is read
// by what it says, not by the protocol's names.
func (k *Checker) checkBody(r *RenderReport) {
	if k.terms.ContentFidelity == "skip" {
		return
	}
	texts, err := textsOf(r.Rendered.Body)
	if err != nil {
		r.say(RenderFidelity, VerdictFail, "the body is no JSON")
		return
	}
	want := 1
	if r.prompt.System == r.prompt.User {
		want = 2
	}
	for _, m := range []struct{ name, text string }{{"system", r.prompt.System}, {"user", r.prompt.User}} {
		if n := count(texts, m.text); m.text != "" && n != want {
			r.say(RenderFidelity, VerdictFail, "the body says the %s message %d times, verbatim", m.name, n)
			return
		}
	}
	r.say(RenderFidelity, VerdictPass, "the body says each message once, verbatim")
}

// textsOf lists the texts in a JSON document, names of members left out.
func textsOf(body []byte) ([]string, error) {
	var texts []string
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for d.PeekKind() != 0 {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		kind, length := d.StackIndex(d.StackDepth())
		if token.Kind() == '"' && (kind != '{' || length%2 == 0) {
			texts = append(texts, token.String())
		}
	}
	if !json.Valid(body) {
		return nil, errors.New("not JSON")
	}
	return texts, nil
}

func count(texts []string, text string) int {
	n := 0
	for _, t := range texts {
		if t == text {
			n++
		}
	}
	return n
}
