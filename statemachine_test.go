package onejob_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
)

const stateMachinePath = "docs/state-machine.md"

var update = flag.Bool("update", false, "rewrite "+stateMachinePath)

// TestStateMachineDoc prints docs/state-machine.md from the transition table and
// from StandingOf, and fails when the committed page says anything else.
func TestStateMachineDoc(t *testing.T) {
	t.Parallel()
	want := stateMachinePage(t)
	if *update {
		if err := os.WriteFile(stateMachinePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(stateMachinePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s has drifted from the code (-code +page); rewrite it with go test -run TestStateMachineDoc -update .\n%s", stateMachinePath, diff)
	}
}

// eventSentences says what each event is, for people.
var eventSentences = map[onejob.Event]string{
	onejob.EventMarked:    "The mark is committed: from now on bytes may leave.",
	onejob.EventNotSent:   "It is proven that nothing left which the provider could act on.",
	onejob.EventLeaseOver: "The worker's claim ended by the database's clock, and nobody had reported back.",
	onejob.EventAnswered:  "A complete success arrived, and the result slot was free.",
	onejob.EventBeaten:    "A complete success arrived, but another had won or the job had closed. It is kept as evidence.",
	onejob.EventRefused:   "The provider said that it did nothing.",
	onejob.EventFailed:    "The provider did the work and it failed; it may have cost.",
	onejob.EventCancelled: "It is proven that the attempt was given up before it had an effect.",
	onejob.EventSilence:   "A timeout, a reset, an answer that was lost: nothing is proven.",
	onejob.EventLost:      "The work was done, but its result cannot be had.",
	onejob.EventRestored:  "The database went back in time, so what it says of the attempt may be too old.",
}

var attemptSentences = map[onejob.AttemptState]string{
	onejob.AttemptStarting:  "Claimed by a worker; nothing has left.",
	onejob.AttemptRunning:   "Marked; bytes may have left.",
	onejob.AttemptUnknown:   "It may or may not have had its effect. Nothing else is tried in its lane.",
	onejob.AttemptSucceeded: "It won the job's result slot.",
	onejob.AttemptDiscarded: "It succeeded too late; its answer is kept on its own row.",
	onejob.AttemptFailed:    "Proven not to have succeeded.",
	onejob.AttemptCancelled: "Proven to have been given up.",
}

var jobSentences = map[onejob.JobState]string{
	onejob.JobQueued:    "Waits for an attempt to start, now or at its `run_after`.",
	onejob.JobRunning:   "An attempt is starting or running.",
	onejob.JobBlocked:   "Waits for evidence, a certificate or a person.",
	onejob.JobSucceeded: "Has its one result.",
	onejob.JobFailed:    "Ended without a result, and with nothing in doubt.",
	onejob.JobCancelled: "Was given up on request, with nothing in doubt.",
}

var reasonSentences = map[onejob.BlockReason]string{
	onejob.BlockAttemptUnknown:           "An attempt is unknown: only the provider's evidence or a ruling settles it.",
	onejob.BlockFailoverNotCertified:     "The next target has no proof that it may stand in.",
	onejob.BlockFailoverUnproven:         "The kind has an effect, and it is not proven that the last attempt did nothing.",
	onejob.BlockTargetsExhaustedUnproven: "No target is left, and only a person's word says that nothing happened.",
	onejob.BlockParked:                   "Its attempts killed the process again and again.",
	onejob.BlockNeedsOperator:            "Our own side failed too often, or a ruling left the job without a way on.",
}

// page is a Markdown page in the making.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.Builder, format+"\n", args...) }

func stateMachinePage(t *testing.T) string {
	p := &page{}
	p.line("# The state machine")
	p.line("")
	p.line("Printed from the code by `TestStateMachineDoc`. Do not edit; run `go test -run TestStateMachineDoc -update .` instead.")
	p.attemptDiagram()
	p.attemptTables(t)
	p.jobDiagram(t)
	p.jobTables(t)
	return p.String()
}

func (p *page) attemptDiagram() {
	p.line("\n## An attempt\n\n```mermaid\nstateDiagram-v2")
	p.line("    [*] --> %s", onejob.AttemptStarting)
	for _, s := range onejob.AttemptStates() {
		for _, e := range onejob.TableEvents() {
			if to, err := s.Next(e); err == nil {
				p.line("    %s --> %s: %s", s, to, e)
			} else if to, err := s.NextRuled(e); err == nil {
				p.line("    %s --> %s: %s, after a ruling", s, to, e)
			}
		}
	}
	for _, s := range onejob.AttemptStates() {
		if s.Terminal() {
			p.line("    %s --> [*]", s)
		}
	}
	p.line("```")
}

func (p *page) attemptTables(t *testing.T) {
	p.line("\n| state | in doubt | meaning |\n|---|---|---|")
	for _, s := range onejob.AttemptStates() {
		p.line("| `%s` | %s | %s |", s, yes(s.InDoubt()), sentence(t, attemptSentences, s))
	}
	p.line("\nAt most one attempt of a job and lane is in doubt. The others are terminal, with one exit: an attempt that a ruling")
	p.line("declared failed or cancelled, and whose success arrives after all.")
	p.line("\n| event | moves | what happened |\n|---|---|---|")
	for _, e := range onejob.TableEvents() {
		p.line("| `%s` | %s | %s |", e, moves(t, e), sentence(t, eventSentences, e))
	}
}

// moves writes from where to where an event moves attempts.
func moves(t *testing.T, e onejob.Event) string {
	states, ruled := onejob.SourcesOf(e)
	var arrows []string
	for _, s := range append(states, ruled...) {
		to, err := s.NextRuled(e)
		if err != nil {
			t.Errorf("%s on %s: %v", s, e, err)
		}
		arrow := fmt.Sprintf("`%s` → `%s`", s, to)
		if slices.Contains(ruled, s) {
			arrow += " (ruled)"
		}
		arrows = append(arrows, arrow)
	}
	return strings.Join(arrows, ", ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func sentence[K ~string](t *testing.T, sentences map[K]string, of K) string {
	if sentences[of] == "" {
		t.Errorf("%q has no sentence", of)
	}
	return sentences[of]
}

// change is something that happens to a job, and the job as it is afterwards.
type change struct {
	from     onejob.JobState
	what     string
	job      *onejob.Job
	attempts []onejob.Attempt
	at       time.Time
}

// jobChanges are the ways of an open job. Where each leads is not said here but
// asked of StandingOf.
func jobChanges(t *testing.T) []change {
	cancelled := openJob(t)
	cancelled.CancelRequestedAt = noon
	late := openJob(t)
	late.Deadline = noon
	freed := openJob(t)
	freed.UnblockedAt = noon
	again := failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)
	done := failedOn("a", onejob.OutcomeRefused, onejob.NextElsewhere)
	nowhere := failedOn("a", onejob.OutcomeRefused, onejob.NextNowhere)
	ruled := failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, ruledAt(noon, false))
	var lost []onejob.Attempt
	for range onejob.MaxOwnFaults + 1 {
		lost = append(lost, failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, ours))
	}
	hour := noon.Add(time.Hour)
	return []change{
		{onejob.JobQueued, "an attempt starts", openJob(t), tries(held("a", onejob.AttemptStarting)), noon},
		{onejob.JobRunning, "it fails, and may be tried again after a backoff", openJob(t), tries(again), noon},
		{onejob.JobRunning, "it fails, and another target may take over", openJob(t, declared), tries(done), noon},
		{onejob.JobRunning, "it fails, and no target is allowed to take over", openJob(t), tries(done), noon},
		{onejob.JobRunning, "it fails, and no target will do", openJob(t), tries(nowhere), noon},
		{onejob.JobRunning, "it falls silent", openJob(t), tries(held("a", onejob.AttemptUnknown)), noon},
		{onejob.JobRunning, "it is the last of too many that we lost ourselves", openJob(t), tries(lost...), hour},
		{onejob.JobRunning, "it ends without success, and the job was asked to be given up", cancelled, tries(again), noon},
		{onejob.JobBlocked, "the unknown attempt is proven failed", openJob(t), tries(ruled), hour},
		{onejob.JobBlocked, "the unknown attempt is proven failed, and the job was asked to be given up", cancelled, tries(ruled), noon},
		{onejob.JobBlocked, "the unknown attempt is proven failed, and no target will do", openJob(t), tries(nowhere), noon},
		{onejob.JobBlocked, "somebody asks for an attempt that is allowed", openJob(t), tries(done, held("b", onejob.AttemptStarting)), noon},
		{onejob.JobBlocked, "a certificate lets the next target take over", openJob(t, declared), tries(done), noon},
		{onejob.JobBlocked, "a person lets it go on after losses of our own", freed, tries(lost...), hour},
		{onejob.JobQueued, "its deadline passes", late, nil, noon},
		{onejob.JobQueued, "it is asked to be given up", cancelled, nil, noon},
	}
}

