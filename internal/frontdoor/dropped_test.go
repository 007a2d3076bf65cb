package frontdoor_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/translate"
	"github.com/onejob-dev/onejob/sim"
)

func TestParametersThatTheWinnerWasNotSentAreTold(t *testing.T) {
	t.Parallel()
	provider := sim.ForTest(t, sim.Options{})
	provider.Script(sim.MustParse("status=401")...) // the first target's, who drops another one
	w := &world{t: t, store: newStore()}
	var targets []onejob.Target
	for name, dropped := range map[string]string{"first": "x_first", "second": "seed"} {
		p, err := openai.New(openai.Options{BaseURL: provider.URL() + "/v1", Model: name, Map: map[string]string{dropped: "drop", "user": "drop"}})
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, onejob.Target{Name: name, Provider: p, Digest: p.Digest()})
	}
	w.run(targets, map[string]onejob.Kind{
		"pair": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"first", "second"}, Failover: onejob.FailoverDeclared, FailoverWhy: "they are alike"}},
	}, map[string]frontdoor.Model{"pair": {Kind: "pair", API: frontdoor.APIChat}})

	const body = `{"model":"pair","messages":[{"role":"user","content":"hello"}],"x_first":1,"seed":"secret","user":"u"}`
	first, repeat := w.post(chat, body, "Idempotency-Key", "k1"), w.post(chat, body, "Idempotency-Key", "k1")
	if first.status != http.StatusOK || first.header.Get("Onejob-Target") != "second" {
		t.Fatalf("%d from %s: %s", first.status, first.header.Get("Onejob-Target"), first.body)
	}
	for _, got := range []answer{first, repeat} {
		if told := got.header.Get("Onejob-Params-Dropped"); told != "seed, user" {
			t.Errorf("dropped %q; want seed and user, as the winner did", told)
		}
	}
	if got := w.post(chat, `{"model":"pair","messages":[{"role":"user","content":"hello"}]}`); got.header.Values("Onejob-Params-Dropped") != nil {
		t.Errorf("dropped %q of a request that has none", got.header.Get("Onejob-Params-Dropped"))
	}
}

func TestParametersThatAStreamWasMadeWithoutAreToldWithItsHead(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	p, err := openai.New(openai.Options{BaseURL: m.URL + "/v1", Model: "x", Map: map[string]string{"seed": "drop", "user": "drop"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: newStore()}
	w.run([]onejob.Target{{Name: "gpt", Provider: p, Digest: p.Digest()}}, map[string]onejob.Kind{
		"chat": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"gpt"}}},
	}, map[string]frontdoor.Model{"chat": {Kind: "chat", API: frontdoor.APIChat}})

	const body = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hello"}],"seed":7,"user":"u"}`
	m.say(t, head, word("hel"))
	first, repeat := w.read(chat, body, "Idempotency-Key", "k1"), w.read(chat, body, "Idempotency-Key", "k1")
	first.want(head + word("hel"))
	m.say(t, stop, theEnd)
	close(m.says)
	first.want(stop + theEnd)
	last := w.post(chat, body, "Idempotency-Key", "k1")
	for name, h := range map[string]http.Header{"the first": first.resp.Header, "a repeat": repeat.resp.Header, "one after the end": last.header} {
		if told := h.Get("Onejob-Params-Dropped"); told != "seed, user" {
			t.Errorf("%s was told %q; want seed and user", name, told)
		}
	}
}

// A sign of life sends the head before anybody has answered.
func TestParametersThatTheHeadOfAStreamCouldNotTellAreToldInAComment(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"c1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}]}`
	for name, tt := range map[string]struct{ contentType, says, rest, begins string }{
		"OfAStream":      {"text/event-stream", head + word("hello"), stop + theEnd, head + word("hello")},
		"OfAWholeAnswer": {"application/json", whole, "", `data: {"id":"c1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alive, shown := make(chan struct{}), make(chan struct{})
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-alive
				w.Header().Set("Content-Type", tt.contentType)
				_, _ = io.WriteString(w, tt.says)
				if tt.rest != "" {
					_ = http.NewResponseController(w).Flush()
					<-shown
					_, _ = io.WriteString(w, tt.rest)
				}
			}))
			t.Cleanup(provider.Close)
			answers, goesOn := sync.OnceFunc(func() { close(alive) }), sync.OnceFunc(func() { close(shown) })
			t.Cleanup(answers)
			t.Cleanup(goesOn)
			p, err := openai.New(openai.Options{BaseURL: provider.URL, Model: "x", Map: map[string]string{"seed": "drop", "user": "drop"}})
			if err != nil {
				t.Fatal(err)
			}
			w := &world{t: t, store: newStore()}
			w.run([]onejob.Target{{Name: "gpt", Provider: p, Digest: p.Digest()}}, map[string]onejob.Kind{
				"chat": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"gpt"}}},
			}, map[string]frontdoor.Model{"chat": {Kind: "chat", API: frontdoor.APIChat, EventsFunc: translate.ChatEvents}}, func(o *frontdoor.Options) { o.Heartbeat = 20 * time.Millisecond })
			r := w.read(chat, `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hello"}],"seed":7,"user":"u"}`, "Idempotency-Key", "k1")
			r.want(":\n\n")
			answers()
			var all strings.Builder
			for line := ""; err == nil && !strings.Contains(line, "hello"); {
				line, err = r.body.ReadString('\n')
				all.WriteString(line)
			}
			goesOn()
			rest, err := io.ReadAll(r.body)
			all.Write(rest)
			got := strings.ReplaceAll(all.String(), ":\n\n", "")
			if err != nil || !strings.HasPrefix(got, ": onejob-params-dropped: seed, user\n\n"+tt.begins) || strings.Count(got, "onejob-params-dropped") != 1 || !strings.HasSuffix(got, theEnd) {
				t.Errorf("read %q, %v; want what was dropped told once, before the answer", got, err)
			}
		})
	}
}
