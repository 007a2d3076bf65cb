package wire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

// words is an assembler whose answer are the events' own bodies, each of which shows, to
// the one that is "end".
type words struct{ all []string }

func (w *words) Add(e wire.Event) wire.Step {
	if string(e.Body) == "end" {
		return wire.StepEnds
	}
	w.all = append(w.all, string(e.Body))
	return wire.StepShows
}

func (w *words) Document() []byte { return []byte(`{"ok":true}`) }

// An answer that is there is one, whoever is shown meanwhile: what it cost is known.
func TestAStreamThatCameWholeIsNotLeft(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		x.AnswerAs(wire.EventStream, 200, "data: one\n\ndata: end\n\n")
	})
	req := onejob.Request{Chunk: func([]byte) error { return errors.New("nobody wants it") }}
	a, err := newCaller(t, srv.URL, wire.Options{}).call(t.Context(), req, wire.Message{Body: []byte(`{}`), Assembler: &words{}})
	if err != nil || a.Outcome != onejob.OutcomeSucceeded {
		t.Errorf("outcome %q, failure %+v, %v; want a success", a.Outcome, a.Failure, err)
	}
}

func TestAStreamMayBeginWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	w := &words{}
	if _, err := wire.Assemble([]byte("\uFEFFdata: one\n\ndata: \uFEFFtwo\n\ndata: end\n\n"), w); err != nil || strings.Join(w.all, " ") != "one \uFEFFtwo" {
		t.Errorf("read %q, %v; want both words, the second as it is", w.all, err)
	}
}

// Each byte is looked at once, in however small parts an event comes.
func TestALongEventInSmallPartsIsReadInLinearTime(t *testing.T) {
	t.Parallel()
	const size, part = 8<<20 - 100, 64
	began := time.Now()
	w := &words{}
	r := wire.Reader(w)
	r([]byte("data: "))
	for range size / part / 2 {
		r([]byte(strings.Repeat("x", part)))
	}
	for range size / part / 2 {
		r([]byte("\ndata: " + strings.Repeat("x", part-7)))
	}
	r([]byte("\n\ndata: end\n\n"))
	if took := time.Since(began); took > 5*time.Second || len(w.all) != 1 || len(w.all[0]) < size/2 {
		t.Errorf("took %s, read %d events; want one, in a moment", took, len(w.all))
	}
}
