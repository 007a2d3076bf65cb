package contract_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/onejob-dev/onejob/contract"
)

// Where the example of the documentation lies.
const (
	examplePath   = "../examples/triage/triage.yaml"
	exampleFolder = "../examples/triage"
)

// readExample returns the example contract.
func readExample(t testing.TB) *contract.Contract {
	t.Helper()
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Parse("triage.yaml", text, os.DirFS(exampleFolder))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is a contract with everything that is required and little else.
const small = `apiVersion: onejob/contract.v1
kind: grade
input_schema:
  type: object
  additionalProperties: false
  required: [text, limit]
  properties:
    text: {type: string, maxLength: 1000}
    limit: {type: integer, minimum: 0}
output:
  media: json
  schema:
    type: object
    additionalProperties: false
    required: [grade, count, ratio, flags, note, inner]
    properties:
      grade: {enum: [low, high]}
      count: {type: integer}
      ratio: {type: number}
      flags: {type: array, maxItems: 8, items: {type: boolean}}
      note: {type: [string, "null"], maxLength: 100}
      inner:
        type: object
        additionalProperties: false
        required: [steps]
        properties:
          steps: {type: array, maxItems: 5, items: {type: integer}}
params:
  required: {max_output_tokens: 64}
invariants:
  - {id: within, cel: "output.count <= input.limit"}
cases:
  files: [cases.jsonl]
  min_distinct: 2
gates:
  structure: {min_rate: 0.5, max_failures: 0}
  invariants: {min_rate: 0.5, max_failures: 0}
sampling: {confidence: 0.7}
side_effects: none
`

const smallCases = `{"id":"a","input":{"text":"one","limit":3},"tags":["hostile"]}
{"id":"b","input":{"text":"two","limit":4}}
`

// edit replaces parts of a text, each of which must be there.
func edit(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q to replace", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// folder holds case files.
func folder(cases string) fstest.MapFS {
	return fstest.MapFS{"cases.jsonl": {Data: []byte(cases)}}
}

// parse reads a contract that must be readable.
func parse(t testing.TB, text, cases string) *contract.Contract {
	t.Helper()
	c, err := contract.Parse("c.yaml", []byte(text), folder(cases))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checker compiles a contract that must pass lint.
func checker(t testing.TB, c *contract.Contract) *contract.Checker {
	t.Helper()
	k, err := contract.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digest(t testing.TB, c *contract.Contract) string {
	t.Helper()
	d, err := contract.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
