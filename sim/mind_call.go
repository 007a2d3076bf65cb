package sim

import (
	"net/http"
	"strings"
	"time"
)

// dialectFor is the dialect of a path. That of counting and embedding is spoken only
// where models have minds; elsewhere those paths are plain.
func (p *Provider) dialectFor(path string) dialect {
	if p.models.any() {
		switch {
		case strings.HasSuffix(path, "/v1/messages/count_tokens"):
			return countingOf(anthropic)
		case strings.HasSuffix(path, responsesPath+"/input_tokens"):
			return countingOf(responses)
		case strings.HasSuffix(path, "/embeddings"):
			return embeddings
		}
	}
	return dialectOf(path)
}

// countingOf is a dialect that is asked only how long a request is.
func countingOf(d dialect) dialect {
	d.counts, d.background = true, nil
	return d
}

// think makes up the answer where the model has a mind. False: the request is over,
// and answered.
func (c *call) think() bool {
	minded := c.p.models.any()
	if c.dialect.ask == nil || !minded && c.step.Mind == nil {
		return true
	}
	if c.r.Header.Get("Anthropic-Version") == "" && c.dialect.idPrefix == anthropic.idPrefix {
		return c.complain(*badRequest("", "anthropic-version: header is required"))
	}
	q, bad := c.dialect.ask(c.read.Bytes())
	if bad != nil {
		return c.complain(*bad)
	}
	c.note(func(e *Entry) { e.Model = q.model })
	mind, known := c.p.models.find(q.model)
	if !known && minded {
		return c.complain(*unknownModel(q.model))
	}
	if c.step.Mind != nil {
		mind = mind.over(*c.step.Mind)
	}
	if c.dialect.counts {
		return c.tellCount(q)
	}
	if c.dialect.idPrefix == embeddings.idPrefix {
		c.thought = &thought{q: q, model: q.model}
		return true
	}
	return c.answerBy(q, mind)
}

func (c *call) answerBy(q *question, mind Mind) bool {
	nth := 0
	if mind.Flaky {
		nth = c.p.models.repeat(c.read.Bytes())
	}
	before := c.p.models.next(q.model)
	c.thought = think(q, mind, c.read.Bytes(), before, nth)
	if bad := c.thought.bad; bad != nil {
		c.noteLies()
		return c.complain(*bad)
	}
	return true
}

// noteLies enters what was told into the ledger.
func (c *call) noteLies() {
	told := strings.Join(c.thought.told, ",")
	c.note(func(e *Entry) { e.Lies = told })
}

// say writes the answer of a mind.
func (c *call) say(id string, now time.Time) answer {
	c.noteLies()
	return c.dialect.say(c.thought, id, now)
}

// complain refuses a request as the vendor does. It returns false.
func (c *call) complain(f failure) bool {
	if c.dialect.idPrefix == anthropic.idPrefix {
		c.send(anthropicComplaint(f))
	} else {
		c.send(c.dialect.failure(f))
	}
	return false
}

// tellCount answers how long a request is; nothing is executed. It returns false.
func (c *call) tellCount(q *question) bool {
	if q.surface == onMessages {
		q.limit = 1 // a count asks for no answer
	}
	if bad := q.disorder(); bad != nil {
		return c.complain(*bad)
	}
	body := map[string]any{"input_tokens": q.count()}
	if q.surface == onResponses {
		body["object"] = "response.input_tokens"
	}
	c.send(jsonAnswer(http.StatusOK, body))
	return false
}
