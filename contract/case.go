package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// Bounds of case files.
const (
	MaxCaseBytes = 1 << 20 // of one line
	MaxCases     = 100_000 // of all files
)

// HostileTag marks cases that are made to break something: control tokens, very
// long texts, right-to-left and zero-width characters, nothing at all.
const HostileTag = "hostile"

// Case is one line of a case file.
type Case struct {
	// ID is unique in the contract.
	ID string `json:"id" digest:"in"`
	// Input is what the caller would hand in, as it was written.
	Input json.RawMessage `json:"input" digest:"in"`
	// Expect is what expectations compare with, a JSON object. Nil: they are not
	// asked about this case.
	Expect json.RawMessage `json:"expect" digest:"in"`
	// Tags are for people, but for [HostileTag].
	Tags []string `json:"tags" digest:"out"`

	// File and Line are where it stands.
	File string `json:"-" digest:"out"`
	Line int    `json:"-" digest:"out"` // from 1
}

// Hostile reports whether the case is tagged so.
func (c *Case) Hostile() bool { return slices.Contains(c.Tags, HostileTag) }

// caseKeys are the members of a case.
var caseKeys = []string{"id", "input", "expect", "tags"}

// readCases reads every file. Ids are unique over all of them.
func (d *decoder) readCases(from CaseFiles, files fs.FS) []Case {
	var all []Case
	for i, name := range from.Files {
		at := fmt.Sprintf("cases.files[%d]", i)
		switch {
		case name == "":
			continue // already a fault
		case files == nil || !fs.ValidPath(name):
			d.fault(at, fmt.Sprintf("%q is not a path below the contract's folder", name))
		case slices.Contains(from.Files[:i], name):
			d.fault(at, fmt.Sprintf("%q is named twice", name))
		default:
			cases, err := d.readCaseFile(files, name)
			if err != nil {
				d.fault(at, err.Error())
			}
			all = append(all, cases...)
		}
	}
	seen := map[string]*Case{}
	for i := range all {
		c := &all[i]
		if first := seen[c.ID]; first != nil {
			d.caseFault(c, "id", fmt.Sprintf("the id %q is taken by %s:%d", c.ID, first.File, first.Line))
			continue
		}
		seen[c.ID] = c
	}
	return all
}

func (d *decoder) caseFault(c *Case, path, message string) {
	d.faults = append(d.faults, Fault{File: c.File, Line: c.Line, Column: 1, Path: path, Message: message})
}

// readCaseFile reads the cases of one file. Its error is about the file as a whole.
func (d *decoder) readCaseFile(files fs.FS, name string) ([]Case, error) {
	f, err := files.Open(name)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	defer func() { _ = f.Close() }()

	lines := bufio.NewScanner(f)
	lines.Buffer(nil, MaxCaseBytes)
	lines.Split(keepCarriageReturns)
	var cases []Case
	line := 0
	for lines.Scan() {
		line++
		if line > MaxCases {
			return nil, fmt.Errorf("%s has more than %d cases", name, MaxCases)
		}
		c := Case{File: path.Join(path.Dir(d.file), name), Line: line}
		if fault := c.read(lines.Bytes()); fault != nil {
			fault.File, fault.Line = c.File, line
			d.faults = append(d.faults, *fault)
			continue
		}
		cases = append(cases, c)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return cases, fmt.Errorf("%s: line %d is longer than %d bytes", name, line+1, MaxCaseBytes)
	case err != nil:
		return cases, fmt.Errorf("%s cannot be read to its end", name)
	case line == 0:
		return nil, fmt.Errorf("%s has no case in it", name)
	}
	return cases, nil
}

// keepCarriageReturns splits at line feeds only: a JSON reader minds no carriage
// return, and whatever else stands at a line's end is part of it.
func keepCarriageReturns(text []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1, text[:i], nil
	}
	if atEOF && len(text) > 0 {
		return len(text), text, nil
	}
	return 0, nil, nil
}

// read fills the case from one line.
func (c *Case) read(line []byte) *Fault {
	if len(bytes.TrimSpace(line)) == 0 {
		return &Fault{Column: 1, Message: "the line is empty; every line is one case"}
	}
	if _, err := onejob.Canonical(line); err != nil {
		return &Fault{Column: columnOf(err), Message: messageOf(err) + `; a line is one case: {"id": …, "input": …, "expect": …, "tags": […]}`}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if dec.PeekKind() != '{' {
		return &Fault{Column: 1, Message: `a case is an object: {"id": …, "input": …, "expect": …, "tags": […]}`}
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		if fault := c.readMember(dec); fault != nil {
			return fault
		}
	}
	switch {
	case c.ID == "":
		return &Fault{Column: 1, Message: "id is required"}
	case c.Input == nil:
		return &Fault{Column: 1, Path: "input", Message: "input is required"}
	}
	return nil
}

func (c *Case) readMember(dec *jsontext.Decoder) *Fault {
	token, err := dec.ReadToken()
	if err != nil {
		return &Fault{Column: int(dec.InputOffset()) + 1, Message: err.Error()}
	}
	name, column := token.String(), int(dec.InputOffset())
	column -= len(name) + 1 // to the opening quote, for plain names
	if !slices.Contains(caseKeys, name) {
		return &Fault{Column: max(column, 1), Message: fmt.Sprintf("unknown member %q%s", name, suggest(name, caseKeys))}
	}
	value, err := dec.ReadValue()
	if err != nil && !errors.Is(err, io.EOF) {
		return &Fault{Column: max(column, 1), Message: err.Error()}
	}
	if message := c.set(name, value.Clone()); message != "" {
		return &Fault{Column: max(column, 1), Path: name, Message: message}
	}
	return nil
}

// set takes one member, or says what belongs there.
func (c *Case) set(name string, value jsontext.Value) string {
	switch name {
	case "id":
		if json.Unmarshal(value, &c.ID) != nil || !nameForm.MatchString(c.ID) {
			return "an id is text of letters, digits, _, . and -"
		}
	case "input":
		c.Input = json.RawMessage(value)
	case "expect":
		if value.Kind() != '{' {
			return "an object belongs here; leave it out where nothing is expected"
		}
		c.Expect = json.RawMessage(value)
	case "tags":
		if value.Kind() != '[' || json.Unmarshal(value, &c.Tags) != nil {
			return "a list of texts belongs here"
		}
	}
	return ""
}

// messageOf returns what an error of the canonical form says, without its code.
func messageOf(err error) string {
	var e *onejob.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// columnOf returns the place that an error about JSON names.
func columnOf(err error) int {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return int(syntactic.ByteOffset) + 1
	}
	return 1
}
