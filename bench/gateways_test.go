package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWhatAGatewayAddsIsCountedWithinARound(t *testing.T) {
	t.Parallel()

	rows := []row{
		{Name: bareProvider, Rounds: []sample{{pacedP50: 50}, {pacedP50: 90}, {pacedP50: 51}}},
		{Name: "onejob", Rounds: []sample{{pacedP50: 51}, {pacedP50: 91.5}, {pacedP50: 53}}},
	}
	besideBare(rows)
	if got := rows[1].Figures[addedP50]; got != 1.5 {
		t.Errorf("it adds %v ms; want 1.5, the median of 1, 1.5 and 2", got)
	}
	if _, ok := rows[0].Figures[addedP50]; ok {
		t.Error("the bare provider is beside itself")
	}
}

func TestWithoutTheBareProviderNothingIsSaidToBeAdded(t *testing.T) {
	t.Parallel()

	rows := []row{{Name: "onejob", Rounds: []sample{{pacedP50: 51, pacedP99: 60}}}}
	besideBare(rows)
	if _, ok := rows[0].Figures[addedP50]; ok || rows[0].Figures[pacedP99] != 60 {
		t.Errorf("figures %v; want those measured and no others", rows[0].Figures)
	}
}

func TestTheProviderFinishesACallWhoseCallerHasLeft(t *testing.T) {
	t.Parallel()

	c := &canned{}
	c.takes.Store(int64(50 * time.Millisecond))
	left, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(left, http.MethodPost, "/v1/chat/completions", strings.NewReader(`{}`))
	c.complete(httptest.NewRecorder(), r)
	told := httptest.NewRecorder()
	c.executions(told, nil)
	if got := told.Body.String(); got != "1" {
		t.Errorf("%s executions; want 1", got)
	}
}

func TestWhoeverCannotBeAloneIsLeftOut(t *testing.T) {
	t.Parallel()

	entry := portkey(contestant{name: "Portkey"})
	if !entry.alone || entry.prepare == nil {
		t.Errorf("Portkey would listen on every address of this machine: %+v", entry)
	}
	for _, c := range allContests() {
		for _, one := range c.entries(settings{}) {
			if one.alone && one.on != onNothing {
				t.Errorf("%s has no network in which %s is", one.label(), one.on)
			}
		}
	}
}

func TestAnOpenLoopWaitsForNobody(t *testing.T) {
	t.Parallel()

	all := make(chan struct{})
	asked := make(chan int, 10)
	go func() {
		for range cap(asked) {
			<-asked
		}
		close(all)
	}()
	done, err := openLoop(t.Context(), 1000, 10*time.Millisecond, func(ctx context.Context, n int) error {
		asked <- n
		select {
		case <-all: // none is answered before all have asked
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil || done.Requests != 10 {
		t.Errorf("%d calls, %v; want 10", done.Requests, err)
	}
}
