// Package sim is a fake provider that fails in the ways real ones do.
//
// It speaks four dialects: a plain JSON API (any path), the OpenAI chat
// completions and responses APIs, the latter in the background too, and the
// Anthropic messages API. It misbehaves on request, and
// it keeps a ledger of executions: how often it really did the work of one
// intent. A test asks the ledger, not the client, whether a charge happened
// twice.
//
// # In a test
//
//	srv := sim.ForTest(t, sim.Options{})
//	srv.Script(sim.MustParse("silent", "status=503,retry_after=1s")...)
//	// … point the code under test at srv.URL() …
//	if n := srv.Executions("key-1"); n != 1 {
//		t.Errorf("the provider did the work %d times", n)
//	}
//
// [Provider] is an [http.Handler] and can be mounted anywhere. [Start] and
// [ForTest] listen on a real TCP port, which the faults that cut connections need:
// under a handler without a raw connection (HTTP/2, a recorder) those faults
// abort the handler instead.
//
// # Directives
//
// A behaviour is one line of text: the fault, then modifiers, separated by
// commas; "=" and ":" mean the same.
//
//	late=2s
//	status=503,retry_after=1s
//	status=500,executed
//	status=404,lookup
//	accepted=2s,ends=failed
//
// [Faults] lists every fault. The modifiers are retry_after (a duration),
// code (an error code in the answer), executed (do the work although the answer
// is an error) and lookup (meant for GET requests; steps without it are
// never taken by one), ends (how accepted work ends: completed, failed, cancelled or
// incomplete) and deaf (a cancel, a POST to the work's id and /cancel, is answered
// "cancelled" and changes nothing). Work in the background is accepted whatever the
// fault's name; "accepted=2s" says how long it takes, half of it queued.
//
// For each request the first of these that says something decides: a step
// scripted for its intent ([Provider.ScriptFor]), a step of the queue
// ([Provider.Script]), its header "Sim-Fault: late=2s", its query parameter
// "sim=late:2s", [Options.Default].
//
// # Driving it from another process
//
//	GET  /sim/ledger    the ledger as JSON (a [Report]); ?intent=k for one intent
//	GET  /sim/faults    the table of faults
//	POST /sim/script    {"intent":"k","steps":["silent","ok"]}; intent is optional
//	POST /sim/release   lets the requests held by the fault "hold" go
//	POST /sim/drop      {"connections":2}: reset the next two before reading from them
//	POST /sim/reset     forgets everything
//
// Whoever reaches the port may do all this: it is made for tests, not for a
// network one does not own.
package sim
