package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// readJSON reads a whole body within its bounds. Size and media type come before
// anything else that is said of it. A body that is not there is nil.
func (a *api) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > int64(a.opts.MaxBodyBytes) {
		return nil, a.tooLarge()
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	body, err := readAll(w, r, int64(a.opts.MaxBodyBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, a.tooLarge()
	case err != nil:
		return nil, &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "the body did not arrive whole", Err: err}
	}
	return body, nil
}

func (a *api) tooLarge() error {
	return &onejob.Error{
		Code:    onejob.CodePayloadTooLarge,
		Message: fmt.Sprintf("the body is larger than %d bytes", a.opts.MaxBodyBytes),
	}
}

// readNothing refuses members of a body where none are known.
func (a *api) readNothing(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	return decode(body, &struct{}{})
}

// readAll reads a body of at most so many bytes. One that is announced is no longer
// than that: the server sees to it.
func readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// checkMedia takes JSON as it is. A form, which any page can send, is refused, and
// so is whatever would have to be unpacked.
func checkMedia(h http.Header) error {
	switch {
	case !isPlainJSON(h.Get("Content-Type")):
		return &onejob.Error{Code: onejob.CodeUnsupportedMedia, Message: "send Content-Type: application/json"}
	case h.Get("Content-Encoding") != "" && !strings.EqualFold(h.Get("Content-Encoding"), "identity"):
		return &onejob.Error{Code: onejob.CodeUnsupportedMedia, Message: "send the body without Content-Encoding"}
	}
	return nil
}

// isPlainJSON reports whether a Content-Type is that of JSON in UTF-8.
func isPlainJSON(contentType string) bool {
	if contentType == "application/json" { // as nearly everybody writes it
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// isText reports whether every store can keep s: PostgreSQL takes neither a NUL nor
// what is no UTF-8.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// checkText refuses a member of a body that no store can keep as text.
func checkText(name, value string) error {
	if isText(value) {
		return nil
	}
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: fmt.Sprintf("member %q holds a NUL character", name)}
}

// invalid says what is wrong with a request.
func invalid(format string, args ...any) error {
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// decode reads one JSON value strictly: member names as they are written, none
// unknown, none twice.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "a JSON body is required"}
	}
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if _, why := onejob.Canonical(body); why != nil {
		return why // no JSON, or one that two readers could take differently
	}
	return invalidMember(err)
}

// invalidMember says which member is wrong. It never shows a value.
func invalidMember(err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "the body is not valid", Err: err}
	}
	where := shorten(strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", "."))
	message := fmt.Sprintf("member %q is not %s", where, wanted(semantic.GoType))
	switch {
	case errors.Is(err, json.ErrUnknownName):
		message = fmt.Sprintf("member %q is not known", where)
	case where == "":
		message = "the body is not a JSON object"
	}
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: message, Err: err}
}

func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// wanted says in a reader's words what a member must be.
func wanted(t reflect.Type) string {
	if t == nil {
		return "as it should be"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		if t.String() == "time.Time" {
			return "an RFC 3339 time"
		}
		return "an object"
	default:
		return "as it should be"
	}
}

// isObject reports whether a raw value, already read, is a JSON object.
func isObject(raw jsontext.Value) bool { return raw.Kind() == '{' }
