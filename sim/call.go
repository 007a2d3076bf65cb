package sim

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// call is one request on its way through the provider.
type call struct {
	p       *Provider
	w       http.ResponseWriter
	r       *http.Request
	dialect dialect
	receipt receipt
	entry   Entry // what was known at arrival

	read     bytes.Buffer // what has been read of the body
	ref      string       // the caller's own reference for the work
	step     Step
	fault    Fault
	answer   answer
	thought  *thought // of a model with a mind; nil: there is none
	kept     *charge  // by an earlier execution of the same key
	taken    bool     // the key is ours until we execute or give up
	status   int      // answered
	released <-chan struct{}
}

// answer is a whole response.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// arrive enters a request in the ledger.
func (p *Provider) arrive(w http.ResponseWriter, r *http.Request, path string, followed bool) *call {
	c := &call{p: p, w: w, r: r, released: p.nextRelease(), dialect: p.dialectFor(path)}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	c.entry = Entry{Method: r.Method, Path: path, Followed: followed, ReceivedAt: p.now()}
	c.entry.Key = r.Header.Get("Idempotency-Key")
	c.entry.Intent = c.named(p.opts.IntentFunc)
	if p.opts.ReferenceFunc != nil {
		c.ref = c.named(p.opts.ReferenceFunc)
	}
	if conn := connOf(r.Context()); conn != nil {
		c.entry.Conn, c.entry.ConnRequest = conn.number, conn.requests.Add(1)
	}
	c.receipt = p.ledger.arrive(c.entry)
	return c
}

// named asks a func for a name of the request, remembering what it reads of the body.
func (c *call) named(by func(*http.Request) string) string {
	body := c.r.Body
	defer func() { c.r.Body = body }()
	before := bytes.NewReader(bytes.Clone(c.read.Bytes())) // by an earlier func
	c.r.Body = io.NopCloser(io.MultiReader(before, io.TeeReader(body, &c.read)))
	return by(c.r)
}

// wants tells whether a step is for this request: look-up or not, and on a
// connection as the fault needs it.
func (c *call) wants(s Step) bool {
	fault, _ := faultNamed(s.Fault)
	return s.Lookup == c.isLookup() && c.cancelledID() == "" && (!fault.reused || c.entry.ConnRequest > 1)
}

func (c *call) isLookup() bool {
	return c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
}

// serve follows the step: read, check, execute, answer.
func (c *call) serve() {
	var err error
	if c.step, err = c.p.choose(c); err != nil {
		c.refuse(http.StatusBadRequest, err.Error())
		return
	}
	known := false
	if c.fault, known = faultNamed(c.step.Fault); !known {
		c.refuse(http.StatusInternalServerError, "sim: unknown fault "+c.step.Fault)
		return
	}
	if c.fault.reused && c.entry.ConnRequest <= 1 {
		c.fault, _ = faultNamed("ok") // a directive on a fresh connection
	}
	c.note(func(e *Entry) { e.Fault = c.step.String() })
	if c.isLookup() {
		c.answer = c.lookUp()
		c.fault.act(c)
		return
	}
	if id := c.cancelledID(); id != "" {
		c.send(c.cancel(id))
		return
	}
	if c.fault.Name == "reset_mid_request" || c.readBody() && c.work() {
		c.fault.act(c)
	}
}

// readBody reads what is left of the body. False: the request is over.
func (c *call) readBody() bool {
	_, err := io.Copy(&c.read, c.r.Body)
	c.note(func(e *Entry) { e.BodyBytes = int64(c.read.Len()) })
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		c.refuse(http.StatusRequestEntityTooLarge, "the body is larger than 8 MiB")
		return false
	}
	if err != nil {
		c.note(func(e *Entry) { e.ClientGone = true })
		c.abort()
	}
	if !c.think() {
		return false
	}
	if c.thought != nil {
		return true
	}
	if complaint := c.dialect.check(c.r, c.read.Bytes()); complaint != "" {
		c.refuse(http.StatusBadRequest, complaint)
		return false
	}
	return true
}

