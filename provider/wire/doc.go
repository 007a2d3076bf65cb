// Package wire sends one HTTP request, once, and says what its answer proves.
//
// A [Client] belongs to one target. [Client.Send] is one exchange: exactly one
// request on the wire. net/http would send a request again on a dead kept-alive
// connection, follow redirects, use a proxy from the environment and inflate
// bodies; none of that happens here. Nothing leaves after the request's SendBy,
// by the monotonic clock or by the wall clock, and once Send has returned nothing
// leaves at all.
//
// What was seen is a [Seen]; the table in outcome.go says what it proves. It is
// the only place that does, and doubt is its last row. A target may override
// rows with [Rules].
//
// HTTP/1.1 only is spoken: a connection then carries one request at a time, so
// that what left of it can be counted exactly, and stopped. Over HTTP/2 neither
// is possible, and net/http sends a refused stream again by itself.
package wire
