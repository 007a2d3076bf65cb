//go:build sdks

package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// begin has a response made in the background.
type begin struct {
	question
	Cancel bool   `json:"cancel"` // once it is begun
	Of     string `json:"of"`     // an id to ask for, and nothing else
}

// begun is what a library makes of it. Code is why it failed.
type begun struct {
	answered
	ID         string `json:"id"`
	Begun      string `json:"begun"` // as what it was given at first
	Background bool   `json:"background"`
	Ended      string `json:"ended"` // as what in the end
}

// background is one such response, through a proxy of its own.
type background struct {
	*visit
	dir string
}

func (b *background) ask(t *testing.T, q begin) (got begun) {
	t.Helper()
	q.question = b.question
	runNode(t, b.dir, "openai-background.mjs", q, &got)
	t.Logf("%d requests, %d at the provider, %d executions: %+v", len(b.proxy.passed()), b.atProvider(), b.executions(), got)
	return got
}

func TestStockNodeClientAsksForAResponseInTheBackground(t *testing.T) {
	t.Parallel()
	dir, s := installStockClients(t), newShop(t)
	for _, tt := range []struct {
		name  string
		keyed bool
		test  func(*testing.T, *background)
	}{
		{"AndIsGivenItOnceItIsMade/WithAKey", true, backgroundMade},
		{"AndIsGivenItOnceItIsMade/WithoutAKey", false, backgroundMade},
		{"AndLosesTheIDItWasGiven/WithAKey", true, backgroundLost},
		{"AndLosesTheIDItWasGiven/WithoutAKey", false, backgroundLost},
		{"AndIsToldThatItFailed", true, backgroundRefused},
		{"AndGivesItUp", true, backgroundCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, &background{s.visit(t, stock{}, tt.keyed), dir})
		})
	}
}

func backgroundMade(t *testing.T, b *background) {
	b.script("accepted=500ms")
	b.wantMade(t, b.ask(t, begin{}))
	if b.Key == "" {
		return
	}
	again := b.ask(t, begin{}) // it is there, and comes at once
	if again.Begun != "completed" || !strings.Contains(again.Text, b.Order) || b.executions() != 1 {
		t.Errorf("a repeat got %+v after %d executions; want the response, made once", again, b.executions())
	}
}

func (b *background) wantMade(t *testing.T, got begun) {
	t.Helper()
	if got.Error != "" || !strings.HasPrefix(got.ID, "resp_") || !got.Background || (got.Begun != "queued" && got.Begun != "in_progress") {
		t.Errorf("it was begun as %+v; want an id of a response that is not made yet", got)
	}
	if got.Ended != "completed" || !strings.Contains(got.Text, b.Order) || b.executions() != 1 {
		t.Errorf("it ended as %+v after %d executions; want it completed after 1", got, b.executions())
	}
}

// The answer that has the id is lost on its way. Only a key says that it was.
func backgroundLost(t *testing.T, b *background) {
	b.script("accepted=500ms", "accepted=500ms")
	b.proxy.drop = dropAnswer
	got := b.ask(t, begin{})
	if b.Key != "" {
		b.wantMade(t, got)
	} else if n := b.executions(); got.Ended != "completed" || n != 2 {
		t.Errorf("got %+v after %d executions; want it completed after 2", got, n)
	}
}

func backgroundRefused(t *testing.T, b *background) {
	b.script("status=400", "status=400")
	got := b.ask(t, begin{})
	if got.Error != "" || got.Ended != "failed" || got.Code != "server_error" || b.executions() != 0 || b.atProvider() != 1 {
		t.Errorf("got %+v after %d requests at the provider; want it failed after 1", got, b.atProvider())
	}
}

func backgroundCancelled(t *testing.T, b *background) {
	b.script("accepted=1m")
	got := b.ask(t, begin{Cancel: true})
	if got.Error != "" || got.Ended != "cancelled" || got.Text != "" || b.executions() > 1 {
		t.Errorf("got %+v after %d executions; want it cancelled after 1 at most", got, b.executions())
	}
	if got = b.ask(t, begin{Of: got.ID}); got.Ended != "cancelled" {
		t.Errorf("asked again it is %+v; want it cancelled", got)
	}
	if got = b.ask(t, begin{Of: "resp_none"}); got.Error != "NotFoundError" || got.Status != http.StatusNotFound {
		t.Errorf("got %+v of a response that there is not; want it not found", got)
	}
}
