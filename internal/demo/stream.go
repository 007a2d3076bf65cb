package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/onejob-dev/onejob/sim"
)

// playStream leaves one stream and kills the server in another.
func playStream(ctx context.Context, s *stage) error {
	s.scene("An OpenAI client reads answers as they are written. It loses the first in the middle and asks again under the same key; then the server itself is killed with -9 in the middle of the second. What was shown is shown again, from its first byte, and no answer is written twice.")
	model, err := sim.Start("127.0.0.1:0", sim.Options{Models: map[string]sim.Mind{"large": {}}})
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	model.Script(sim.MustParse("trickle=40ms", "stall")...)
	if err := s.openWith(ctx, fmt.Sprintf(streamConfig, model.URL())); err != nil {
		return err
	}
	return errors.Join(s.leaveStream(ctx), s.killInStream(ctx, model))
}

const streamConfig = `
targets:
  large: {provider: openai, base_url: "%s/v1", model: large}
kinds:
  chat: {effect: external, targets: [large], timeout: 10s}
workers: {slots: 4, lease: 1s, drain: 5s}
secret: a-secret-for-this-demo-only
`

func (s *stage) leaveStream(ctx context.Context) error {
	some, _, err := s.stream(ctx, "answer-1", 3)
	if err != nil {
		return err
	}
	s.say("client", "read %d bytes of answer-1, and its connection is gone", len(some))
	whole, header, err := s.stream(ctx, "answer-1", all)
	if err != nil {
		return err
	}
	s.say("client", "asks again: %d bytes from the first on, to the end (Idempotent-Replayed: %s)", len(whole), header.Get("Idempotent-Replayed"))
	return errors.Join(
		expect("the repeat begins with what was read", strings.HasPrefix(whole, some), true),
		expect("the repeat has its end", strings.HasSuffix(whole, "data: [DONE]\n\n"), true),
	)
}

func (s *stage) killInStream(ctx context.Context, model *sim.Server) error {
	some, _, err := s.stream(ctx, "answer-2", 3)
	if err != nil {
		return err
	}
	s.say("client", "read %d bytes of answer-2", len(some))
	if err := s.kill(); err != nil {
		return err
	}
	s.say("server", "killed with -9")
	if err := s.serve(ctx); err != nil {
		return err
	}
	s.say("server", "restarted on the same store")
	again, _, err := s.stream(ctx, "answer-2", all)
	if err != nil {
		return err
	}
	unknown := strings.Contains(again, `"code":"outcome-unknown"`)
	if unknown {
		s.say("client", "asks again: %d bytes from the first on, all that was kept, then an event: outcome-unknown", strings.Index(again, "event: error"))
	}
	n := model.TotalExecutions()
	s.count("2 answers, each asked for twice; one whole, one in doubt and shown as far as it came; %d executions", n)
	return errors.Join(
		expect("the repeat begins with what was read", strings.HasPrefix(again, some), true),
		expect("the repeat says that the outcome is unknown", unknown, true),
		expect("executions at the provider", n, 2),
	)
}

// all is more events than any answer here has.
const all = 1 << 20

// stream asks as a client of OpenAI's does, and reads so many events at most.
func (s *stage) stream(ctx context.Context, key string, most int) (text string, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body := fmt.Sprintf(`{"model":"chat","stream":true,"messages":[{"role":"user","content":"Story: %s, in which nothing happens until the very end of it"}]}`, key)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.listen+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + s.key, "Content-Type": "application/json", "Idempotency-Key": key} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return "", nil, fmt.Errorf("a stream was answered %d: %s", resp.StatusCode, said)
	}
	lines := bufio.NewReader(resp.Body)
	for n := 0; n < most; {
		line, err := lines.ReadString('\n')
		text += line
		switch {
		case errors.Is(err, io.EOF):
			return text, resp.Header, nil
		case err != nil:
			return text, resp.Header, err
		case line == "\n":
			n++
		}
	}
	return text, resp.Header, nil
}
