package httpapi

import "github.com/onejob-dev/onejob"

// Route is a route as tests see it.
type Route struct {
	Method, Path string
	Role         onejob.Role
}

// Routes lists the routes of the API.
func Routes() []Route {
	var list []Route
	for _, rt := range (&api{}).routes() {
		list = append(list, Route{rt.method(), rt.path(), rt.role})
	}
	return list
}

// ProblemOf is problemOf.
func ProblemOf(err error) Problem {
	p, _ := problemOf(err)
	return p
}
