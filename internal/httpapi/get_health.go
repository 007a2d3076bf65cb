package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// Health is what a probe hears.
type Health struct {
	Status string `json:"status" enum:"live,ready"`
}

// getLive serves GET /livez: the process answers. It depends on nothing.
func (a *api) getLive(w http.ResponseWriter, _ *http.Request) error {
	write(w, http.StatusOK, "application/json", []byte(`{"status":"live"}`))
	return nil
}

// getReady serves GET /readyz: the store answers, with the schema this program
// knows, it does not wait for a restore to be confirmed, and the server is not about
// to stop.
func (a *api) getReady(w http.ResponseWriter, r *http.Request) error {
	if a.opts.DrainingFunc() {
		return &onejob.Error{Code: onejob.CodeDraining, Message: "the server is about to stop"}
	}
	if err := a.readiness.check(r.Context(), a.opts.NowFunc(), a.client.Check); err != nil {
		return onejob.Unavailable(err)
	}
	write(w, http.StatusOK, "application/json", []byte(`{"status":"ready"}`))
	return nil
}

// How long an answer about the store is good for, and how long it may take.
const (
	readinessTTL     = time.Second
	readinessTimeout = 5 * time.Second
)

// readiness asks about the store at most once a second, however many ask us:
// anybody may.
type readiness struct {
	mu    sync.Mutex
	until time.Time
	err   error
}

func (rd *readiness) check(ctx context.Context, now time.Time, ask func(context.Context) error) error {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if now.Before(rd.until) {
		return rd.err
	}
	// Not ended by one caller who hangs up: others get the same answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readinessTimeout)
	defer cancel()
	rd.err = ask(ctx)
	rd.until = now.Add(readinessTTL)
	return rd.err
}

func getLiveDoc() operation {
	return operation{
		id: "getLive", summary: "Whether the process answers",
		answers: []answer{{status: 200, says: "It does", body: Health{}}},
	}
}

func getHealthDoc() operation {
	return operation{
		id: "getHealth", summary: "The same as /livez, for those who look here",
		answers: []answer{{status: 200, says: "The process answers", body: Health{}}},
	}
}

func getReadyDoc() operation {
	return operation{
		id: "getReady", summary: "Whether the server can take work",
		answers:  []answer{{status: 200, says: "It can", body: Health{}}},
		problems: []onejob.Code{onejob.CodeDraining, onejob.CodeRestoreUnconfirmed},
	}
}
