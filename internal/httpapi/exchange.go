package httpapi

import (
	"context"
	"net/http"
)

// exchange is what the layers know of one request.
type exchange struct {
	answer recorder
	route  string // the pattern's path; empty: none was found
	caller caller
	served place // among the requests being served
	held   place // among those that hold, until the answer is written
}

type exchangeKey struct{}

func withExchange(w http.ResponseWriter, r *http.Request) (*http.Request, *exchange) {
	x := &exchange{answer: recorder{ResponseWriter: w}}
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)), x
}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// gauge bounds how many do something at once. Whoever does not get in is told so
// at once: nobody queues.
type gauge chan struct{}

func newGauge(most int) gauge { return make(gauge, most) }

func (g gauge) enter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gauge) leave() { <-g }

// place is one in a gauge. It belongs to the goroutine of its request.
type place struct{ in gauge }

// take takes a place, if there is one.
func (p *place) take(in gauge) bool {
	if !in.enter() {
		return false
	}
	p.in = in
	return true
}

// leave gives the place back. It may be called more than once.
func (p *place) leave() {
	if p.in != nil {
		p.in.leave()
		p.in = nil
	}
}
