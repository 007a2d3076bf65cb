package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// DefaultPath is the file that is read when none is named and it exists.
const DefaultPath = "onejob.yaml"

// maxFileBytes bounds the configuration file.
const maxFileBytes = 4 << 20

// Config is a configuration that has been checked.
type Config struct {
	File

	// Contracts by kind. Kinds without one are not in it.
	Contracts map[string]*Contract

	// Path of the file that was read. Empty: none was.
	Path string
	// Warnings are settings that work and may not do what was meant.
	Warnings []string

	sources map[string]string // where each setting comes from, by path
}

// LoadParams says where a configuration comes from.
type LoadParams struct {
	// Path of the file; it must exist. Empty: [DefaultPath] if that exists, else
	// no file. With Text it only names that text in messages.
	Path string
	// Text stands in for the file.
	Text []byte
	// Flags that were given, by the path of their setting, as in "listen".
	Flags map[string]string
	// Getenv reads the environment. Nil: it is empty.
	Getenv func(string) string
	// Allow are networks that webhooks may go to besides those of the file.
	Allow []string
	// StoreOnly leaves out of account what is wrong with targets, kinds and webhooks, for
	// commands that only open the store.
	StoreOnly bool
}

// Load reads and checks a configuration. All that is wrong with it is returned
// at once, as an [*Error].
func Load(p LoadParams) (*Config, error) {
	if p.Getenv == nil {
		p.Getenv = func(string) string { return "" }
	}
	path, text, err := p.read()
	if err != nil {
		return nil, err
	}
	d := newDecoder(cmp.Or(path, "configuration"), p.Getenv)
	c := &Config{Path: path, sources: map[string]string{}}
	root, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	d.decodeInto(root, "", &c.File)
	for at, place := range d.places {
		c.sources[at] = fmt.Sprintf("%s:%d", path, place.Line)
	}
	c.overlay(d, p)
	c.Webhooks.Allow = append(c.Webhooks.Allow, p.Allow...)
	c.check(d)
	if p.StoreOnly {
		d.dropFaults("targets", "kinds", "webhooks")
		return c.unless(d, nil)
	}
	return c.unless(d, c.readContracts(d))
}

// unless returns the configuration unless something is wrong with it or with what
// it names.
func (c *Config) unless(d *decoder, elsewhere []Fault) (*Config, error) {
	sortFaults(d.faults)
	if faults := append(d.faults, elsewhere...); len(faults) > 0 {
		return nil, &Error{Faults: faults}
	}
	return c, nil
}

func (p LoadParams) read() (path string, text []byte, err error) {
	if p.Text != nil {
		return cmp.Or(p.Path, "built-in"), p.Text, nil
	}
	path = cmp.Or(p.Path, DefaultPath)
	f, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) && p.Path == "" {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	text, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return "", nil, unreadable(path, err)
	}
	if len(text) > maxFileBytes {
		return "", nil, fmt.Errorf("the configuration %s is larger than %d bytes", path, maxFileBytes)
	}
	return path, text, nil
}

// unreadable is a file that is not there or cannot be read, as the one thing that
// is wrong with the configuration.
func unreadable(path string, err error) error {
	message := "it cannot be read: " + err.Error()
	var e *fs.PathError
	if errors.As(err, &e) {
		message = "it cannot be read: " + e.Err.Error()
	}
	return &Error{Faults: []Fault{{File: path, Message: message}}}
}

// parse returns the root of the file, nil when it says nothing.
func (d *decoder) parse(text []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(bytes.TrimPrefix(text, []byte("\ufeff")), 0)
	if err != nil {
		return nil, &Error{Faults: []Fault{d.syntaxFault(err)}}
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
		d.collectAnchors(bodies[0])
		return bodies[0], nil
	}
	d.faultAt(bodies[1], "", "a second document starts here; one file is one configuration")
	return nil, &Error{Faults: d.faults}
}

// syntaxFault keeps the parser's word and place, but not the text around it,
// which may hold a secret.
func (d *decoder) syntaxFault(err error) Fault {
	f := Fault{File: d.file, Message: "this is not valid YAML"}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		f.Message += ": " + plainSyntax(syntax.GetMessage())
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			f.Line, f.Column = t.Position.Line, t.Position.Column
		}
	}
	return f
}

// keyTwice is what the parser says of a key that a mapping has twice.
var keyTwice = regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]$`)

// plainSyntax says the mistakes that are made most in words that help, and
// everything else in the parser's.
func plainSyntax(message string) string {
	if twice := keyTwice.FindStringSubmatch(message); twice != nil {
		return fmt.Sprintf("the key %s is there twice, first in line %s", twice[1], twice[2])
	}
	switch {
	case strings.Contains(message, "'\t'"):
		return "a tab stands where spaces belong"
	case strings.Contains(message, "not allowed in this context"):
		return message + "; is it indented as what is beside it?"
	}
	return message
}

// setting is one value outside targets and kinds: what a flag or a variable can
// say too.
type setting struct {
	path  string
	value reflect.Value
	field field
}

func settingsOf(path string, v reflect.Value) []setting {
	var settings []setting
	for _, f := range fieldsOf(v.Type()) {
		value, at := v.Field(f.index), join(path, f.key)
		_, isText := value.Addr().Interface().(textValue)
		switch {
		case f.later || value.Kind() == reflect.Map || value.Kind() == reflect.Slice:
		case value.Kind() == reflect.Struct && !isText:
			settings = append(settings, settingsOf(at, value)...)
		default:
			settings = append(settings, setting{at, value, f})
		}
	}
	return settings
}

// Variable returns the name of the environment variable that says what the
// setting at path is: ONEJOB_WORKERS_SLOTS for workers.slots.
func Variable(path string) string {
	return "ONEJOB_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// overlay lets the environment and flags have their say over the file.
func (c *Config) overlay(d *decoder, p LoadParams) {
	for _, s := range settingsOf("", reflect.ValueOf(&c.File).Elem()) {
		text, source := said(s.path, p)
		if source == "" {
			continue
		}
		d.dropFaults(s.path)
		if err := d.setText(text, s.value, s.field); err != nil {
			d.faults = append(d.faults, Fault{File: source, Path: s.path, Message: err.Error()})
		}
		c.sources[s.path], d.overlaid[s.path] = source, source
	}
}

// said returns what a flag, or else the environment, says of a setting.
func said(path string, p LoadParams) (text, source string) {
	if flag := p.Flags[path]; flag != "" {
		return flag, "flag --" + path
	}
	name := Variable(path)
	if text := p.Getenv(name); text != "" {
		return text, "environment " + name
	}
	switch path {
	case "listen":
		if port := p.Getenv("PORT"); port != "" {
			return ":" + port, "environment PORT"
		}
	case "store":
		if url := p.Getenv("DATABASE_URL"); url != "" {
			return url, "environment DATABASE_URL"
		}
	}
	return "", ""
}

// dropFaults forgets what is wrong at paths and below them.
func (d *decoder) dropFaults(paths ...string) {
	kept := d.faults[:0]
	for _, f := range d.faults {
		if !under(f.Path, paths...) {
			kept = append(kept, f)
		}
	}
	d.faults = kept
}

func under(path string, tops ...string) bool {
	for _, top := range tops {
		if path == top || strings.HasPrefix(path, top+".") || strings.HasPrefix(path, top+"[") {
			return true
		}
	}
	return false
}
