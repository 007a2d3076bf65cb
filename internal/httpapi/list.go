package httpapi

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	defaultPage = 50
	maxPage     = 200
)

// query reads the parameters of a list, each at most once unless it says so. The
// first fault is kept.
type query struct {
	values url.Values
	err    error
}

// queryOf refuses parameters that are not known: a filter that is misspelt would
// otherwise list everything.
func queryOf(r *http.Request, known ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.refuse("the query is not valid")
	}
	for name, list := range values {
		switch {
		case !slices.Contains(known, name):
			q.refuse("parameter %q is not known; there are %s", shorten(name), cmp.Or(strings.Join(known, ", "), "none"))
		case len(list) > 1 && name != "state":
			q.refuse("parameter %q is there twice", name)
		case name != "idempotency_key" && slices.ContainsFunc(list, func(s string) bool { return !isText(s) }):
			q.refuse("parameter %q is no text: it holds a NUL character or is not UTF-8", name)
		}
	}
	return q
}

func (q *query) refuse(format string, args ...any) {
	if q.err == nil {
		q.err = &onejob.Error{Code: onejob.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) time(name string) time.Time {
	s := q.text(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.refuse("parameter %q is not an RFC 3339 time, as in 2026-03-01T09:30:00Z", name)
	}
	return t
}

func (q *query) limit() int {
	s := q.text("limit")
	if s == "" {
		return defaultPage
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPage {
		q.refuse("limit is 1 to %d", maxPage)
	}
	return n
}

// states reads one state or several, with commas or as several parameters.
func states[T ~string](q *query, all []T) []T {
	var picked []T
	for _, list := range q.values["state"] {
		for s := range strings.SplitSeq(list, ",") {
			if !slices.Contains(all, T(s)) {
				q.refuse("there is no state %q; there are %s", shorten(s), listed(all))
			}
			picked = append(picked, T(s))
		}
	}
	return picked
}

// listed names what there is.
func listed[T ~string](words []T) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}

// cursor reads the place where the page of jobs or attempts before ended.
func (q *query) cursor() *onejob.JobCursor { return q.cursorAt(onejob.PartOfID) }

// cursorAt is cursor for rows whose ids partOf knows.
func (q *query) cursorAt(partOf func(id string) (part uint8, ok bool)) *onejob.JobCursor {
	at, id, ok := q.place()
	if !ok {
		return nil
	}
	if _, isID := partOf(id); !isID {
		q.refuseCursor()
		return nil
	}
	return &onejob.JobCursor{CreatedAt: at, ID: id}
}

// place reads what cursorOf wrote. It reports false when there is no cursor, or
// none of ours.
func (q *query) place() (at time.Time, id string, ok bool) {
	s := q.text("cursor")
	if s == "" {
		return at, "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	nanos, id, found := strings.Cut(string(raw), " ")
	n, nErr := strconv.ParseInt(nanos, 10, 64)
	if err != nil || nErr != nil || !found || !isText(id) {
		q.refuseCursor()
		return at, "", false
	}
	return time.Unix(0, n).UTC(), id, true
}

func (q *query) refuseCursor() {
	q.refuse("the cursor is not one of ours; use next_cursor as it came")
}

func cursorOf(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", at.UnixNano(), id))
}

// scope is whose rows a list holds: for an admin anybody's or the owner's asked for.
func (q *query) scope(c caller) string {
	if owner := q.text("owner"); owner != "" {
		if c.scope != "" {
			if q.err == nil {
				q.err = &onejob.Error{Code: onejob.CodeForbidden, Message: "only an admin may list by owner"}
			}
			return c.scope
		}
		return owner
	}
	return c.scope
}

// writeItems answers with a list of encoded values.
func writeItems(w http.ResponseWriter, items [][]byte, nextCursor string) {
	size := len(nextCursor) + 64
	for _, item := range items {
		size += len(item) + 1
	}
	body := append(make([]byte, 0, size), `{"items":[`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	body = append(body, ']')
	if nextCursor != "" {
		body = append(body, `,"next_cursor":"`+nextCursor+`"`...) // base64 needs no escapes
	}
	write(w, http.StatusOK, "application/json", append(body, '}'))
}
