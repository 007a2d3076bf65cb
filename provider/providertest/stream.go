package providertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// StreamOptions describe to [RunStreams] a provider whose answers can arrive in pieces.
type StreamOptions struct {
	// Open is as in [Options].
	Open func(t testing.TB, url string) onejob.Provider

	Input  string   // one that asks for a stream
	Events []string // of a good answer, each with its blank line; the last says that it is whole
	First  int      // which of them is the first to show anything of the answer
	Failed string   // the event of a failure
	Error  string   // the JSON body of a failure
	Whole  string   // the JSON body of a good answer, of a server that makes no streams
	// MaxResponseBytes is the cap that Open sets.
	MaxResponseBytes int
}

// RunStreams runs the suite of answers that arrive in pieces as subtests.
func RunStreams(t *testing.T, opts StreamOptions) {
	t.Helper()
	s := streams{opts}
	for name, test := range map[string]func(streams, *testing.T){
		"Stream/IsShownAsItComes":                streams.shown,
		"Stream/IsReadHoweverItIsCut":            streams.split,
		"Stream/NeedsNobodyToShowItTo":           streams.unseen,
		"Stream/WithoutItsEndIsLost":             streams.cut,
		"Stream/ThatBreaksOffIsLost":             streams.broken,
		"Stream/ThatFailsHasFailed":              streams.failed,
		"Stream/ThatFailsFirstShowsNothing":      streams.failedFirst,
		"Stream/ThatNobodyWantsIsLeft":           streams.unwanted,
		"Stream/ThatStandsStillIsDoubt":          streams.silent,
		"Stream/IsCapped":                        streams.capped,
		"Stream/OfAnotherTypeIsLost":             streams.wrongType,
		"Stream/AFailureBeforeItIsAFailure":      streams.refusedWhole,
		"Stream/MayBeAnsweredAsAWhole":           streams.whole,
		"Stream/AWholeAnswerIsJudgedAsAnyOther":  streams.wholeJudged,
		"Stream/IsOneAnswerAmongOthersOfAClient": streams.reused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(s, t)
		})
	}
}

type streams struct{ opts StreamOptions }

// begin sends the head of a stream.
func (x *Exchange) begin() {
	x.Write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n")
}

// send sends a part of a stream.
func (x *Exchange) send(part string) {
	if part != "" {
		x.Write(fmt.Sprintf("%x\r\n%s\r\n", len(part), part))
	}
}

// end ends the body of a stream.
func (x *Exchange) end() { x.Write("0\r\n\r\n") }

func (s streams) all() string { return strings.Join(s.opts.Events, "") }

// shows is what of the answer can be shown: all but its end.
func (s streams) shows() string { return strings.Join(s.opts.Events[:len(s.opts.Events)-1], "") }

// call makes one call to a server that answers so, and returns what was shown.
func (s streams) call(t *testing.T, answer func(*Exchange), change ...func(*onejob.Request)) (onejob.Answer, string, error) {
	t.Helper()
	srv := Serve(t, answer)
	p := s.opts.Open(t, srv.URL)
	t.Cleanup(func() { closeIdle(p) })
	var shown strings.Builder
	req := onejob.Request{
		JobID: "job_1", AttemptID: "att_1", Number: 1, Kind: "kind", Target: "target", Effect: onejob.EffectExternal,
		Input: []byte(s.opts.Input), ProviderKey: ProviderKey, SendBy: time.Now().Add(time.Minute), SendWithin: time.Minute,
		Chunk: func(piece []byte) error {
			shown.Write(piece)
			return nil
		},
	}
	for _, c := range change {
		c(&req)
	}
	a, err := p.Call(t.Context(), req)
	executedOnce(t, srv)
	if asked := srv.Asked(); len(asked) > 0 && asked[0].Header.Get("Accept") != "text/event-stream" {
		t.Errorf("the request accepts %q; want a stream of events", asked[0].Header.Get("Accept"))
	}
	return a, shown.String(), err
}

func (s streams) wantWhole(t *testing.T, a onejob.Answer, err error) {
	t.Helper()
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != s.all() || !strings.HasPrefix(a.ContentType, "text/event-stream") {
		t.Errorf("answer = %q %q %q, %v; want the stream byte for byte", a.Outcome, a.ContentType, a.Body, err)
	}
	if len(a.Usage) == 0 {
		t.Error("the usage that the stream tells is not told")
	}
}

// wantOutcome checks an answer without a result.
func wantOutcome(t *testing.T, a onejob.Answer, err error, want onejob.Outcome, code string) {
	t.Helper()
	if err != nil || a.Outcome != want || a.Failure == nil || a.Failure.Code != code || a.Body != nil {
		t.Errorf("answer = %q, failure %+v, %v; want %q by %q and no result", a.Outcome, a.Failure, err, want, code)
	}
}