// work executes as the fault says. False: the key was busy and that is answered.
func (c *call) work() bool {
	when := c.fault.Executes
	if when == ExecutesNever || when == ExecutesIfAsked && !c.step.Executed && !c.answersWell() {
		return true
	}
	if c.p.opts.HonourIdempotency && c.entry.Key != "" && !c.takeKey() {
		c.answer = c.dialect.failure(failure{Status: http.StatusConflict, Code: "idempotency_key_in_use", Message: "the first request with this key still runs"})
		c.answer.Header.Set("Retry-After", "1")
		c.send(c.answer)
		return false
	}
	if when == ExecutesLate && c.kept == nil {
		c.sleepThrough(orDelay(c.step.Delay, time.Second))
	}
	c.execute()
	if when == ExecutesTwice {
		c.execute()
	}
	if !c.inBackground() {
		c.pause(c.p.opts.Latency)
	}
	return true
}

// takeKey reports false if the first request of the key still runs.
func (c *call) takeKey() bool {
	kept, found, busy := c.p.ledger.begin(c.entry.Key)
	if found {
		c.kept = &kept
	}
	c.taken = !found && !busy
	return !busy
}

// execute does the work once, or takes the answer of an earlier execution.
func (c *call) execute() {
	if c.kept != nil {
		c.answer = c.kept.Answer
		c.note(func(e *Entry) { e.Replayed, e.ID = true, c.kept.ID })
		return
	}
	done := charge{ID: c.dialect.idPrefix + rand.Text()[:16], Intent: c.entry.Intent, Key: c.entry.Key, Reference: c.ref}
	now := c.p.now()
	done.Answer = c.produce(done.ID, now)
	done.CreatedAt, done.Deaf = now, c.step.Deaf
	switch {
	case c.fault.Name == "accepted":
		done.ReadyAt = now.Add(orDelay(c.step.Delay, time.Second))
	case c.inBackground():
		done.ReadyAt = now.Add(max(c.p.opts.Latency, 0))
	}
	c.p.ledger.execute(c.receipt, done, now)
	if c.answer.Status == 0 { // the first of two executions is the one answered
		c.answer = done.Answer
	}
	c.taken = false
}

// produce writes the answer that belongs to an execution.
func (c *call) produce(id string, now time.Time) answer {
	switch {
	case c.fault.Name == "error_body":
		return c.dialect.failure(failure{Status: http.StatusOK, Code: c.step.Code, Message: "the work failed", ID: id})
	case c.fault.Name == "status" && !c.answersWell():
		return c.failed()
	}
	if c.step.Ends == EndsFailed && c.dialect.background == nil {
		return c.dialect.failure(failure{Status: http.StatusOK, Code: c.step.Code, Message: "the work failed", ID: id})
	}
	if c.step.Ends == EndsCancelled && c.dialect.background == nil {
		return c.dialect.progress(id, string(EndsCancelled), now)
	}
	good := c.succeed(id, now)
	if c.fault.Name == "status" {
		good.Status = c.step.Status
	}
	return good
}

// succeed writes a good answer: that of a mind, unless the work is to end otherwise.
func (c *call) succeed(id string, now time.Time) answer {
	if c.thought != nil && c.step.Ends == EndsCompleted {
		return c.say(id, now)
	}
	return c.dialect.success(work{ID: id, Now: now, Body: c.read.Bytes(), Ends: c.step.Ends, Provider: c.p})
}

// failed is the answer of the fault "status".
func (c *call) failed() answer {
	status := c.step.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	a := c.dialect.failure(failure{Status: status, Code: c.step.Code, Message: "sim: scripted status " + strconv.Itoa(status)})
	if c.step.RetryAfter > 0 {
		seconds := (c.step.RetryAfter + time.Second - 1) / time.Second
		a.Header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	return a
}

func (c *call) answersWell() bool { return c.step.Status >= 200 && c.step.Status < 300 }

// refuse answers an error before any work.
func (c *call) refuse(status int, message string) {
	c.send(c.dialect.failure(failure{Status: status, Message: message}))
}

func (c *call) note(change func(*Entry)) { c.p.ledger.note(c.receipt, change) }

// finish closes the entry, also when the handler was aborted.
func (c *call) finish() {
	if c.taken {
		c.p.ledger.giveUp(c.receipt, c.entry.Key)
	}
	gone := c.r.Context().Err() != nil && !c.p.closed()
	c.note(func(e *Entry) {
		e.Status = c.status
		e.ClientGone = e.ClientGone || gone
	})
	entry := c.p.ledger.finish(c.receipt, c.p.now())
	if c.p.opts.EntryFunc != nil {
		c.p.opts.EntryFunc(entry)
	}
}

func orDelay(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}
