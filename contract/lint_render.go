package contract

import (
	"regexp"
	"slices"
	"strings"
)

// unknownMembers lists the paths below input that a template names and the schema does
// not know.
func unknownMembers(text string, in *shape) []string {
	var unknown []string
	for _, code := range templateCode.FindAllString(text, -1) {
		for _, m := range inputPath.FindAllStringSubmatch(code, -1) {
			if path := "input" + m[1]; !reaches(in, strings.Split(m[1], ".")[1:]) && !slices.Contains(unknown, path) {
				unknown = append(unknown, path)
			}
		}
	}
	return unknown
}

var inputPath = regexp.MustCompile(`\binput((?:\.[A-Za-z_][A-Za-z0-9_]*)+)`)

// dictMethods are what a template can call on an object.
var dictMethods = []string{"items", "keys", "values", "get"}

// reaches follows a path for as long as the schema says what there is.
func reaches(s *shape, path []string) bool {
	for _, step := range path {
		if s == nil || s.kind != objectShape {
			return true
		}
		next, known := s.fields[step]
		if !known {
			return slices.Contains(dictMethods, step)
		}
		s = next
	}
	return true
}

// templates makes the templates of a contract, those that there are.
func (l *linter) templates() {
	p := &promptTemplates{params: neutralParams(&l.File), neutralise: l.Render.SpecialTokensInUntrusted == "neutralise"}
	whole := true
	for path, part := range map[string]struct {
		text string
		to   **promptTemplate
	}{"prompt.system": {l.Prompt.System, &p.system}, "prompt.user": {l.Prompt.User, &p.user}} {
		compiled, err := compilePrompt(part.text)
		if err != nil {
			l.error("prompt-template", path, "the template does not compile: "+err.Error())
			whole = false
			continue
		}
		*part.to = compiled
	}
	for _, name := range l.Prompt.Untrusted {
		p.untrusted = append(p.untrusted, strings.Split(strings.TrimPrefix(name, inputVariable+"."), "."))
	}
	if whole {
		l.checker.prompt = p
	}
}

// rendered renders every case that the contract takes.
func (l *linter) rendered() {
	if l.checker.prompt == nil || l.checker.inputSchema == nil {
		return
	}
	for i := range l.CaseList {
		c := &l.CaseList[i]
		if len(l.checker.ValidateInput(c.Input)) > 0 {
			continue // was said
		}
		if _, err := l.checker.prompt.render(c.Input, l.checker.prompt.neutral); err != nil {
			l.caseError("prompt-render", c, "input", "the prompt cannot be rendered: "+err.Error())
			return // the others would say the same
		}
	}
}
