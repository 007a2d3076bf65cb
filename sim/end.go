package sim

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// End is how accepted work ends, as a look-up tells it.
type End string

// The ends of accepted work. The zero value is EndsCompleted.
const (
	EndsCompleted  End = ""
	EndsFailed     End = "failed"
	EndsCancelled  End = "cancelled"
	EndsIncomplete End = "incomplete" // cut at the bound on its length; of responses only
)

func parseEnd(value string) (End, error) {
	switch end := End(value); end {
	case EndsFailed, EndsCancelled, EndsIncomplete:
		return end, nil
	case "completed":
		return EndsCompleted, nil
	default:
		return "", fmt.Errorf("work ends completed, failed, cancelled or incomplete, not %q", value)
	}
}

// cancelledID is the id of the work that a request asks to give up: the path ends
// in it and "/cancel". Empty: the request asks for nothing of the kind.
func (c *call) cancelledID() string {
	path, asks := strings.CutSuffix(c.entry.Path, "/cancel")
	if !asks || c.isLookup() {
		return ""
	}
	id := path[strings.LastIndex(path, "/")+1:]
	if _, known := c.p.ledger.charge(id); known || c.dialect.idPrefix == responsePrefix {
		return id
	}
	return ""
}

// cancel gives accepted work up that is not done yet, unless it is deaf. The answer
// is the same for deaf work: an acknowledgement is not an end.
func (c *call) cancel(id string) answer {
	now := c.p.now()
	ch, known := c.p.ledger.charge(id)
	switch {
	case !known:
		return c.dialect.failure(failure{Status: http.StatusNotFound, Message: "there is no such work"})
	case !now.Before(ch.ReadyAt):
		return ch.state(c.dialect, now)
	case !ch.Deaf:
		c.p.ledger.cancel(c.receipt, id, now)
	}
	return c.dialect.progress(id, "cancelled", ch.CreatedAt)
}

// state is what a look-up says of the charge.
func (c charge) state(d dialect, now time.Time) answer {
	switch {
	case !c.CancelledAt.IsZero():
		return d.progress(c.ID, "cancelled", c.CreatedAt)
	case !now.Before(c.ReadyAt):
		return c.Answer
	case now.Before(c.CreatedAt.Add(c.ReadyAt.Sub(c.CreatedAt) / 2)):
		return d.progress(c.ID, "queued", c.CreatedAt)
	}
	return d.progress(c.ID, "in_progress", c.CreatedAt)
}