func (c *change) to() onejob.JobState {
	return onejob.StandingOf(c.job, c.attempts, nil, c.at).State
}

func (p *page) jobDiagram(t *testing.T) {
	p.line("\n## A job\n\nA job's state follows from its attempts and is written in the transaction that changes them.\n\n```mermaid\nstateDiagram-v2")
	p.line("    [*] --> %s", onejob.StandingOf(openJob(t), nil, nil, noon).State)
	var drawn []string
	for _, c := range jobChanges(t) {
		if arrow := fmt.Sprintf("    %s --> %s", c.from, c.to()); !slices.Contains(drawn, arrow) {
			drawn = append(drawn, arrow)
			p.line("%s", arrow)
		}
	}
	for _, s := range onejob.JobStates() {
		if !s.Terminal() { // from queued too: a ruling was wrong
			p.line("    %s --> %s", s, onejob.JobSucceeded)
		}
	}
	for _, s := range onejob.JobStates() {
		if s.Terminal() {
			p.line("    %s --> [*]", s)
		}
	}
	p.line("```")
}

func (p *page) jobTables(t *testing.T) {
	p.line("\n| state | terminal | meaning |\n|---|---|---|")
	for _, s := range onejob.JobStates() {
		p.line("| `%s` | %s | %s |", s, yes(s.Terminal()), sentence(t, jobSentences, s))
	}
	p.line("\n| from | what happens | to |\n|---|---|---|")
	for _, c := range jobChanges(t) {
		p.line("| `%s` | %s | `%s` |", c.from, c.what, c.to())
	}
	p.line("| any open state | an attempt wins the result slot, also one that a ruling had declared failed | `%s` |", onejob.JobSucceeded)
	p.line("\nA terminal state never changes.")
	p.line("\n| a job is blocked for | left only by unblocking | meaning |\n|---|---|---|")
	for _, r := range onejob.BlockReasons() {
		p.line("| `%s` | %s | %s |", r, yes(r.NeedsUnblock()), sentence(t, reasonSentences, r))
	}
}
