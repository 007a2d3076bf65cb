// Package httpapi is the JSON API of a server. It translates: a handler decodes,
// makes one call, and encodes. What is allowed and what follows, the root package
// and the store decide.
//
// Routes are in routes.go, one handler in each verb_noun.go, and the only place
// where a code becomes an HTTP status in problem.go. The OpenAPI document is made
// from the types that the handlers decode and encode.
package httpapi

//go:generate go test . -run TestTheCommittedDocumentIsTheServed -update
