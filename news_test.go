package onejob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
)

// bell keeps what it is told.
type bell struct{ told []onejob.News }

func (b *bell) Ring(n onejob.News) { b.told = append(b.told, n) }

func TestWhatHappensHereIsToldToOthers(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	b := &bell{}
	s.Connect(b)
	s.JobChanged("job_1")
	s.Outbox()
	s.JobShown(&onejob.Job{ID: "job_2"})
	s.WorkReady()
	s.CancelAsked("job_3")
	s.QuestionReady()
	s.OutboxFull()
	want := []onejob.News{
		{Changed: []string{"job_1"}, Outbox: true}, // nobody sends webhooks here yet
		{Changed: []string{"job_2"}},
		{Work: true},
		{Cancelled: []string{"job_3"}},
		{Questions: true},
		{Outbox: true},
	}
	if diff := cmp.Diff(want, b.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestWhatIsHeardIsNotToldOn(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	b := &bell{}
	s.Connect(b)
	changed, stop := s.WatchJob("job_1")
	defer stop()
	other, stopOther := s.WatchJob("job_2")
	defer stopOther()
	work, outbox, questions, cancels := s.Work(), s.Outbox(), s.Questions(), s.Cancels()
	s.Hear(onejob.News{Changed: []string{"job_1"}, Work: true, Cancelled: []string{"job_1"}})
	if !rung(changed) || !rung(work) || !rung(cancels) || rung(other) || rung(outbox) || rung(questions) {
		t.Error("exactly what was heard must wake those who wait for it")
	}
	s.Hear(onejob.News{Outbox: true, Questions: true})
	if !rung(outbox) || !rung(questions) || rung(work) {
		t.Error("exactly what was heard must wake those who wait for it")
	}
	if ids, all := s.TakeCancels(); len(ids) != 1 || all {
		t.Errorf("cancels: %v, all %t; want one", ids, all)
	}
	s.Hear(onejob.News{All: true})
	if _, all := s.TakeCancels(); !all || !rung(changed) || !rung(other) || !rung(work) || !rung(outbox) || !rung(questions) {
		t.Error("news of everything must wake everybody")
	}
	if len(b.told) > 0 {
		t.Errorf("it was told on: %v", b.told)
	}
}

func TestManyCancelsAreHeldAsAll(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	s.CancelAsked("job_0") // nobody asks providers here, so nothing is kept
	if ids, all := s.TakeCancels(); len(ids) > 0 || all {
		t.Errorf("kept %v, all %t", ids, all)
	}
	s.Cancels()
	for n := range 1000 {
		s.CancelAsked(string(rune('a' + n)))
	}
	if ids, all := s.TakeCancels(); len(ids) > 256 || !all {
		t.Errorf("%d ids, all %t; want a bounded number and all", len(ids), all)
	}
}

func TestWhoHearsOthersLooksLessOften(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	pauses := func(interval time.Duration) (all []time.Duration) {
		for quiet := range 4 {
			all = append(all, s.PauseAfter(quiet, interval))
		}
		return all
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{500 * ms, 500 * ms, 500 * ms, 500 * ms}, pauses(500*ms)); diff != "" {
		t.Errorf("alone (-want +got):\n%s", diff)
	}
	s.BeginHearing()
	if diff := cmp.Diff([]time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}, pauses(500*ms)); diff != "" {
		t.Errorf("with others (-want +got):\n%s", diff)
	}
	if got := s.PauseAfter(9, 10*time.Second); got != 10*time.Second {
		t.Errorf("a longer interval became %s", got)
	}
	work := s.Work()
	rung(work)
	s.EndHearing()
	if got := s.PauseAfter(9, 500*ms); got != 500*ms || !rung(work) {
		t.Errorf("after the others were lost the pause is %s; want the interval, and a look at once", got)
	}
}
