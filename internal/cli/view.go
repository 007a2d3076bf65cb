package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// jobView is what people are shown of a job.
type jobView struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Owner     string          `json:"owner"`
	Target    string          `json:"target"`
	State     onejob.JobState `json:"state"`
	Blocked   *blockedView    `json:"blocked"`
	Revision  int64           `json:"revision"`
	Completed string          `json:"completed_by"`
	Result    json.RawMessage `json:"result"`
	Error     *onejob.Failure `json:"error"`
	Attempts  []attemptView   `json:"attempts"`
	CancelAt  time.Time       `json:"cancel_requested_at"`
	Cost      []struct {
		Currency string `json:"currency"`
		Micros   int64  `json:"micros"`
		AtLeast  bool   `json:"at_least"`
	} `json:"cost"`
	CreatedAt  time.Time `json:"created_at"`
	FinishedAt time.Time `json:"finished_at"`
}

// blockedView is why a job waits, and the calls that would help.
type blockedView struct {
	onejob.Blocked
	Actions []struct {
		Href string `json:"href"`
	} `json:"actions"`
}

// attemptView is what people are shown of an attempt.
type attemptView struct {
	ID         string              `json:"id"`
	JobID      string              `json:"job_id"`
	Number     int                 `json:"number"`
	Lane       int                 `json:"lane"`
	Target     string              `json:"target"`
	State      onejob.AttemptState `json:"state"`
	Phase      onejob.Phase        `json:"phase"`
	Outcome    onejob.Outcome      `json:"outcome"`
	Evidence   evidenceView        `json:"evidence"`
	Error      *onejob.Failure     `json:"error"`
	Key        string              `json:"provider_key"`
	ProviderID string              `json:"provider_id"`
	// What let it take over. Empty: it needed nothing, or the kind declares it.
	Certificate string `json:"certificate_id"`
	Waiver      string `json:"waiver_id"`

	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`

	AcceptedAt      time.Time `json:"accepted_at"`
	NextProbeAt     time.Time `json:"next_probe_at"`
	AskedAt         time.Time `json:"asked_at"`
	QuarantineUntil time.Time `json:"quarantine_until"`

	CostMicros int64  `json:"cost_micros"`
	Currency   string `json:"currency"`

	Discarded *struct {
		Winner  string `json:"winner"`
		AfterMS int64  `json:"after_ms"`
	} `json:"discarded"`
	Ruling *struct {
		By               string         `json:"by"`
		Outcome          onejob.Outcome `json:"outcome"`
		Evidence         string         `json:"evidence"`
		At               time.Time      `json:"at"`
		RiskAcknowledged bool           `json:"risk_acknowledged"`
	} `json:"ruling"`
}

func decodeJob(raw json.RawMessage) (jobView, error) {
	var j jobView
	if err := json.Unmarshal(raw, &j); err != nil || j.ID == "" {
		return j, fmt.Errorf("%w: its answer is not a job", errUnreachable)
	}
	return j, nil
}

// describe is a job's state in one phrase.
func (j *jobView) describe() string {
	switch {
	case j.State == onejob.JobBlocked && j.Blocked != nil:
		return fmt.Sprintf("blocked (%s)", clean(string(j.Blocked.Reason)))
	case j.Error != nil:
		return fmt.Sprintf("%s (%s)", j.State, clean(j.Error.Code))
	}
	return clean(string(j.State))
}

func (j *jobView) pairs() pairs {
	p := pairs{
		{"id", clean(j.ID)},
		{"kind", clean(j.Kind)},
		{"owner", clean(j.Owner)},
		{"target", clean(j.Target)},
		{"state", j.describe()},
	}
	if b := j.Blocked; b != nil {
		p = append(p, [2]string{"since", when(b.Since)}, [2]string{"detail", clean(b.Detail)}, [2]string{"attempt", clean(b.AttemptID)})
	}
	p = append(p, [2]string{"error", failureText(j.Error)})
	for _, c := range j.Cost {
		p = append(p, [2]string{"cost", money(c.Micros, c.Currency, c.AtLeast)})
	}
	p = append(p, [2]string{"created", when(j.CreatedAt)}, [2]string{"cancel asked", when(j.CancelAt)}, [2]string{"finished", when(j.FinishedAt)})
	for i := range j.Attempts {
		a := &j.Attempts[i]
		p = append(p, [2]string{"attempt " + strconv.Itoa(a.Number), a.line(j.Completed)})
	}
	for _, way := range j.waysOn() {
		p = append(p, [2]string{"way on", way})
	}
	return p
}

// line is an attempt among those of its job, which winner won.
func (a *attemptView) line(winner string) string {
	text := fmt.Sprintf("%s at %s: %s", a.ID, a.Target, a.State)
	if a.Lane > 0 {
		text += fmt.Sprintf(", raced in lane %d", a.Lane)
	}
	switch {
	case a.ID == winner:
		text += ", won"
	case a.State == onejob.AttemptDiscarded && winner != "":
		text += ", came after " + winner
	case a.State == onejob.AttemptDiscarded:
		text += ", came after the job had closed"
	}
	return clean(text)
}

// waysOn are the commands that help a blocked job.
func (j *jobView) waysOn() []string {
	b := j.Blocked
	if b == nil {
		return nil
	}
	job, attempt := shellQuote(clean(j.ID)), shellQuote(clean(b.AttemptID))
	var ways []string
	switch b.Reason {
	case onejob.BlockAttemptUnknown:
		ways = []string{
			"ask its provider now: onejob attempts reconcile " + attempt,
			"say what you found out: onejob attempts resolve " + attempt + " --outcome … --evidence …",
		}
	case onejob.BlockFailoverNotCertified:
		for _, c := range b.Candidates {
			ways = append(ways, clean(fmt.Sprintf("target %s may not take over: %s", c.Target, c.Reason)))
		}
		ways = append(ways, b.waysToEvidence(shellQuote(clean(j.Kind)))...)
	case onejob.BlockNeedsOperator, onejob.BlockParked:
		ways = []string{"look whether its work was done; if it was not: onejob jobs unblock " + job + " --reason …"}
	case onejob.BlockFailoverUnproven, onejob.BlockTargetsExhaustedUnproven:
	}
	return append(ways, "give it up: onejob jobs cancel "+job)
}

// waysToEvidence are the commands for what the server offers to do about certificates.
func (b *blockedView) waysToEvidence(kind string) []string {
	var ways []string
	for _, a := range b.Actions {
		switch {
		case strings.HasSuffix(a.Href, "/verify"):
			ways = append(ways, "have one verified: onejob contract verify "+kind+" --target …")
		case a.Href == "/v1/waivers":
			ways = append(ways, "let one take over in your name: onejob contract waive "+kind+" --target … --reason … --until …")
		}
	}
	return ways
}

func (a *attemptView) pairs() pairs {
	if !a.FinishedAt.IsZero() {
		a.QuarantineUntil = time.Time{} // of no interest any more
	}
	if f := a.Error; f != nil && strings.Contains(f.Message, a.Evidence.Error) {
		a.Evidence.Error = ""
	}
	p := pairs{
		{"id", clean(a.ID)},
		{"job", clean(a.JobID)},
		{"number", strconv.Itoa(a.Number)},
		{"target", clean(a.Target)},
		{"certificate", clean(a.Certificate)},
		{"waiver", clean(a.Waiver)},
		{"state", clean(string(a.State))},
		{"phase", clean(string(a.Phase))},
		{"outcome", clean(string(a.Outcome))},
		{"error", failureText(a.Error)},
		{"evidence", clean(a.Evidence.text())},
		{"provider key", clean(a.Key)},
		{"provider id", clean(a.ProviderID)},
		{"started", when(a.StartedAt)},
		{"accepted", when(a.AcceptedAt)},
		{"asked again", when(a.NextProbeAt)},
		{"people asked", when(a.AskedAt)},
		{"no ruling before", when(a.QuarantineUntil)},
		{"finished", when(a.FinishedAt)},
	}
	if a.Lane > 0 {
		p = append(p, [2]string{"lane", strconv.Itoa(a.Lane)})
	}
	if a.Currency != "" {
		p = append(p, [2]string{"cost", money(a.CostMicros, a.Currency, false)})
	}
	if d := a.Discarded; d != nil {
		lost := cmp.Or(clean(d.Winner), "nobody: the job had closed")
		p = append(p, [2]string{"lost to", fmt.Sprintf("%s, by %s", lost, time.Duration(d.AfterMS)*time.Millisecond)})
	}
	if r := a.Ruling; r != nil {
		text := fmt.Sprintf("%s by %s at %s: %s", r.Outcome, r.By, when(r.At), r.Evidence)
		if r.RiskAcknowledged {
			text += " (risk acknowledged)"
		}
		p = append(p, [2]string{"ruled", clean(text)})
	}
	return p
}

func failureText(f *onejob.Failure) string {
	if f == nil {
		return ""
	}
	return clean(f.Code + ": " + f.Message)
}

// evidenceView is what people are shown of what was seen; -o json has all of it.
type evidenceView struct {
	Status       int    `json:"status"`
	Error        string `json:"error"`
	BytesWritten int64  `json:"bytes_written"`
	BytesRead    int64  `json:"bytes_read"`
	EndedMS      int64  `json:"ended_ms"`
	Excerpt      string `json:"excerpt"`
	Rule         string `json:"rule"`
}

func (e *evidenceView) text() string {
	var seen []string
	if e.Status != 0 {
		seen = append(seen, "status "+strconv.Itoa(e.Status))
	}
	if e.BytesWritten != 0 || e.BytesRead != 0 {
		seen = append(seen, fmt.Sprintf("%d bytes sent and %d received", e.BytesWritten, e.BytesRead))
	}
	if e.EndedMS != 0 {
		seen = append(seen, fmt.Sprintf("over after %s", time.Duration(e.EndedMS)*time.Millisecond))
	}
	if e.Rule != "" {
		seen = append(seen, "by rule "+e.Rule)
	}
	if e.Error != "" {
		seen = append(seen, e.Error)
	}
	if e.Excerpt != "" {
		seen = append(seen, "it began "+strconv.Quote(e.Excerpt))
	}
	return strings.Join(seen, ", ")
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func money(micros int64, currency string, atLeast bool) string {
	text := amount(micros) + " " + clean(currency)
	if atLeast {
		return "at least " + text
	}
	return text
}

// amount writes millionths as units, to the last digit.
func amount(micros int64) string {
	digits := strconv.FormatInt(micros, 10)
	sign := ""
	if micros < 0 {
		sign, digits = "-", digits[1:]
	}
	if len(digits) <= 6 {
		digits = strings.Repeat("0", 7-len(digits)) + digits
	}
	units, fraction := digits[:len(digits)-6], strings.TrimRight(digits[len(digits)-6:], "0")
	if fraction == "" {
		return sign + units
	}
	return sign + units + "." + fraction
}

// page is one page of a list.
type page struct {
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"next_cursor"`
}

func decodePage(raw json.RawMessage) (page, error) {
	var p page
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("%w: its answer is not a list", errUnreachable)
	}
	return p, nil
}

// shellQuote makes an argument that a shell reads back as it is.
func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
