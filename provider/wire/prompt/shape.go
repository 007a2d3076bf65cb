package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// schemaName is what a schema is called where an API wants a name.
const schemaName = "output"

// shaped writes a schema as the member that it goes to wants it. A member that is
// not known takes the schema as it is, as grammars of inference servers do.
func (c *Carrier) shaped(path string, schema json.RawMessage) (json.RawMessage, error) {
	schema, err := c.portable(schema)
	if err != nil {
		return nil, err
	}
	named := struct {
		Type   string          `json:"type,omitempty"`
		Name   string          `json:"name,omitempty"`
		Strict bool            `json:"strict,omitempty"`
		Schema json.RawMessage `json:"schema"`
	}{Name: schemaName, Strict: true, Schema: schema}
	switch path {
	case "response_format":
		return encode(map[string]any{"type": "json_schema", "json_schema": named})
	case "text.format":
		named.Type = "json_schema"
		return encode(named)
	case "output_config.format", "output_format":
		named.Type, named.Name, named.Strict = "json_schema", "", false
		return encode(named)
	}
	return schema, nil
}

// Tool is one tool in neutral words.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema
}

// tools carries a list of [Tool]. A single one is to be called.
func (c *Carrier) tools(body *Body, path string, value json.RawMessage) error {
	if path == "" || c.protocol.ToolFunc == nil {
		return errNotCarried
	}
	var list []Tool
	if err := json.Unmarshal(value, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("it is no list of tools")
	}
	written := make([]any, len(list))
	for i, tool := range list {
		var err error
		if tool.Parameters, err = c.portable(tool.Parameters); err != nil {
			return err
		}
		written[i] = c.protocol.ToolFunc(tool)
	}
	if err := body.SetValue(path, written); err != nil || len(list) > 1 {
		return err
	}
	return body.SetValue("tool_choice", c.protocol.ChoiceFunc(list[0]))
}

// stripped are the keywords that targets refuse, or take and ignore.
var stripped = wordSet("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format " +
	"minItems maxItems uniqueItems minProperties maxProperties default examples deprecated readOnly writeOnly $comment $schema")

// Where a schema has schemas below it: as one value, by name, or in a list.
var (
	schemaValues = wordSet("items additionalProperties contains not if then else propertyNames unevaluatedItems unevaluatedProperties contentSchema")
	schemaNames  = wordSet("properties $defs patternProperties dependentSchemas")
	schemaLists  = wordSet("anyOf oneOf allOf prefixItems")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// portable is the schema without its limits, members in their order.
func (c *Carrier) portable(schema json.RawMessage) (json.RawMessage, error) {
	if c.opts.Bounds {
		return schema, nil
	}
	var text bytes.Buffer
	s := stripper{in: jsontext.NewDecoder(bytes.NewReader(schema)), out: jsontext.NewEncoder(&text, jsontext.EscapeForHTML(false))}
	if err := s.schema(); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	if _, err := s.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the schema")
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// stripper copies a schema, limits left out.
type stripper struct {
	in  *jsontext.Decoder
	out *jsontext.Encoder
}

// schema copies the next value, which is a schema.
func (s *stripper) schema() error {
	if s.in.PeekKind() != '{' {
		return s.copy()
	}
	return s.members('}', func(name string) error {
		if stripped[name] {
			return s.in.SkipValue()
		}
		if err := s.out.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		switch {
		case schemaValues[name]:
			return s.schema()
		case schemaNames[name] && s.in.PeekKind() == '{':
			return s.members('}', func(name string) error {
				if err := s.out.WriteToken(jsontext.String(name)); err != nil {
					return err
				}
				return s.schema()
			})
		case schemaLists[name] && s.in.PeekKind() == '[':
			return s.members(']', func(string) error { return s.schema() })
		}
		return s.copy()
	})
}

// copy copies the next value as it is.
func (s *stripper) copy() error {
	value, err := s.in.ReadValue()
	if err != nil {
		return err
	}
	return s.out.WriteValue(value)
}

// members visits what an object or a list has until its end. Of a list the names
// are empty.
func (s *stripper) members(end jsontext.Kind, visit func(name string) error) error {
	for first := true; ; first = false {
		if first || s.in.PeekKind() == end {
			token, err := s.in.ReadToken()
			if err != nil {
				return err
			}
			if err := s.out.WriteToken(token); err != nil || !first {
				return err
			}
			continue
		}
		var name string
		if end == '}' {
			token, err := s.in.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := visit(name); err != nil {
			return err
		}
	}
}
