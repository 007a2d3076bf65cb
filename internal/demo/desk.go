package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// desk is a fake provider that accepts charges, works on them until it is told
// otherwise, and can be asked to give them up. Its acknowledgement of that says
// "cancelled", which is more than it knows.
type desk struct {
	listener net.Listener
	http     *http.Server

	mu      sync.Mutex
	charges map[string]*charge // by order; each order is its own id
}

// charge is one order at the desk.
type charge struct {
	status   string // what a look-up says
	accepted int    // each is work to be done
	executed int
	asked    int
	heard    int  // how often it had been asked about when the first cancel came
	told     bool // that it is to be given up
}

func openDesk() (*desk, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &desk{listener: listener, charges: map[string]*charge{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/charges", d.accept)
	mux.HandleFunc("GET /v1/charges/{order}", d.lookUp)
	mux.HandleFunc("POST /v1/charges/{order}/cancel", d.cancel)
	d.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.http.Serve(listener) }() // ends when the desk is closed
	return d, nil
}

func (d *desk) close() { _ = d.http.Close() }

func (d *desk) url() string { return "http://" + d.listener.Addr().String() }

func (d *desk) accept(w http.ResponseWriter, r *http.Request) {
	var input struct {
		Order string `json:"order"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&input); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.charges[input.Order] == nil {
		d.charges[input.Order] = &charge{status: "processing"}
	}
	d.charges[input.Order].accepted++
	answerCharge(w, http.StatusAccepted, input.Order, "processing")
}

func (d *desk) lookUp(w http.ResponseWriter, r *http.Request) {
	d.with(w, r, func(c *charge) string {
		c.asked++
		return c.status
	})
}

func (d *desk) cancel(w http.ResponseWriter, r *http.Request) {
	d.with(w, r, func(c *charge) string {
		if !c.told {
			c.status, c.told, c.heard = "cancelling", true, c.asked
		}
		return "cancelled"
	})
}

// with answers what of says of the charge in the path.
func (d *desk) with(w http.ResponseWriter, r *http.Request, of func(*charge) string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.charges[r.PathValue("order")]
	if c == nil {
		http.NotFound(w, r)
		return
	}
	answerCharge(w, http.StatusOK, r.PathValue("order"), of(c))
}

func answerCharge(w http.ResponseWriter, status int, order, state string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":%q}`, order, state)
}

// look returns what is known of an order, nothing if it never came.
func (d *desk) look(order string) charge {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.charges[order]; c != nil {
		return *c
	}
	return charge{}
}

func (d *desk) asked(order string) int      { return d.look(order).asked }
func (d *desk) heard(order string) bool     { return d.look(order).told }
func (d *desk) executions(order string) int { return d.look(order).executed }

// complete does the work of an order, whoever asked to give it up.
func (d *desk) complete(order string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.charges[order]
	c.status, c.executed = "completed", c.executed+c.accepted
}

// giveUp ends an order without its work. It returns how often it was asked about
// since the cancel came.
func (d *desk) giveUp(order string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.charges[order]
	c.status = "cancelled"
	return c.asked - c.heard
}
