package wire_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

var update = flag.Bool("update", false, "write docs/outcomes.md anew")

const outcomesPath = "../../docs/outcomes.md"

// meanings say what each outcome means for the attempt and its job, in the order
// of the document.
var meanings = []struct {
	outcome    onejob.Outcome
	state, say string
}{
	{onejob.OutcomeNotExecuted, "failed", "The provider never had the whole request, so it did nothing. Trying again is safe."},
	{onejob.OutcomeRefused, "failed", "The provider had the request and turned it away before doing anything. Trying again is safe; whether it helps is another matter."},
	{onejob.OutcomeExecutedFailed, "failed", "The provider worked on it and failed, which may have cost something. Under the effects `idempotent` and `external` nothing starts after it by itself."},
	{onejob.OutcomeSucceeded, "succeeded", "The provider did it, and the answer is whole. If the job is still open, this is its result; otherwise the attempt is `discarded`."},
	{onejob.OutcomeAccepted, "running", "The provider works on it under an id of its own, which is committed before anything else."},
	{onejob.OutcomeResultLost, "unknown", "The provider did it, and its answer is unusable. Never tried again by itself: the effect has happened."},
	{onejob.OutcomeUnknown, "unknown", "It may have been done or not. Nothing starts beside it until a late answer or a person says what happened."},
}

var nexts = map[onejob.Next]string{
	"": "", onejob.NextAgain: "the same target", onejob.NextElsewhere: "another target", onejob.NextNowhere: "nowhere: the input is at fault",
}

// TestOutcomesDoc prints docs/outcomes.md from the table, so that neither can say
// what the other does not.
func TestOutcomesDoc(t *testing.T) {
	t.Parallel()
	want := outcomesDocument(t)
	if *update {
		if err := os.WriteFile(outcomesPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(outcomesPath)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table says (%v): go test ./provider/wire -run TestOutcomesDoc -update", outcomesPath, err)
	}
}

func outcomesDocument(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`<!-- Printed from provider/wire by: go test ./provider/wire -run TestOutcomesDoc -update -->
# What an answer proves

A timeout is not a failure, and neither is every 5xx. An attempt is *failed* only when something proves that trying again cannot do the work twice; whatever
is not on this page is doubt. What a provider's answer, or its absence, proves is one of these:

| outcome | the attempt becomes | which means |
|---|---|---|
`)
	for _, m := range meanings {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", m.outcome, m.state, m.say)
	}
	b.WriteString(`
## The table

Read it from the top: the first row that fits decides, and the last one always fits. *Next* says where another attempt can help; whether one starts is up to the
kind's budgets, its effect and the failover gate. The code is what the attempt's error carries.

| what was seen | proves | next | code |
|---|---|---|---|
`)
	for _, row := range wire.Table() {
		next, known := nexts[row.Next]
		if !known || !explained(row.Outcome) {
			t.Errorf("row %s: outcome %q or next %q is not explained", row.Code, row.Outcome, row.Next)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", strings.ReplaceAll(row.Condition, "|", `\|`), row.Outcome, next, row.Code)
	}
	b.WriteString(`
## Notes

- "Whole request written" means that the operating system took every byte of it. From then on an end of the connection proves nothing, on a fresh connection as
  on one that was used before, and nothing is sent a second time behind your back.
- A 502 or 504 comes from something that stands before the provider. It says that *it* got no answer, not that nothing happened, so it is doubt. If a provider
  documents otherwise, say so in the configuration: ` + "`outcomes: [{when: \"status == 502\", class: refused, target_fault: true}]`" + `. Rules are asked ahead of the table, in
  their order. The ` + "`rule`" + ` that decided is kept in the attempt's evidence.
- A rule can say that something succeeded, but not that half a body is whole: then the outcome is ` + "`result_lost`" + `.
- Who is asked for a stream of events and answers in JSON all the same, as servers do that make none, is read as if no stream had been asked for.
- A 409 is doubt when a key was sent: the request that took the key first may have been ours.
- A 500 proves an executed failure only under effect ` + "`none`" + `: a handler that broke may have charged before it did.
- Silence past ` + "`timeout`" + ` makes the attempt ` + "`unknown`" + `, but the connection stays open for ` + "`linger`" + `, and an answer that comes late settles it.
- When our own process dies, an attempt that had not been marked was never sent and is tried again; one that had been marked is ` + "`unknown`" + `.
- A response of OpenAI's that is ` + "`incomplete`" + ` was executed. Cut at ` + "`max_output_tokens`" + ` after it said something it is ` + "`succeeded`" + `, as a chat that ends with
  "length" is: the bound was the caller's own, and the body says so. Cut there before it said anything, or by the provider's content filter, it is
  ` + "`executed_failed`" + `. Cut for any other reason it is ` + "`result_lost`" + `, and so is one that is ` + "`completed`" + ` and whose output is gone.
- A look-up that says ` + "`cancelled`" + ` under the provider's own id ends the attempt as ` + "`cancelled`" + ` when the job was to be cancelled. Otherwise it is ` + "`executed_failed`" + `:
  the work had begun, and nobody says how far it got. That a cancel was acknowledged proves nothing; the provider is asked until it says how the work ended.
- A rule with class ` + "`accepted`" + ` needs the provider's own id for the work, which ` + "`accepted.id`" + ` finds in that answer. Without it the attempt is ` + "`unknown`" + `.
- The caller going away changes nothing: the attempt goes on, and its result is kept.
`)
	return b.Bytes()
}

func explained(o onejob.Outcome) bool {
	for _, m := range meanings {
		if m.outcome == o {
			return true
		}
	}
	return false
}
