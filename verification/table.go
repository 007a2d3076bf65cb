package verification

import (
	"fmt"
	"io"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// words for verdicts, in a table.
var words = map[contract.Verdict]string{
	contract.VerdictPass: "PASS", contract.VerdictFail: "FAIL", contract.VerdictInconclusive: "UNKNOWN", VerdictSkipped: "n/a",
}

// WriteTable writes a report for people.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "contract %s %s   %d cases x %d repeats = %d calls\n", r.Kind, short(r.Contract), r.Cases, r.Repeats, r.Cases*r.Repeats)
	fmt.Fprintf(&b, "target    %s  %s   model %s (%s)", r.Target, short(r.Digest), dash(r.Model), r.Naming)
	if r.Protocol != "" {
		fmt.Fprintf(&b, "  adapter %s", r.Protocol)
	}
	b.WriteByte('\n')
	last := Stage("")
	for i := range r.Stages {
		s := &r.Stages[i]
		label := string(s.Stage)
		if s.Stage == last {
			label = "  "
		}
		last = s.Stage
		fmt.Fprintf(&b, "%s %-11s %-7s %s\n", label, s.Name, words[s.Verdict], s.Text)
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "               %s\n", note)
		}
	}
	fmt.Fprintf(&b, "observed       %s\n", r.Observed)
	r.writeVerdict(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeVerdict(b *strings.Builder) {
	spent := fmt.Sprintf("(%d calls, %s spent)", r.Calls, dollars(r.SpendMicros))
	switch r.Verdict {
	case onejob.RunCertified:
		until := "for " + r.Lifetime
		if !r.ExpiresAt.IsZero() {
			until = fmt.Sprintf("until %s (%s, %s)", r.ExpiresAt.UTC().Format("2006-01-02"), r.Lifetime, r.Naming)
		}
		sandbox := ""
		if r.Sandbox {
			sandbox = ", in a sandbox only"
		}
		fmt.Fprintf(b, "VERDICT certified %s%s   %s  env=%s\n", until, sandbox, dash(r.CertificateID), r.Environment)
		if s := r.stage(gateEquivalence); s != nil && s.Verdict != contract.VerdictPass {
			fmt.Fprintf(b, "        it may not stand in for %s: the pair is not shown to be equivalent\n", r.Primary)
		}
		fmt.Fprintf(b, "What this shows: %s\n", r.Shows)
	case onejob.RunRefused:
		fmt.Fprintf(b, "VERDICT not certified: %s   %s\n", r.Reason, spent)
	default:
		fmt.Fprintf(b, "VERDICT inconclusive: %s   %s\n        %s\n", r.Reason, spent, r.Detail)
	}
}

// shortDigest is how many characters of a digest are shown: the version and eight.
const shortDigest = len("v1:") + 8

func short(digest string) string {
	if len(digest) > shortDigest {
		return digest[:shortDigest] + "…"
	}
	return digest
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