// Each event is sent once the one before it was shown. The head is shown with the first
// that has something of the answer.
func (s streams) shown(t *testing.T) {
	seen := make(chan string, len(s.opts.Events))
	var shown strings.Builder
	a, _, err := s.call(t, func(x *Exchange) {
		x.begin()
		for i, event := range s.opts.Events {
			x.send(event)
			if i < s.opts.First || i == len(s.opts.Events)-1 {
				continue
			}
			want := event
			if i == s.opts.First {
				want = strings.Join(s.opts.Events[:i+1], "")
			}
			select {
			case got := <-seen:
				if got != want {
					t.Errorf("after event %d %q was shown; want %q", i, got, want)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("event %d is not shown before the next has come", i)
				return
			}
		}
		x.end()
	}, func(r *onejob.Request) {
		r.Chunk = func(piece []byte) error {
			shown.Write(piece)
			seen <- string(piece)
			return nil
		}
	})
	s.wantWhole(t, a, err)
	if shown.String() != s.shows() {
		t.Errorf("shown was %q; want %q", shown.String(), s.shows())
	}
}

func (s streams) split(t *testing.T) {
	for _, size := range []int{1, 7, len(s.all())} {
		a, shown, err := s.call(t, func(x *Exchange) {
			x.begin()
			for part := s.all(); part != ""; {
				n := min(size, len(part))
				x.send(part[:n])
				part = part[n:]
			}
			x.end()
		})
		s.wantWhole(t, a, err)
		if shown != s.shows() {
			t.Errorf("in parts of %d bytes %q was shown; want %q", size, shown, s.shows())
		}
	}
	crlf := strings.ReplaceAll(s.all(), "\n", "\r\n")
	a, shown, err := s.call(t, func(x *Exchange) { x.begin(); x.send(crlf); x.end() })
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != crlf || shown != strings.ReplaceAll(s.shows(), "\n", "\r\n") {
		t.Errorf("with CRLF: answer = %q %q, shown %q, %v", a.Outcome, a.Body, shown, err)
	}
	bare := strings.TrimRight(s.all(), "\n")
	a, shown, err = s.call(t, func(x *Exchange) { x.begin(); x.send(bare); x.end() })
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != bare || shown != s.shows() {
		t.Errorf("without the last blank line: answer = %q %q, shown %q, %v", a.Outcome, a.Body, shown, err)
	}
	commented := ": ping\n\n" + strings.Join(s.opts.Events, ": ping\n\n")
	a, _, err = s.call(t, func(x *Exchange) { x.begin(); x.send(commented); x.end() })
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != commented {
		t.Errorf("with comments: answer = %q %q, %v", a.Outcome, a.Body, err)
	}
}

func (s streams) unseen(t *testing.T) {
	a, _, err := s.call(t, func(x *Exchange) { x.begin(); x.send(s.all()); x.end() }, func(r *onejob.Request) { r.Chunk = nil })
	s.wantWhole(t, a, err)
}

// net/http reports success for every one of these.
func (s streams) cut(t *testing.T) {
	for n := range len(s.opts.Events) {
		part := strings.Join(s.opts.Events[:n], "")
		a, shown, err := s.call(t, func(x *Exchange) { x.begin(); x.send(part); x.end() })
		wantOutcome(t, a, err, onejob.OutcomeResultLost, "stream_without_end")
		if want := part; n > s.opts.First && shown != want {
			t.Errorf("after %d events %q was shown; want %q", n, shown, want)
		}
	}
	half := s.shows() + s.opts.Events[len(s.opts.Events)-1][:3]
	a, _, err := s.call(t, func(x *Exchange) { x.begin(); x.send(half); x.end() })
	wantOutcome(t, a, err, onejob.OutcomeResultLost, "stream_without_end")
}

func (s streams) broken(t *testing.T) {
	a, shown, err := s.call(t, func(x *Exchange) { x.begin(); x.send(s.shows()); x.Close() })
	wantOutcome(t, a, err, onejob.OutcomeResultLost, "answer_truncated")
	if shown != s.shows() {
		t.Errorf("shown was %q; want %q", shown, s.shows())
	}
	a, _, err = s.call(t, func(x *Exchange) { x.begin(); x.send(s.all()); x.Close() })
	s.wantWhole(t, a, err) // what breaks off after its end is whole
}

func (s streams) failed(t *testing.T) {
	a, shown, err := s.call(t, func(x *Exchange) { x.begin(); x.send(s.shows() + s.opts.Failed); x.end() })
	wantOutcome(t, a, err, onejob.OutcomeExecutedFailed, "provider_failed")
	if shown != s.shows() {
		t.Errorf("shown was %q; want %q", shown, s.shows())
	}
}

func (s streams) failedFirst(t *testing.T) {
	head := strings.Join(s.opts.Events[:s.opts.First], "")
	a, shown, err := s.call(t, func(x *Exchange) { x.begin(); x.send(head); x.send(s.opts.Failed); x.end() })
	wantOutcome(t, a, err, onejob.OutcomeExecutedFailed, "provider_failed")
	if shown != "" {
		t.Errorf("%q was shown; want nothing", shown)
	}
}

func (s streams) unwanted(t *testing.T) {
	gone := make(chan struct{})
	a, _, err := s.call(t, func(x *Exchange) {
		x.begin()
		x.send(s.shows())
		x.Wait()
		close(gone)
	}, func(r *onejob.Request) {
		r.Chunk = func([]byte) error { return errors.New("nobody wants it") }
	})
	wantOutcome(t, a, err, onejob.OutcomeResultLost, "stream_left")
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the connection of a stream that was left is still open")
	}
}

