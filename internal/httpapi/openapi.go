package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// operation is what the document says of a route. Types are given by a value of
// them, so that the document is made from what the handlers use.
type operation struct {
	id, summary, description string

	headers      []header
	query        []param
	body         any // nil: none
	bodyOptional bool
	answers      []answer
	problems     []onejob.Code // beside those that any route can answer
}

// answer is one success.
type answer struct {
	status      int
	says        string
	body        any    // nil: see contentType
	contentType string // of a body that is not JSON of ours; empty and no body: there is none
	headers     []string
}

// param is one query parameter, text unless it says otherwise.
type param struct {
	name, says, format string
	list               bool
	most               int // above zero: an integer from 1
}

// header is one request header.
type header struct {
	name, says string
	required   bool
}

// The parameters that several routes share.
var (
	limitParam           = param{name: "limit", says: "How many at most; 50 if it is not said", most: maxPage}
	keyHeaderDoc         = header{name: keyHeader, says: "1 to 255 printable ASCII characters, one per intent, bare or as a quoted string; the same with every retry", required: true}
	preferHeaderDoc      = header{name: "Prefer", says: "wait=N holds the request for up to N seconds, at most 60, until the job ends or is blocked"}
	ifMatchHeaderDoc     = header{name: "If-Match", says: "The job's ETag; if it has changed since, nothing is done"}
	ifNoneMatchHeaderDoc = header{name: "If-None-Match", says: "The ETag that the caller has"}
	lastEventIDHeaderDoc = header{name: "Last-Event-ID", says: "The id of the last event seen; the stream begins with a snapshot in any case"}
	jobHeaders           = []string{"ETag", "Location", "Retry-After", replayedHeader, "Preference-Applied"}
)

// anyProblems are what every route behind a credential can answer.
var anyProblems = []onejob.Code{onejob.CodeInvalidRequest, onejob.CodeUnauthenticated, onejob.CodeForbidden, onejob.CodeOverloaded, onejob.CodeInternal, onejob.CodeStoreUnavailable}

// Where in the document things are that several operations share.
const (
	schemaPrefix    = "#/components/schemas/"
	headerPrefix    = "#/components/headers/"
	parameterPrefix = "#/components/parameters/"
)

// document returns the OpenAPI 3.1 document of routes.
func document(routes []route) ([]byte, error) {
	d := documentWriter{registry: huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)}
	d.registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[json.RawMessage]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "onejob", Version: "1",
			Description: "Records one job per intent under an idempotency key, tries it by attempts that never overlap in doubt, and answers with exactly one result. A timeout is unknown, not failed.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Paths: map[string]*huma.PathItem{},
		Components: &huma.Components{
			Schemas: d.registry,
			Headers: map[string]*huma.Param{
				"X-Should-Retry": {Description: "Whether the same request, with the same key, can succeed later", Schema: &huma.Schema{Type: huma.TypeBoolean}},
				"Retry-After":    {Description: "Seconds, 1 to 60", Schema: &huma.Schema{Type: huma.TypeInteger}},
			},
			Parameters: map[string]*huma.Param{
				ownerHeader: {Name: ownerHeader, In: "header", Description: "A sub-owner to act for; needs a credential with act_as", Schema: &huma.Schema{Type: huma.TypeString}},
			},
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "An API key: oj_…"}},
		},
	}
	for _, rt := range routes {
		item := doc.Paths[rt.path()]
		if item == nil {
			item = &huma.PathItem{}
			doc.Paths[rt.path()] = item
		}
		op := d.operation(rt)
		switch rt.method() {
		case http.MethodGet:
			item.Get = op
		case http.MethodPost:
			item.Post = op
		case http.MethodDelete:
			item.Delete = op
		default:
			return nil, fmt.Errorf("the document knows no method %q", rt.method())
		}
	}
	doc.Webhooks = d.webhooks()
	d.finish()
	return json.MarshalIndent(doc, "", "  ")
}

// documentWriter gathers the schemas of the types that operations name.
type documentWriter struct{ registry huma.Registry }

func (d documentWriter) schema(v any) *huma.Schema {
	return d.registry.Schema(reflect.TypeOf(v), true, "")
}

func (d documentWriter) operation(rt route) *huma.Operation {
	o := rt.doc
	op := &huma.Operation{
		OperationID: o.id, Summary: o.summary, Description: o.description,
		Parameters: d.parameters(rt),
		Responses:  map[string]*huma.Response{},
	}
	if rt.role != "" {
		op.Security = []map[string][]string{{"key": {}}}
		op.Description = strings.TrimSpace(op.Description + " Needs the role " + string(rt.role) + ".")
	}
	if o.body != nil {
		op.RequestBody = &huma.RequestBody{Required: !o.bodyOptional, Content: jsonContent("application/json", d.schema(o.body))}
	}
	for _, an := range o.answers {
		op.Responses[strconv.Itoa(an.status)] = d.answer(an)
	}
	d.problems(op, rt)
	return op
}

