package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// Reading is how one target's answers are read. The zero value reads JSON whose
// body may say that it failed.
type Reading struct {
	// MediaType is the promised type of a success: empty for JSON, "*/*" for
	// anything, an empty body included.
	MediaType string
	// Rules override the table. Nil: none do.
	Rules *Rules
	// InspectFunc looks into a complete JSON body of a 2xx answer and sets
	// Finding, Detail, ProviderID. Nil: [SaysFailed].
	InspectFunc func(*Seen)
	// IDFunc finds the provider's own id for work that a rule says was accepted. Nil,
	// or no id: that is doubt.
	IDFunc func(*Seen) string
	// PriceFunc tells what an answer cost, from a complete JSON body. It may be
	// asked about failures. Nil: no price is told.
	PriceFunc func(*Seen) Price
	// NowFunc is the clock for a Retry-After date without a Date. Nil: [time.Now].
	NowFunc func() time.Time
}

// Price is what a provider counted and charged.
type Price struct {
	CostMicros int64
	Currency   string // empty: no price was told
	Usage      json.RawMessage
	Model      string // as the provider named it
}

// Read says what an exchange proves, in the words of a [onejob.Provider].
func (r *Reading) Read(s *Seen) (onejob.Answer, error) {
	s.MediaType = r.MediaType
	if s.events {
		s.MediaType = EventStream
	}
	if s.is2xx() && s.Trouble == "" && s.IsJSON {
		r.inspect(s)
	}
	row := s.prove()
	if rule, ok := r.Rules.decide(s); ok {
		row, s.Evidence.Rule = rule.row(s), rule.When
	}
	if row.Outcome == accepted && s.ProviderID == "" && r.IDFunc != nil {
		s.ProviderID = r.IDFunc(s)
	}
	if row.Outcome == accepted && s.ProviderID == "" {
		row.Outcome, row.Code = unknown, "accepted_without_id"
	}
	if row.Outcome != succeeded && row.Outcome != accepted {
		s.Evidence.Excerpt = s.excerpt()
	}
	return r.tell(s, row)
}

func (r *Reading) inspect(s *Seen) {
	if r.InspectFunc == nil {
		SaysFailed(s)
		return
	}
	r.InspectFunc(s)
}

func (r *Reading) tell(s *Seen, row Row) (onejob.Answer, error) {
	price := r.price(s)
	s.Evidence.Model = printable(s.scrub(price.Model), maxIDLength)
	failure := onejob.Failure{Code: row.Code, Message: s.message(row)}
	wait := r.retryAfter(s.Header)
	if proof, isError := proofOf(row.Outcome); isError {
		return onejob.Answer{}, &onejob.CallError{
			Proof: proof, Failure: failure, Next: row.Next, RetryAfter: wait, Phase: s.Phase, Evidence: s.Evidence,
			CostMicros: price.CostMicros, Currency: price.Currency, Usage: price.Usage,
		}
	}
	a := onejob.Answer{
		Outcome: row.Outcome, Next: row.Next, RetryAfter: wait, Phase: s.Phase, Evidence: s.Evidence,
		CostMicros: price.CostMicros, Currency: price.Currency, Usage: price.Usage,
	}
	switch row.Outcome {
	case succeeded:
		a.Body, a.ContentType = s.Body, s.Header.Get("Content-Type")
	case accepted:
		a.ProviderID = s.ProviderID
	default:
		a.Failure = &failure
	}
	return a, nil
}

// Unsent is the error for work that cannot be put on the wire at any target: the
// input is at fault. Nothing left. Message must be free of secrets.
func Unsent(code, message string) error { return unsent(code, message, nowhere) }

func unsent(code, message string, next onejob.Next) error {
	message = printable(message, maxDetail)
	return &onejob.CallError{
		Proof: onejob.ErrNotSent, Failure: onejob.Failure{Code: code, Message: message}, Next: next,
		Phase: onejob.PhaseNotSent, Evidence: onejob.Evidence{Error: message},
	}
}

// proofOf says which error an outcome is told by, if by one.
func proofOf(o onejob.Outcome) (proof error, isError bool) {
	switch o {
	case notExecuted:
		return onejob.ErrNotSent, true
	case refused:
		return onejob.ErrRefused, true
	case failed, lost, succeeded, accepted:
		return nil, false
	default: // doubt
		return nil, true
	}
}

func (r *Reading) price(s *Seen) Price {
	if r.PriceFunc == nil || !s.IsJSON || s.Trouble != "" {
		return Price{}
	}
	return r.PriceFunc(s).Bounded(&s.Evidence)
}

func (r *Reading) retryAfter(h http.Header) time.Duration {
	if h == nil {
		return 0
	}
	now := time.Now
	if r.NowFunc != nil {
		now = r.NowFunc
	}
	return RetryAfter(h, now())
}

// message is a sentence for people, free of secrets.
func (s *Seen) message(row Row) string {
	text := s.scrub(s.Error)
	if s.Status != 0 {
		text = fmt.Sprintf("the provider answered %d", s.Status)
		if detail := s.detail(); detail != "" {
			text += ": " + detail
		}
	}
	if text == "" {
		text = row.Condition
	}
	if s.Trouble != "" && s.Status != 0 {
		text += " (" + row.Condition + ")"
	}
	return text
}

// SaysFailed finds a failure in a top-level member error that says something, or
// a member status of "failed" or "error".
func SaysFailed(s *Seen) {
	word, _ := s.member("status").(string)
	if says(s.member("error")) || word == "failed" || word == "error" {
		s.Finding = FindingFailed
	}
}

// says reports whether a member holds something: providers also write null,
// false, zero and emptiness for "no error".
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		return v.String() != "0"
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
