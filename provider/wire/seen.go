package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/onejob-dev/onejob"
)

// Trouble says why there is no complete answer.
type Trouble string

// The troubles, in the order of an exchange. Up to TroubleCutShort the provider
// cannot have had the whole request.
const (
	TroubleNoRequest      Trouble = "no_request"      // the message is not one that HTTP can carry
	TroubleTooLate        Trouble = "too_late"        // send_by passed before the first byte
	TroubleCertificate    Trouble = "certificate"     // the other side is not whom it should be
	TroubleNoConnection   Trouble = "no_connection"   // DNS, dial, TLS
	TroubleNothingWritten Trouble = "nothing_written" // a connection, but no byte left
	TroubleCutShort       Trouble = "cut_short"       // less left than the request is long
	TroubleNoAnswer       Trouble = "no_answer"       // all of it left, then an end without a status
	TroubleSilence        Trouble = "silence"         // all of it left, and we stopped listening
	TroubleTruncated      Trouble = "truncated"       // a status, and a body that breaks off
	TroubleTooLarge       Trouble = "too_large"       // a status, and a body beyond the cap
	TroubleNoEnd          Trouble = "no_end"          // a stream of events without the one that ends it
	TroubleUnwanted       Trouble = "unwanted"        // a stream of events that we left, since another is shown
)

// Finding is what a complete body of a 2xx answer says about the work.
type Finding string

// The findings.
const (
	// FindingFailed : the body says that the work failed.
	FindingFailed Finding = "failed"
	// FindingUnusable : the body lacks what was promised.
	FindingUnusable Finding = "unusable"
	// FindingAccepted : the provider works on it, under [Seen.ProviderID].
	FindingAccepted Finding = "accepted"
)

// Seen is everything that was seen of one exchange.
type Seen struct {
	// What the exchange was for.
	Effect      onejob.Effect
	KeySent     bool
	StreamsBody bool

	Trouble  Trouble // empty: a complete answer
	Error    string  // what the network said, in our words
	Phase    onejob.Phase
	Evidence onejob.Evidence

	Status int // zero: none came
	Header http.Header
	Body   []byte // as much as was read
	// JSON is the document when it parses: numbers as json.Number. Nil otherwise.
	JSON   any
	IsJSON bool

	// MediaType is what the target promises: empty for JSON, "*/*" for
	// anything, an empty body included.
	MediaType  string
	Finding    Finding
	ProviderID string // with FindingAccepted
	Detail     string // what the body says of a failure, in its own words

	document []byte // of a stream of events: what they add up to
	events   bool   // such a stream was asked for; it may come as a whole all the same
	framed   bool   // the answer said how long it is
	scrub    func(string) string
}

func (s *Seen) is2xx() bool { return s.Status >= 200 && s.Status <= 299 }

// Received is what was seen of a report that a provider sent by itself.
func Received(header http.Header, body []byte) *Seen {
	s := &Seen{Status: http.StatusOK, Header: header, Body: body, framed: true, scrub: func(text string) string { return text }}
	s.parse()
	return s
}

// Document is the body, or of a stream of events what they add up to.
func (s *Seen) Document() []byte {
	if s.document != nil {
		return s.document
	}
	return s.Body
}

// parse reads the document as one JSON value, exactly.
func (s *Seen) parse() {
	s.JSON, s.IsJSON = nil, false
	d := json.NewDecoder(bytes.NewReader(s.Document()))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return
	}
	s.JSON, s.IsJSON = v, true
}

// promisedType reports whether the answer is of the type that the target promises.
func (s *Seen) promisedType() bool {
	got, _, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	switch {
	case s.MediaType == "*/*":
		return true
	case err != nil:
		return false
	case s.wantsJSON(), s.events && got != EventStream: // who makes no stream answers, or fails, as a whole
		return got == "application/json" || strings.HasSuffix(got, "+json")
	}
	return got == s.MediaType
}

func (s *Seen) wantsJSON() bool { return s.MediaType == "" || s.MediaType == "application/json" }

// whole reports whether the body shows that it is complete: it was framed, or it
// is JSON that closes what it opened. A bare number may be the start of another.
func (s *Seen) whole() bool {
	if (s.wantsJSON() || s.events) && !s.IsJSON {
		return false
	}
	if s.framed {
		return true
	}
	_, number := s.JSON.(json.Number)
	return s.IsJSON && !number
}

// cut reports whether the body may lack its end.
func (s *Seen) cut() bool { return s.Trouble != "" || (!s.framed && !s.whole()) }

// member returns a top-level member of a JSON body, nil when there is none.
func (s *Seen) member(name string) any {
	object, _ := s.JSON.(map[string]any)
	return object[name]
}

// requestIDHeaders are the headers that hold the provider's name for the request.
var requestIDHeaders = []string{"X-Request-Id", "Request-Id"}

func (s *Seen) requestID() string {
	for _, name := range requestIDHeaders {
		if id := s.Header.Get(name); id != "" {
			return printable(s.scrub(id), maxIDLength)
		}
	}
	return ""
}

const (
	maxIDLength = 200
	maxExcerpt  = 2 << 10
	maxDetail   = 300
)

// excerpt is the start of the body.
func (s *Seen) excerpt() string {
	return clip(s.scrub(strings.ToValidUTF8(string(s.Body), "\uFFFD")), maxExcerpt)
}

// detail is what an error body says, in its own words.
func (s *Seen) detail() string {
	if s.Detail != "" {
		return printable(s.scrub(s.Detail), maxDetail)
	}
	return printable(s.scrub(errorText(s.JSON)), maxDetail)
}

// Sentence is what an error body says in its own words, or else otherwise.
func (s *Seen) Sentence(otherwise string) string { return cmp.Or(s.detail(), otherwise) }

// Complaint is why an exchange that was no work brought no answer, free of secrets.
func (s *Seen) Complaint() string {
	if s.Status != 0 {
		return fmt.Sprintf("it answered %d: %s", s.Status, s.Sentence("without a reason"))
	}
	return cmp.Or(s.Evidence.Error, "no answer came")
}

// errorText finds the sentence in the usual shapes of an error body.
func errorText(body any) string {
	object, _ := body.(map[string]any)
	switch e := object["error"].(type) {
	case string:
		return e
	case map[string]any:
		text, _ := e["message"].(string)
		return text
	}
	for _, name := range []string{"message", "detail", "title"} {
		if text, _ := object[name].(string); text != "" {
			return text
		}
	}
	return ""
}

// printable keeps a provider's text from forging lines. Secrets are blotted out before:
// of one that is cut in its middle nobody would find the rest.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	return clip(text, limit)
}

// clip cuts text to at most limit bytes, between runes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
