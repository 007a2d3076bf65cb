package verification

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

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
	fmt.Fprintf(&b, "contract %s %s   %s x %s = %s\n", r.Kind, short(r.Contract), many(r.Cases, "case"), many(r.Repeats, "repeat"), many(r.Cases*r.Repeats, "call"))
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
		fmt.Fprintf(&b, "%s %-11s %-7s %s\n", label, s.Name, words[s.Verdict], oneLine(s.Text))
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "               %s\n", oneLine(note))
		}
	}
	fmt.Fprintf(&b, "observed       %s\n", oneLine(r.Observed))
	r.writeVerdict(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeVerdict(b *strings.Builder) {
	spent := fmt.Sprintf("(%s, %s spent)", many(r.Calls, "call"), dollars(r.SpendMicros))
	switch r.Verdict {
	case onejob.RunCertified:
		r.writeCertified(b)
		if s := r.stage(gateEquivalence); s != nil && s.Verdict != contract.VerdictPass {
			fmt.Fprintf(b, "        it may not stand in for %s: the pair is not shown to be equivalent\n", r.Primary)
		}
		fmt.Fprintf(b, "What this shows: %s\n", r.Shows)
	case onejob.RunRefused:
		fmt.Fprintf(b, "VERDICT not certified: %s   %s\n", r.Reason, spent)
		r.writeDetail(b)
	default:
		fmt.Fprintf(b, "VERDICT inconclusive: %s   %s\n", r.Reason, spent)
		r.writeDetail(b)
	}
}

// writeCertified tells the certificate, or that there is none: nothing was kept of the
// run, or it called nothing.
func (r *Report) writeCertified(b *strings.Builder) {
	sandbox := ""
	if r.Sandbox {
		sandbox = ", in a sandbox only"
	}
	if r.CertificateID == "" {
		fmt.Fprintf(b, "VERDICT meets the contract%s; no certificate is issued by this   env=%s\n", sandbox, r.Environment)
		r.writeDetail(b)
		return
	}
	fmt.Fprintf(b, "VERDICT certified until %s (%s, %s)%s   %s  env=%s\n",
		r.ExpiresAt.UTC().Format("2006-01-02"), r.Lifetime, r.Naming, sandbox, r.CertificateID, r.Environment)
}

// writeDetail says the reason in words, unless a stage has said them.
func (r *Report) writeDetail(b *strings.Builder) {
	said := r.Detail == ""
	for i := range r.Stages {
		said = said || r.Stages[i].Text == r.Detail || slices.Contains(r.Stages[i].Notes, r.Detail)
	}
	if !said {
		fmt.Fprintf(b, "        %s\n", oneLine(r.Detail))
	}
}

// oneLine keeps what a target said from moving the cursor of whoever reads it, and from
// writing lines of its own.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// many counts things, of which one has no s.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
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
