package wire

import (
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Row is one line of the table of outcomes: when its condition holds, and no row
// above it did, the exchange proves Outcome.
type Row struct {
	Code      string // of the [onejob.Failure]; also names the row
	Condition string // in words
	Outcome   onejob.Outcome
	Next      onejob.Next // empty: the outcome alone decides

	when func(*Seen) bool
}

// Short names for the table.
const (
	notExecuted = onejob.OutcomeNotExecuted
	refused     = onejob.OutcomeRefused
	failed      = onejob.OutcomeExecutedFailed
	succeeded   = onejob.OutcomeSucceeded
	accepted    = onejob.OutcomeAccepted
	unknown     = onejob.OutcomeUnknown
	lost        = onejob.OutcomeResultLost

	again     = onejob.NextAgain
	elsewhere = onejob.NextElsewhere
	nowhere   = onejob.NextNowhere
)

// table says what an exchange proves. The first row whose condition holds
// decides; the last one always holds, and it is doubt. Nothing else in the
// program knows what a status means.
var table = []Row{
	// The whole request never left.
	{"request_invalid", "the request cannot be put on the wire", notExecuted, nowhere, trouble(TroubleNoRequest)},
	{"send_by_passed", "send_by passed before the first byte", notExecuted, again, trouble(TroubleTooLate)},
	{"tls_certificate", "TLS certificate error", notExecuted, elsewhere, trouble(TroubleCertificate)},
	{"no_connection", "DNS error, dial refused or timed out, TLS failure", notExecuted, again, trouble(TroubleNoConnection)},
	{"nothing_written", "connection taken, nothing written", notExecuted, again, trouble(TroubleNothingWritten)},
	{"cut_short_streamed", "fewer bytes out than the request is long, at a target that acts on a part", unknown, "", both(trouble(TroubleCutShort), streamsBody)},
	{"cut_short", "fewer bytes out than the request is long", notExecuted, again, trouble(TroubleCutShort)},

	// It left, and no whole answer came.
	{"no_answer", "whole request written, then an end without a status", unknown, "", trouble(TroubleNoAnswer)},
	{"silence", "whole request written, then silence", unknown, "", trouble(TroubleSilence)},
	{"answer_truncated", "2xx with a truncated body", lost, "", both(success, trouble(TroubleTruncated))},
	{"answer_too_large", "2xx with a body beyond the cap", lost, "", both(success, trouble(TroubleTooLarge))},
	{"stream_without_end", "a stream of events that ends before the one that ends it", lost, "", both(success, trouble(TroubleNoEnd))},
	{"stream_left", "a stream of events that was left, since another attempt's answer is shown", lost, "", both(success, trouble(TroubleUnwanted))},

	// 2xx, complete.
	{"accepted", "202 or 200 with a provider id", accepted, "", both(success, finding(FindingAccepted))},
	{"accepted_without_id", "202 without a provider id", unknown, "", status(202)},
	{"answer_empty", "2xx, empty", lost, "", both(success, empty)},
	{"answer_wrong_type", "2xx, not the promised content type", lost, "", both(success, wrongType)},
	{"answer_unreadable", "2xx that does not parse or lacks its end", lost, "", both(success, notWhole)},
	{"provider_failed", "2xx whose body says that it failed", failed, elsewhere, both(success, finding(FindingFailed))},
	{"answer_unusable", "2xx that lacks what was promised", lost, "", both(success, finding(FindingUnusable))},
	{"succeeded", "2xx, valid", succeeded, "", success},

	// The provider says no.
	{"redirected", "3xx, never followed", refused, nowhere, statuses(300, 399)},
	{"input_refused", "400, 404, 405, 410, 413, 414, 415, 422, 431, 451, 501, 505", refused, nowhere, status(400, 404, 405, 410, 413, 414, 415, 422, 431, 451, 501, 505)},
	{"access_refused", "401, 402, 403", refused, elsewhere, status(401, 402, 403)},
	{"quota_exhausted", "429 whose body says that a quota is used up", refused, elsewhere, both(status(429), quota)},
	{"rate_limited", "425, 429, 529", refused, again, status(425, 429, 529)},
	{"key_in_use", "409 after we sent a key: the first may still be at work", unknown, "", both(status(409), keySent)},
	{"conflict", "409 without a key", refused, again, status(409)},
	{"overloaded", "503 with Retry-After or a known overload body", refused, again, both(status(503), overload)},

	// The handler, or something before it, broke.
	{"provider_error", "500 under effect none", failed, again, both(status(500), effectNone)},
	{"origin_unreached", "521, 523, 525, 526, 530", notExecuted, again, status(521, 523, 525, 526, 530)},
	{"provider_error_unproven", "408, 499, 500, 502, 503, 504, 520, 522, 524", unknown, "", status(408, 499, 500, 502, 503, 504, 520, 522, 524)},
	{"status_unknown", "anything else", unknown, "", func(*Seen) bool { return true }},
}

// Table returns the rows in the order in which they are consulted.
func Table() []Row { return slices.Clone(table) }

// prove finds the row that decides.
func (s *Seen) prove() Row {
	i := slices.IndexFunc(table, func(r Row) bool { return r.when(s) })
	return table[i]
}

// Conditions.

func both(a, b func(*Seen) bool) func(*Seen) bool {
	return func(s *Seen) bool { return a(s) && b(s) }
}

// trouble of an answer that is no success does not matter: its status decides.
func trouble(t Trouble) func(*Seen) bool {
	return func(s *Seen) bool { return s.Trouble == t && (s.Status == 0 || s.is2xx()) }
}

func finding(f Finding) func(*Seen) bool { return func(s *Seen) bool { return s.Finding == f } }

func status(codes ...int) func(*Seen) bool {
	return func(s *Seen) bool { return slices.Contains(codes, s.Status) }
}

func statuses(from, to int) func(*Seen) bool {
	return func(s *Seen) bool { return s.Status >= from && s.Status <= to }
}

func success(s *Seen) bool     { return s.is2xx() }
func empty(s *Seen) bool       { return len(s.Body) == 0 && s.MediaType != "*/*" }
func wrongType(s *Seen) bool   { return !s.promisedType() }
func notWhole(s *Seen) bool    { return !s.whole() }
func streamsBody(s *Seen) bool { return s.StreamsBody }
func keySent(s *Seen) bool     { return s.KeySent }
func effectNone(s *Seen) bool  { return s.Effect == onejob.EffectNone }

// quota tells a used-up allowance, which waiting does not mend, from a rate limit.
func quota(s *Seen) bool {
	return s.mentions("insufficient_quota", "exceeded your current quota", "billing_hard_limit", "credit balance")
}

// overload is a 503 whose server says that it turned the request away.
func overload(s *Seen) bool {
	return s.Header.Get("Retry-After") != "" || s.errorKind("overloaded", "overloaded_error", "server_overloaded", "rate_limit_exceeded", "slow_down")
}

func (s *Seen) mentions(texts ...string) bool {
	body := strings.ToLower(string(s.Body))
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(body, t) })
}

// errorKind reports whether the body is a JSON error of one of the kinds.
func (s *Seen) errorKind(kinds ...string) bool {
	e, ok := s.member("error").(map[string]any)
	if !ok {
		e, _ = s.JSON.(map[string]any)
	}
	for _, name := range []string{"type", "code"} {
		if kind, _ := e[name].(string); slices.Contains(kinds, strings.ToLower(kind)) {
			return true
		}
	}
	return false
}
