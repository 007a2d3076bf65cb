package sim

import (
	"encoding/json"
	"net/http"
)

// maxScriptBody and maxWaitingSteps bound what another process may queue.
const (
	maxScriptBody   = 1 << 20
	maxWaitingSteps = 100_000
)

// scriptRequest is the body of POST /sim/script.
type scriptRequest struct {
	Intent *string `json:"intent"` // absent: the common queue
	Steps  []Step  `json:"steps"`
}

// dropRequest is the body of POST /sim/drop.
type dropRequest struct {
	Connections int `json:"connections"`
}

// routes are the paths by which another process drives the provider.
func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sim/ledger", p.serveLedger)
	mux.HandleFunc("GET /sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, Faults()) })
	mux.HandleFunc("POST /sim/script", p.serveScript)
	mux.HandleFunc("GET /sim/models", p.serveModels)
	mux.HandleFunc("POST /sim/models", p.serveModels)
	mux.HandleFunc("POST /sim/drop", p.serveDrop)
	mux.HandleFunc("POST /sim/release", command(p.Release))
	mux.HandleFunc("POST /sim/reset", command(p.Reset))
	return mux
}

func (p *Provider) serveLedger(w http.ResponseWriter, r *http.Request) {
	rep := p.Report()
	if wanted, found := r.URL.Query()["intent"]; found {
		rep = rep.of(wanted[0])
	}
	writeJSON(w, rep)
}

// of is the report of one intent, the counts included.
func (rep Report) of(intent string) Report {
	n := rep.Intents[intent]
	one := Report{Executions: int64(n), Intents: map[string]int{}, Entries: []Entry{}}
	if n > 0 {
		one.Intents[intent] = n
	}
	for _, e := range rep.Entries {
		if e.Intent == intent {
			one.Requests++
			one.Entries = append(one.Entries, e)
		}
	}
	return one
}

func (p *Provider) serveScript(w http.ResponseWriter, r *http.Request) {
	var req scriptRequest
	if !readJSON(w, r, &req) {
		return
	}
	if p.script.waiting()+len(req.Steps) > maxWaitingSteps {
		http.Error(w, "sim: too many steps are waiting", http.StatusTooManyRequests)
		return
	}
	if req.Intent != nil {
		p.ScriptFor(*req.Intent, req.Steps...)
	} else {
		p.Script(req.Steps...)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *Provider) serveDrop(w http.ResponseWriter, r *http.Request) {
	var req dropRequest
	if !readJSON(w, r, &req) {
		return
	}
	p.DropConnections(req.Connections)
	w.WriteHeader(http.StatusNoContent)
}

func command(do func()) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		do()
		w.WriteHeader(http.StatusNoContent)
	}
}

// readJSON reads a bounded body strictly. False: the complaint is answered.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxScriptBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		http.Error(w, "sim: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client has left
}
