package httpapi

import (
	"context"
	"net/http"
)

// exchange is what the layers know of one request.
type exchange struct {
	route  string // the pattern's path; empty: none was found
	caller caller
	// release gives back the place among the requests being served. It may be
	// called more than once.
	release func()
	// endHold gives back the place among those that hold, once the answer is
	// written. It may be called more than once.
	endHold func()
}

type exchangeKey struct{}

func withExchange(r *http.Request) (*http.Request, *exchange) {
	x := &exchange{release: func() {}, endHold: func() {}}
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