func (d documentWriter) answer(an answer) *huma.Response {
	resp := &huma.Response{Description: an.says}
	switch {
	case an.body != nil:
		resp.Content = jsonContent("application/json", d.schema(an.body))
	case an.contentType != "":
		resp.Content = map[string]*huma.MediaType{an.contentType: {}}
	}
	for _, name := range an.headers {
		if resp.Headers == nil {
			resp.Headers = map[string]*huma.Param{}
		}
		resp.Headers[name] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return resp
}

// problems adds one response for each status, which names the codes it can carry.
func (d documentWriter) problems(op *huma.Operation, rt route) {
	codes := slices.Clone(rt.doc.problems)
	if rt.role != "" {
		codes = append(codes, anyProblems...)
	} else if len(codes) > 0 {
		codes = append(codes, onejob.CodeStoreUnavailable)
	}
	if strings.Contains(rt.path(), "{") {
		codes = append(codes, onejob.CodeInvalidRequest) // a path that is no text
	}
	byStatus := map[int][]string{}
	for _, code := range codes {
		status := verdicts[code].status
		if !slices.Contains(byStatus[status], string(code)) {
			byStatus[status] = append(byStatus[status], string(code))
		}
	}
	for status, slugs := range byStatus {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(slugs, ", "),
			Headers: map[string]*huma.Param{
				"X-Should-Retry": {Ref: headerPrefix + "X-Should-Retry"},
				"Retry-After":    {Ref: headerPrefix + "Retry-After"},
			},
			Content: jsonContent("application/problem+json", d.schema(Problem{})),
		}
	}
}

func jsonContent(contentType string, s *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{contentType: {Schema: s}}
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

func (d documentWriter) parameters(rt route) []*huma.Param {
	var params []*huma.Param
	for _, m := range pathParameter.FindAllStringSubmatch(rt.path(), -1) {
		params = append(params, &huma.Param{Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	for _, q := range rt.doc.query {
		s := &huma.Schema{Type: huma.TypeString, Format: q.format}
		if q.most > 0 {
			least, most := 1.0, float64(q.most)
			s = &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
		}
		if q.list {
			s = &huma.Schema{Type: huma.TypeArray, Items: s}
		}
		params = append(params, &huma.Param{Name: q.name, In: "query", Description: q.says, Schema: s})
	}
	for _, h := range rt.doc.headers {
		params = append(params, &huma.Param{Name: h.name, In: "header", Description: h.says, Required: h.required, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	if rt.role != "" {
		params = append(params, &huma.Param{Ref: parameterPrefix + ownerHeader})
	}
	return params
}

// finish says of the gathered schemas what their types cannot: the words that
// members are limited to, and that answers may gain members later.
func (d documentWriter) finish() {
	schemas := d.registry.Map()
	words := func(schema, member string, list []any) {
		schemas[schema].Properties[member].Enum = list
	}
	words("Job", "state", wordsOf(onejob.JobStates()))
	words("WebhookJob", "state", wordsOf(onejob.JobStates()))
	words("AttemptSummary", "state", wordsOf(onejob.AttemptStates()))
	words("Attempt", "state", wordsOf(onejob.AttemptStates()))
	words("Attempt", "phase", wordsOf(onejob.Phases()))
	words("Attempt", "outcome", wordsOf(onejob.Outcomes()))
	words("Probe", "outcome", wordsOf(onejob.Outcomes()))
	words("Probe", "method", wordsOf(onejob.ProbeMethods()))
	words("Ruling", "outcome", wordsOf(onejob.Outcomes()))
	words("Blocked", "reason", wordsOf(onejob.BlockReasons()))
	words("Delivery", "state", wordsOf(onejob.DeliveryStates()))
	words("Delivery", "event", wordsOf(onejob.WebhookEvents()))
	schemas["WebhookEndpoint"].Properties["events"].Items.Enum = wordsOf(onejob.WebhookEvents())
	words("Incident", "kind", wordsOf(onejob.IncidentKinds()))
	words("Incident", "state", wordsOf(onejob.IncidentStates()))
	words("Problem", "code", wordsOf(slices.Sorted(maps.Keys(verdicts))))
	words("Problem", "advice", wordsOf([]Advice{AdviceWait, AdviceRetrySameKey, AdviceDoNotResubmit, AdviceFixRequest}))
	for _, schema := range []string{"Job", "JobRequest", "BatchItem", "WebhookJob"} {
		schemas[schema].Properties["metadata"].Type = huma.TypeObject
	}
	for name, s := range schemas {
		if s.Type == huma.TypeObject && !isRequest(name) {
			s.AdditionalProperties = nil
		}
	}
}

func isRequest(schema string) bool {
	return strings.HasSuffix(schema, "Request") || schema == "BatchItem" || schema == "JobWebhook"
}

func wordsOf[T ~string](list []T) []any {
	words := make([]any, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return words
}

// getOpenAPI serves GET /openapi.json.
func (a *api) getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	body, err := a.document()
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func getOpenAPIDoc() operation {
	return operation{
		id: "getOpenAPI", summary: "This document",
		answers: []answer{{status: 200, says: "OpenAPI 3.1", contentType: "application/json"}},
	}
}
