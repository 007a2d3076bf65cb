package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/onejob-dev/onejob/internal/httpapi"
)

var update = flag.Bool("update", false, "write api/openapi.json anew")

const committed = "../../api/openapi.json"

func TestTheCommittedDocumentIsTheServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	served := w.do(request{method: "GET", path: "/openapi.json", key: w.viewer}).wantStatus(t, 200).body
	if printed, err := httpapi.Document(); err != nil || string(printed)+"\n" != string(served) {
		t.Errorf("Document returns another document (%v)", err)
	}
	if *update {
		if err := os.WriteFile(committed, served, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, served) {
		t.Error("api/openapi.json is not what the server serves; run go generate ./internal/httpapi and commit it")
	}
}

func TestTheDocumentHasExactlyTheRoutesOfTheServer(t *testing.T) {
	t.Parallel()
	var routes, documented []string
	ids := map[string]bool{}
	for _, rt := range httpapi.Routes() {
		routes = append(routes, rt.Method+" "+rt.Path)
	}
	for path, item := range contract().Paths {
		for method, op := range item {
			documented = append(documented, strings.ToUpper(method)+" "+path)
			if ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: id %q is not its own, or it has no summary", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	if !slices.Equal(routes, documented) {
		t.Errorf("routes %v\ndocumented %v", routes, documented)
	}
}

// openAPI is the part of the document that answers are held to.
type openAPI struct {
	Paths map[string]map[string]struct {
		OperationID string
		Summary     string
		Responses   map[string]struct {
			Description string
			Content     map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

// contract reads the committed document once, with every object closed: a member
// that the document does not name is a fault here.
var contract = sync.OnceValue(func() *openAPI {
	raw, err := os.ReadFile(committed)
	if err != nil {
		panic(err)
	}
	doc := &openAPI{schemas: map[string]*jsonschema.Schema{}, compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal(raw, doc); err != nil {
		panic(err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	closeObjects(tree)
	doc.compiler.AssertFormat()
	if err := doc.compiler.AddResource("openapi.json", tree); err != nil {
		panic(err)
	}
	return doc
})

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, hasMembers := v["properties"]; hasMembers && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for inner := range maps.Values(v) {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

func (doc *openAPI) schema(t *testing.T, ref string) *jsonschema.Schema {
	t.Helper()
	doc.mu.Lock()
	defer doc.mu.Unlock()
	if s, ok := doc.schemas[ref]; ok {
		return s
	}
	s, err := doc.compiler.Compile("openapi.json" + ref)
	if err != nil {
		t.Fatalf("schema %s: %v", ref, err)
	}
	doc.schemas[ref] = s
	return s
}

// wantSchema holds a JSON value to a named schema of the document.
func wantSchema(t *testing.T, name string, body []byte) {
	t.Helper()
	wantRef(t, "#/components/schemas/"+name, body)
}

func wantRef(t *testing.T, ref string, body []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("no JSON: %v\n%s", err, body)
	}
	if err := contract().schema(t, ref).Validate(v); err != nil {
		t.Errorf("not as documented: %v\n%s", err, body)
	}
}

var aPathParameter = regexp.MustCompile(`\\\{\w+\\\}`)

// wantDocumented holds an answer to what the document says of its route. Every
// answer of every test comes through here.
func wantDocumented(t *testing.T, r *http.Request, got answer) {
	t.Helper()
	for path, item := range contract().Paths {
		pattern := "^" + aPathParameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + "$"
		op, known := item[strings.ToLower(r.Method)]
		if !known || !regexp.MustCompile(pattern).MatchString(r.URL.Path) {
			continue
		}
		resp, documented := op.Responses[strconv.Itoa(got.status)]
		if !documented {
			t.Errorf("%s %s: status %d is not documented\n%s", r.Method, path, got.status, got.body)
			return
		}
		media, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
		content, typed := resp.Content[media]
		if _, anything := resp.Content["*/*"]; !typed && !anything && len(resp.Content) > 0 {
			t.Errorf("%s %s: %d answers as %q, which is not documented", r.Method, path, got.status, media)
		}
		if content.Schema.Ref != "" {
			wantRef(t, content.Schema.Ref, got.body)
		}
		if media == "application/problem+json" {
			var p struct{ Code string }
			if err := json.Unmarshal(got.body, &p); err != nil || !slices.Contains(strings.Split(resp.Description, ", "), p.Code) {
				t.Errorf("%s %s: %d %q is not among the documented: %s", r.Method, path, got.status, p.Code, resp.Description)
			}
		}
		return
	}
}
