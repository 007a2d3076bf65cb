package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// Route is a route as tests see it.
type Route struct {
	Method, Path string
	Role         onejob.Role
}

// Routes lists the routes of an API with everything in it.
func Routes() []Route {
	a := &api{opts: Options{Metrics: nobodysMetrics{}}}
	var list []Route
	for _, rt := range a.routes() {
		list = append(list, Route{rt.method(), rt.path(), rt.role})
	}
	return list
}

// ProblemOf is problemOf.
func ProblemOf(err error) Problem {
	p, _ := problemOf(err)
	return p
}

type nobodysMetrics struct{ http.Handler }
