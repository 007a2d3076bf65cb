package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL is what a contract's schema is called among itself. Nothing is there.
const schemaURL = "contract:///schema"

// schema is one that was compiled, with what expressions know of its values.
type schema struct {
	compiler *jsonschema.Compiler
	compiled *jsonschema.Schema
	document any
	shape    *shape
}

// noLoader refuses every document but the schema itself: a contract reads nothing
// from a network or a disk.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to another document (%s); copy what it needs below $defs", url)
}

// compileSchema compiles a schema by draft 2020-12, formats checked.
func compileSchema(raw Schema) (*schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	s := &schema{compiler: jsonschema.NewCompiler(), document: document}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.UseLoader(noLoader{})
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	if s.compiled, err = s.compiler.Compile(schemaURL); err != nil {
		return nil, err
	}
	s.shape = shapeOf(document)
	return s, nil
}

// part compiles the schema of one property of the root. Nil: there is none.
func (s *schema) part(property string) *jsonschema.Schema {
	root, _ := s.document.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	if _, ok := properties[property]; !ok {
		return nil
	}
	part, err := s.compiler.Compile(schemaURL + "#/properties/" + escapePointer(property))
	if err != nil {
		return nil
	}
	return part
}

// schemaFault is one thing that is wrong with a schema, and where in it.
type schemaFault struct {
	where   []string
	message string
}

// schemaFaults takes apart why a schema does not compile.
func schemaFaults(err error) []schemaFault {
	var invalid *jsonschema.SchemaValidationError
	var broken *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &broken) {
		return []schemaFault{{message: "it does not compile: " + err.Error()}}
	}
	var faults []schemaFault
	for _, leaf := range leaves(broken) {
		where, message := leaf.InstanceLocation, "it is no JSON Schema: "+violationOf(leaf, nil).Message
		if len(where) > 0 && where[len(where)-1] == "type" {
			message = "there is no such type; there is string, number, integer, boolean, object, array, null"
		}
		faults = append(faults, schemaFault{where, message})
	}
	return faults
}

// leaves lists the errors below one that explain it. Of alternatives none of which
// fits, the choice is the error.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 || isChoice(e) {
		return []*jsonschema.ValidationError{e}
	}
	var found []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		found = append(found, leaves(cause)...)
	}
	return found
}

// expected reads a JSON value that is known to be strict, numbers as they are
// written.
func expected(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	_ = d.Decode(&value)
	return value
}
