package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// newStory is a node with a model that streams.
func newStory(t *testing.T, storeURL string) *site {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"large": {}}})
	s := &site{t: t, dir: t.TempDir(), store: storeURL, provider: provider}
	s.setUp(fmt.Sprintf(`
targets:
  gpt: {provider: openai, base_url: "%[1]s/v1", model: large}
kinds:
  chat: {effect: external, targets: [gpt], timeout: 20s, linger: 20s}
workers: {slots: 16, lease: 1s, drain: 1s}
secret: "a secret that all nodes share"
`, provider.URL()))
	return s
}

const story = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"Story: a long one, in which nothing happens until the very end of it"}]}`

// stream begins a streamed call under a key.
func (n *node) stream(ctx context.Context, key string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.addr+"/openai/v1/chat/completions", strings.NewReader(story))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+n.site.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return http.DefaultClient.Do(r)
}

// readEvents reads whole events until so many have come, or the end.
func readEvents(body io.Reader, most int) (text []byte, err error) {
	r := bufio.NewReader(body)
	for n := 0; n < most; {
		line, err := r.ReadBytes('\n')
		text = append(text, line...)
		if err != nil {
			return text, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			n++
		}
	}
	return text, nil
}

// A process that dies in the middle of an answer leaves what it has shown, and a doubt:
// who asks again gets the same bytes, never a second generation without a word.
func TestAStreamWhoseNodeIsKilledIsThereAfterwardsAndNotMadeAgain(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newStory(t, storeURL)
		n := s.newNode()
		n.start()
		s.provider.Script(sim.MustParse("stall")...)
		resp, err := n.stream(t.Context(), "story-1")
		if err != nil {
			t.Fatal(err)
		}
		seen, err := readEvents(resp.Body, 3)
		if err != nil {
			t.Fatalf("read %q, %v", seen, err)
		}
		n.kill()
		_ = resp.Body.Close()
		n.start()
		var again []byte
		var header http.Header
		if !eventually(30*time.Second, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			resp, err := n.stream(ctx, "story-1")
			if err != nil {
				return false
			}
			defer func() { _ = resp.Body.Close() }()
			header = resp.Header
			again, _ = io.ReadAll(resp.Body)
			return bytes.Contains(again, []byte(`"code":"outcome-unknown"`))
		}) {
			t.Fatalf("a repeat got %q, %v; want that the outcome is unknown", again, header)
		}
		if !bytes.HasPrefix(again, seen) || !bytes.Contains(again, []byte("event: error\n")) || bytes.Contains(again, []byte("[DONE]")) {
			t.Errorf("a repeat got %q; want it to begin with what was shown, %q, and to end with an error", again, seen)
		}
		if header.Get("Idempotent-Replayed") != "true" || header.Get("Onejob-Attempts") != "1" {
			t.Errorf("a repeat got %v; want it marked, with one attempt", header)
		}
		if n := s.provider.TotalExecutions(); n != 1 {
			t.Errorf("%d executions; want 1", n)
		}
		t.Logf("%d bytes shown before the kill; a repeat got them and %d more, then that the outcome is unknown; 1 execution", len(seen), len(again)-len(seen))
	})
}

// Who follows at another node sees what the one with the connection keeps.
func TestAStreamIsFollowedAtAnotherNode(t *testing.T) {
	s := newStory(t, newPostgres(t))
	first, second := s.newNode(), s.newNode()
	first.start()
	second.start()
	s.provider.Script(sim.MustParse("trickle=30ms")...)
	resp, err := first.stream(t.Context(), "story-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := readEvents(resp.Body, 1); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	other, err := second.stream(t.Context(), "story-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Body.Close() }()
	all, err := io.ReadAll(other.Body)
	if err != nil || !bytes.HasSuffix(all, []byte("data: [DONE]\n\n")) {
		t.Errorf("at the other node %q was read, %v; want the whole stream", all, err)
	}
	again, err := first.stream(t.Context(), "story-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Body.Close() }()
	if whole, err := io.ReadAll(again.Body); err != nil || !bytes.Equal(whole, all) {
		t.Errorf("a repeat got %q, %v; want the same bytes as at the other node", whole, err)
	}
	if n := s.provider.TotalExecutions(); n != 1 {
		t.Errorf("%d executions; want 1", n)
	}
	t.Logf("%d bytes followed at the other node in %s", len(all), time.Since(began).Round(time.Millisecond))
}
