package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/onejob-dev/onejob/sim"
)

//go:embed failover/onejob.yaml
var failoverConfig string

//go:embed failover/sorting.yaml
var failoverContract []byte

// failoverCases is how many cases the contract has.
const failoverCases = 100

// playFailover verifies two fallbacks, of which one answers four times in a hundred in
// a Markdown fence, and lets the job choose.
func playFailover(ctx context.Context, s *stage) error {
	s.scene("The primary turns requests away. Two other targets would answer, and nobody has shown yet that they answer right: the job waits. One of them puts its JSON into a Markdown fence, 4 times in 100. Both are verified on 100 cases; then the job goes on by itself, at the one that may.")
	models, err := sim.Start("127.0.0.1:0", sim.Options{Models: map[string]sim.Mind{
		"quartz": sim.MustParseMind("fence=0.04,seed=7"), "borealis-2026-09-15": {},
	}})
	if err != nil {
		return err
	}
	defer func() { _ = models.Close() }()
	if err := s.openFailover(ctx, models.URL()); err != nil {
		return err
	}
	job, err := s.blockedTicket(ctx)
	if err != nil {
		return err
	}
	if err := s.refuseQuartz(ctx, job); err != nil {
		return err
	}
	if err := s.certifyBorealis(ctx); err != nil {
		return err
	}
	done, err := s.untilState(ctx, job, "succeeded")
	if err != nil {
		return err
	}
	// The job goes on as soon as the certificate is there, while the commands still
	// run: its calls are told from the verifications' by the attempt's key.
	winner, err := s.send(ctx, http.MethodGet, "/v1/attempts/"+done.body.CompletedBy, "")
	if err != nil {
		return err
	}
	return s.countFailover(&done, models.Executions(winner.body.ProviderKey))
}

func (s *stage) openFailover(ctx context.Context, models string) error {
	var cases bytes.Buffer
	for i := range failoverCases {
		severity, tags := []string{"low", "medium", "high"}[i%3], "[]"
		if i == 0 {
			tags = `["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id":"c-%03d","input":{"severity":%q,"refund":%d,"body":"Grüße, ticket %d from Umeå"},"expect":{"severity":%q},"tags":%s}`+"\n", i, severity, 100+i, i, severity, tags)
	}
	for name, text := range map[string][]byte{"sorting.yaml": failoverContract, "cases.jsonl": cases.Bytes()} {
		if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
			return err
		}
	}
	s.primary.Script(sim.MustParse("status=429")...)
	return s.openWith(ctx, strings.NewReplacer("{{primary}}", s.primary.URL(), "{{models}}", models).Replace(failoverConfig))
}

// blockedTicket submits a ticket that the primary turns away, and waits until it is held.
func (s *stage) blockedTicket(ctx context.Context) (id string, err error) {
	r, err := s.send(ctx, http.MethodPost, "/v1/jobs", `{"kind":"sort_ticket","input":{"severity":"high","refund":700,"body":"It burns"}}`, "Idempotency-Key", "ticket-1")
	if err != nil {
		return "", err
	}
	s.say("caller", "POST ticket-1: %d %s", r.status, r.body.ID)
	held, err := s.untilState(ctx, r.body.ID, "blocked")
	if err != nil {
		return "", err
	}
	for _, c := range held.body.Blocked.Candidates {
		s.say("gate", "%s may not take over: %s", c.Target, c.Reason)
	}
	return r.body.ID, errors.Join(
		expect("why the job waits", held.body.Blocked.Reason, "failover_not_certified"),
		expect("candidates", len(held.body.Blocked.Candidates), 2),
	)
}

// refuseQuartz shows that the broken target is found out, and stays shut.
func (s *stage) refuseQuartz(ctx context.Context, job string) error {
	report, code, err := s.contract(ctx, "verify", "--target", "quartz")
	if err != nil {
		return err
	}
	s.tellReport("quartz", report)
	answer, asked, err := s.contract(ctx, "can-failover", "--to", "quartz")
	if err != nil {
		return err
	}
	s.say("gate", "can-failover --to quartz: %s (exit %d)", strings.TrimSpace(answer), asked)
	button, err := s.send(ctx, http.MethodPost, "/v1/jobs/"+job+"/attempts", `{"target":"quartz"}`, "Idempotency-Key", "button-1")
	if err != nil {
		return err
	}
	s.say("person", "presses the button for quartz: %d %s", button.status, button.body.Code)
	return errors.Join(
		expect("the exit code of verifying quartz", code, 1),
		expect("the exit code of can-failover", asked, 6),
		expect("the button's answer", button.body.Code, "failover-not-certified"),
	)
}

// certifyBorealis shows that the sound target is certified.
func (s *stage) certifyBorealis(ctx context.Context) error {
	report, code, err := s.contract(ctx, "verify", "--target", "borealis")
	if err != nil {
		return err
	}
	s.tellReport("borealis", report)
	answer, asked, err := s.contract(ctx, "can-failover", "--to", "borealis")
	if err != nil {
		return err
	}
	s.say("gate", "can-failover --to borealis: %s (exit %d)", strings.TrimSpace(answer), asked)
	return errors.Join(expect("the exit code of verifying borealis", code, 0), expect("the exit code of can-failover", asked, 0))
}

// tellReport tells the lines of a report that decide.
func (s *stage) tellReport(target, report string) {
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, " FAIL ") || strings.HasPrefix(line, "S4") || strings.HasPrefix(line, "hint") || strings.HasPrefix(line, "VERDICT") {
			s.say(target, "%s", line)
		}
	}
}

// contract runs a command about the kind's contract, and returns what it wrote and the
// code that it ended with.
func (s *stage) contract(ctx context.Context, verb string, args ...string) (out string, code int, err error) {
	args = append([]string{"contract", verb, "sort_ticket", "--config", "onejob.yaml", "--store", s.opts.Store}, args...)
	raw, err := s.command(ctx, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
		if len(exit.Stderr) > 0 && len(raw) == 0 {
			return "", code, explain(err)
		}
		err = nil
	}
	return string(raw), code, err
}

func (s *stage) countFailover(done *reply, calls int) error {
	if err := expect("attempts", len(done.body.Attempts), 2); err != nil {
		return err
	}
	first, second := done.body.Attempts[0], done.body.Attempts[1]
	s.say("attempt 2", "at %s won the result slot, under its certificate", second.Target)
	s.count("of %d cases: quartz refused at its first fence, and its button; borealis certified; 1 job, 2 attempts, 1 result, %d call beside the verifications, at borealis", failoverCases, calls)
	return errors.Join(
		expect("the first target", first.Target, "acme"), expect("its state", first.State, "failed"),
		expect("the second target", second.Target, "borealis"), expect("the winner", done.body.CompletedBy, second.ID),
		expect("calls beside the verifications", calls, 1),
	)
}
