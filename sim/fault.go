package sim

import "slices"

// Fault is one way to misbehave.
type Fault struct {
	Name     string   `json:"name"`
	Argument Argument `json:"argument,omitempty"` // what may follow "name="
	Executes Executes `json:"executes"`           // when the work is done
	Short    string   `json:"short"`              // what the client meets

	Lie    bool   `json:"lie,omitempty"`    // it is told by a model with a [Mind]
	Class  string `json:"class,omitempty"`  // of a lie: its number in the table of docs/sim.md; empty: none
	Silent bool   `json:"silent,omitempty"` // of a lie: the answer is 200 and looks well

	act    func(*call) // answers, or does not; the work is already done as Executes says
	reused bool        // fires only on a kept-alive connection that has answered before
}

// Argument is the sort of value a fault takes. Empty: none.
type Argument string

// The sorts of arguments. Every argument is optional, unless said otherwise.
const (
	ArgDuration Argument = "duration" // as in "2s" or "150ms", more than zero
	ArgStatus   Argument = "status"   // 200 to 599
	ArgBytes    Argument = "bytes"    // as in "1000", "64KiB" or "2MiB"; zero is said fault by fault

	ArgRate      Argument = "rate"      // of a lie: how many of the requests it befalls, more than 0, at most 1; all if not given
	ArgParameter Argument = "parameter" // of a lie: the name of a request's parameter, then "@" and a rate if not all; must be given
	ArgCount     Argument = "count"     // of a lie: of what is said there, then "@" and a rate if not all
)

// Executes says when a fault does the work, if it does.
type Executes string

// The moments of execution.
const (
	ExecutesAtOnce  Executes = "at once"         // before anything is answered
	ExecutesLate    Executes = "after the delay" // even if the client has left meanwhile
	ExecutesTwice   Executes = "twice"           // both before anything is answered
	ExecutesNever   Executes = "never"           //
	ExecutesIfAsked Executes = "if asked"        // with the modifier "executed", and for every 2xx
)

func transport(name string, argument Argument, executes Executes, short string, act func(*call), reused bool) Fault {
	return Fault{Name: name, Argument: argument, Executes: executes, Short: short, act: act, reused: reused}
}

// faults are those of the answer as a whole; lies are those of what it says. A delay not given is one second, a status 500.
var faults = []Fault{
	// The answer comes, but not soon, or not now.
	transport("ok", "", ExecutesAtOnce, "a healthy answer", sendAnswer, false),
	transport("late", ArgDuration, ExecutesAtOnce, "a healthy answer after the delay", sendLate, false),
	transport("slow", ArgDuration, ExecutesLate, "a healthy answer after the delay, the work done only then", sendAnswer, false),
	transport("hold", "", ExecutesAtOnce, "a healthy answer once released", sendReleased, false),
	transport("accepted", ArgDuration, ExecutesAtOnce, "202 with an id; a look-up says processing until the delay is over", sendAccepted, false),
	transport("drip", ArgDuration, ExecutesAtOnce, "a healthy answer, one body byte per delay (10ms if not given)", sendDrip, false),
	transport("trickle", ArgDuration, ExecutesAtOnce, "a healthy answer; of a stream one event per delay (10ms if not given)", sendTrickle, false),
	transport("stall", "", ExecutesAtOnce, "a healthy answer; of a stream half of the events, and the rest once released", sendStalled, false),
	transport("twice", "", ExecutesTwice, "a healthy answer, the work done two times", sendAnswer, false),

	// No answer at all.
	transport("silent", "", ExecutesAtOnce, "nothing, until the client leaves", sendNothing, false),
	transport("ignore", "", ExecutesNever, "nothing, until the client leaves", sendNothing, false),
	transport("reset", "", ExecutesAtOnce, "a connection reset before any response byte", cutHard, false),
	transport("eof", "", ExecutesAtOnce, "a clean close before any response byte", cutClean, false),
	transport("reset_mid_request", "", ExecutesNever, "a connection reset while the body is still being sent", cutMidRequest, false),
	transport("drop_keepalive", "", ExecutesAtOnce, "a clean close, on a reused connection only; the first request of a connection is answered", cutClean, true),
	transport("stale", "", ExecutesNever, "a connection reset, on a reused connection only; the first request of a connection is answered", cutHard, true),
	transport("continue_only", "", ExecutesAtOnce, "100 Continue, then a close", cutAfterContinue, false),
	transport("cut_status_line", "", ExecutesAtOnce, "half a status line, then a close", cutStatusLine, false),

	// A success whose result cannot be used.
	transport("half", "", ExecutesAtOnce, "200, half of the promised Content-Length, then a close", sendHalf, false),
	transport("close_delimited", "", ExecutesAtOnce, "200 without Content-Length, half of the body, then a close", sendCloseDelimited, false),
	transport("stream_cut", "", ExecutesAtOnce, "half of the events of a stream, then a body that ends well; another answer as half", sendCutStream, false),
	transport("html", "", ExecutesAtOnce, "200 with a text/html page", sendHTML, false),
	transport("empty", "", ExecutesAtOnce, "200 without a body", sendEmpty, false),
	transport("garbage", "", ExecutesAtOnce, "200 with JSON that does not parse", sendGarbage, false),
	transport("huge", ArgBytes, ExecutesAtOnce, "200 with a body of so many bytes, endless if zero", sendHuge, false),
	transport("header_canary", "", ExecutesAtOnce, "a healthy answer whose headers hold the secret-looking Canary", sendCanary, false),

	// The provider says no.
	transport("error_body", "", ExecutesAtOnce, "200 whose body says that it failed", sendErrorBody, false),
	transport("stream_error", "", ExecutesAtOnce, "half of the events of a stream, then one that says that it failed; another answer as error_body", sendFailedStream, false),
	transport("status", ArgStatus, ExecutesIfAsked, "this status, its body in the dialect's own shape", sendStatus, false),
	transport("redirect", "", ExecutesNever, "307 to another path; the ledger shows whether it was followed", sendRedirect, false),
}

// Faults returns the table of faults, in the order in which it is best read: those of
// the answer as a whole, of any dialect, and then the lies of models with a mind.
func Faults() []Fault {
	all := slices.Clone(faults)
	for _, kind := range lies() {
		all = append(all, kind.fault())
	}
	return all
}

// faultNamed finds a fault in the table. The empty name is "ok".
func faultNamed(name string) (Fault, bool) {
	if name == "" {
		name = "ok"
	}
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return faults[i], true
}
