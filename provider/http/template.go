package httpcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob"
	shared "github.com/onejob-dev/onejob/internal/template"
)

// maxBodyBytes bounds what a template makes.
const maxBodyBytes = 16 << 20

// template makes a request body. What it puts out is escaped for where it
// stands, as a caller's bytes must not change the shape of the request: in JSON,
// inside quotes as the content of a string, elsewhere as a value.
type template struct {
	compiled    *jinja.Template
	mode        mode
	usesAttempt bool
	usesKey     bool
}

// mode is what a template's text is escaped for.
type mode int

const (
	plainMode mode = iota // nothing: a type that is not known
	jsonMode
	formMode
	xmlMode
)

func modeOf(contentType string) mode {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == jsonType || strings.HasSuffix(media, "+json"):
		return jsonMode
	case media == "application/x-www-form-urlencoded":
		return formMode
	case media == "application/xml" || media == "text/xml" || media == "text/html" || strings.HasSuffix(media, "+xml"):
		return xmlMode
	}
	return plainMode
}

// refusedStatements are those whose output cannot be told from where it is written.
var refusedStatements = []string{"macro", "call", "filter", "block", "raw", "generation", "include", "import", "from", "extends"}

// compileTemplate compiles a template of a body of the given type. All that is
// wrong with it is returned at once.
func compileTemplate(source, contentType string) (*template, error) {
	t := &template{mode: modeOf(contentType)}
	segments, err := shared.Scan(source)
	if err != nil {
		return nil, err
	}
	errs := []error{t.check(segments)}
	if t.mode != plainMode {
		errs = append(errs, t.escape(segments))
	}
	var text strings.Builder
	for _, s := range segments {
		text.WriteString(s.String())
	}
	t.compiled, err = jinja.Compile(text.String())
	return t, errors.Join(append(errs, err)...)
}

// check looks for what would make two requests of one attempt differ, and for the key.
func (t *template) check(segments []shared.Segment) error {
	var errs []error
	for _, s := range segments {
		if s.Kind != shared.Output && s.Kind != shared.Statement {
			continue
		}
		for _, name := range shared.Names(s.Text) {
			switch name {
			case "attempt", "callback_url":
				t.usesAttempt = true
			case "provider_key":
				t.usesKey = true
			case "strftime_now":
				errs = append(errs, errors.New("strftime_now gives other bytes each time"))
			}
		}
	}
	return errors.Join(errs...)
}

// escape wraps every output in the function that escapes it for where it stands.
func (t *template) escape(segments []shared.Segment) error {
	var q quotes
	var errs []error
	for i := range segments {
		s := &segments[i]
		switch s.Kind {
		case shared.Text:
			q.read(s.Text)
		case shared.Output:
			put, err := t.putterOf(q.inside, s.Text)
			errs = append(errs, err)
			s.Text = " " + put + "(" + s.Text + ") "
		case shared.Statement:
			errs = append(errs, checkStatement(s.Text))
			if t.mode == jsonMode {
				errs = append(errs, q.statement(verbOf(s.Text)))
			}
		case shared.Comment:
		}
	}
	return errors.Join(errs...)
}

func verbOf(statement string) string {
	if found := shared.Names(statement); len(found) > 0 {
		return found[0]
	}
	return ""
}

func checkStatement(text string) error {
	verb := verbOf(text)
	if slices.Contains(refusedStatements, verb) || verb == "set" && !strings.Contains(text, "=") {
		return fmt.Errorf("{%% %s %%} is not for request bodies", strings.TrimSpace(text))
	}
	return nil
}

// render makes the body of one attempt. Its errors are the input's fault and
// free of secrets.
func (t *template) render(req onejob.Request, callbackURL func(onejob.Request) string) ([]byte, error) {
	values, err := t.values(req, callbackURL)
	if err != nil {
		return nil, err
	}
	text, err := t.compiled.RenderValues(values)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body's template: %w", err)
	case len(text) > maxBodyBytes:
		return nil, fmt.Errorf("the body would be longer than %d bytes", maxBodyBytes)
	case t.mode == jsonMode && !json.Valid([]byte(text)):
		return nil, errors.New("the body's template did not make JSON of this input")
	}
	return []byte(text), nil
}

// values is what the template sees.
func (t *template) values(req onejob.Request, callbackURL func(onejob.Request) string) (map[string]jinja.Value, error) {
	input, err := shared.Value(req.Input)
	if err != nil {
		return nil, fmt.Errorf("the input: %w", err)
	}
	metadata := jinja.NewDict()
	if len(req.Metadata) > 0 {
		if metadata, err = shared.Value(req.Metadata); err != nil {
			return nil, fmt.Errorf("the metadata: %w", err)
		}
	}
	values := t.functions()
	values["input"], values["metadata"] = input, metadata
	values["job"] = dict("id", jinja.NewString(req.JobID))
	values["attempt"] = dict("id", jinja.NewString(req.AttemptID), "number", jinja.NewInt(int64(req.Number)))
	values["provider_key"] = jinja.NewString(req.ProviderKey)
	if callbackURL != nil {
		values["callback_url"] = jinja.NewString(callbackURL(req))
	}
	return values, nil
}
