package cli

import (
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
	Blocked   *onejob.Blocked `json:"blocked"`
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
	Evidence   json.RawMessage     `json:"evidence"`
	Key        string              `json:"provider_key"`
	ProviderID string              `json:"provider_id"`
	StartedAt  time.Time           `json:"started_at"`
	FinishedAt time.Time           `json:"finished_at"`

	AcceptedAt      time.Time `json:"accepted_at"`
	NextProbeAt     time.Time `json:"next_probe_at"`
	AskedAt         time.Time `json:"asked_at"`
	QuarantineUntil time.Time `json:"quarantine_until"`

	Discarded *struct {
		Winner string `json:"winner"`
	} `json:"discarded"`
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
		{"id", clean(j.ID)}, {"kind", clean(j.Kind)}, {"owner", clean(j.Owner)}, {"target", clean(j.Target)},
		{"state", j.describe()},
	}
	if b := j.Blocked; b != nil {
		p = append(p, [2]string{"since", when(b.Since)}, [2]string{"detail", clean(b.Detail)}, [2]string{"attempt", clean(b.AttemptID)})
	}
	if j.Error != nil {
		p = append(p, [2]string{"error", clean(j.Error.Code + ": " + j.Error.Message)})
	}
	for _, c := range j.Cost {
		p = append(p, [2]string{"cost", money(c.Micros, c.Currency, c.AtLeast)})
	}
	p = append(p, [2]string{"created", when(j.CreatedAt)}, [2]string{"cancel asked", when(j.CancelAt)}, [2]string{"finished", when(j.FinishedAt)})
	for _, a := range j.Attempts {
		p = append(p, [2]string{"attempt " + strconv.Itoa(a.Number), clean(fmt.Sprintf("%s at %s: %s", a.ID, a.Target, a.State))})
	}
	return p
}

func (a *attemptView) pairs() pairs {
	p := pairs{
		{"id", clean(a.ID)}, {"job", clean(a.JobID)}, {"number", strconv.Itoa(a.Number)}, {"target", clean(a.Target)},
		{"state", clean(string(a.State))}, {"phase", clean(string(a.Phase))}, {"outcome", clean(string(a.Outcome))},
		{"evidence", clean(string(a.Evidence))}, {"provider key", clean(a.Key)}, {"provider id", clean(a.ProviderID)},
		{"started", when(a.StartedAt)}, {"accepted", when(a.AcceptedAt)}, {"asked again", when(a.NextProbeAt)},
		{"a person asked", when(a.AskedAt)}, {"quarantined until", when(a.QuarantineUntil)}, {"finished", when(a.FinishedAt)},
	}
	if a.Discarded != nil {
		p = append(p, [2]string{"lost to", clean(a.Discarded.Winner)})
	}
	return p
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