func (s streams) silent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := Serve(t, func(x *Exchange) {
		x.begin()
		x.send(s.shows())
		x.Wait()
	})
	p := s.opts.Open(t, srv.URL)
	t.Cleanup(func() { closeIdle(p) })
	a, err := p.Call(ctx, onejob.Request{
		Input: []byte(s.opts.Input), SendBy: time.Now().Add(time.Minute), SendWithin: time.Minute,
		Chunk: func([]byte) error { cancel(); return nil },
	})
	proves(t, a, err, nil)
}

func (s streams) capped(t *testing.T) {
	long := s.shows() + strings.Repeat(": more\n\n", s.opts.MaxResponseBytes/4)
	a, _, err := s.call(t, func(x *Exchange) { x.begin(); x.send(long); x.Wait() })
	wantOutcome(t, a, err, onejob.OutcomeResultLost, "answer_too_large")
}

func (s streams) wrongType(t *testing.T) {
	a, shown, err := s.call(t, func(x *Exchange) { x.AnswerAs("text/html", http.StatusOK, s.all()) })
	wantOutcome(t, a, err, onejob.OutcomeResultLost, "answer_wrong_type")
	if shown != "" {
		t.Errorf("%q was shown; want nothing", shown)
	}
}

func (s streams) refusedWhole(t *testing.T) {
	a, _, err := s.call(t, func(x *Exchange) { x.Answer(http.StatusOK, s.opts.Error) })
	wantOutcome(t, a, err, onejob.OutcomeExecutedFailed, "provider_failed")
	a, _, err = s.call(t, func(x *Exchange) { x.Answer(http.StatusTooManyRequests, s.opts.Error) })
	proves(t, a, err, onejob.ErrRefused)
}

// A server that makes no streams answers as if none had been asked for. Nothing of it is
// shown before it is whole.
func (s streams) whole(t *testing.T) {
	for _, how := range []string{"application/json", "application/json; charset=utf-8", "application/vnd.acme+json"} {
		a, shown, err := s.call(t, func(x *Exchange) { x.AnswerAs(how, http.StatusOK, s.opts.Whole) })
		if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != s.opts.Whole || a.ContentType != how || len(a.Usage) == 0 {
			t.Errorf("answer = %q %q %q, usage %s, %v; want the body byte for byte, and its usage", a.Outcome, a.ContentType, a.Body, a.Usage, err)
		}
		if shown != "" {
			t.Errorf("%q was shown; want nothing", shown)
		}
	}
	a, _, err := s.call(t, func(x *Exchange) {
		x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + s.opts.Whole)
		x.Close()
	})
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != s.opts.Whole {
		t.Errorf("without a length: answer = %q %q, %v; want the body byte for byte", a.Outcome, a.Body, err)
	}
}

func (s streams) wholeJudged(t *testing.T) {
	half := s.opts.Whole[:len(s.opts.Whole)/2]
	cut := func(head string) func(*Exchange) {
		return func(x *Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head + "\r\n" + half)
			x.Close()
		}
	}
	as := func(contentType, body string) func(*Exchange) {
		return func(x *Exchange) { x.AnswerAs(contentType, http.StatusOK, body) }
	}
	for _, tt := range []struct {
		code   string
		answer func(*Exchange)
	}{
		{"answer_truncated", cut(fmt.Sprintf("Content-Length: %d\r\n", len(s.opts.Whole)))},
		{"answer_unreadable", cut("")},
		{"answer_unreadable", as("application/json", half)},
		{"answer_unreadable", as("application/json", s.all())},
		{"answer_unusable", as("application/json", `{"hello":"world"}`)},
		{"answer_empty", as("application/json", "")},
		{"answer_wrong_type", as("text/plain", s.opts.Whole)},
		{"answer_too_large", as("application/json", `{"x":"`+strings.Repeat("x", s.opts.MaxResponseBytes)+`"}`)},
	} {
		a, shown, err := s.call(t, tt.answer)
		wantOutcome(t, a, err, onejob.OutcomeResultLost, tt.code)
		if shown != "" {
			t.Errorf("%s: %q was shown; want nothing", tt.code, shown)
		}
	}
}

// The connection of a stream that was read to its end is used again.
func (s streams) reused(t *testing.T) {
	srv := Serve(t, func(x *Exchange) { x.begin(); x.send(s.all()); x.end() })
	p := s.opts.Open(t, srv.URL)
	t.Cleanup(func() { closeIdle(p) })
	for range 3 {
		a, err := p.Call(t.Context(), onejob.Request{Input: []byte(s.opts.Input), SendBy: time.Now().Add(time.Minute), SendWithin: time.Minute})
		s.wantWhole(t, a, err)
	}
	if n := srv.Connections(); n != 1 {
		t.Errorf("three streams took %d connections; want 1", n)
	}
}
