// Package sim is a fake provider that fails in the ways real ones do.
//
// It speaks five dialects: a plain JSON API (any path), the OpenAI chat
// completions, responses (in the background too) and images APIs, and the
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
// [Faults] lists every fault; docs/sim.md has the table. The modifiers are retry_after (a duration),
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
// # Models that think, and lie
//
// By default a model repeats its prompt. One with a [Mind] does what a request asks:
//
//	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{
//		"good": {},
//		"bad":  sim.MustParseMind("fence=0.04,stringly,seed=7"),
//	}})
//
// An honest mind answers the JSON that a JSON Schema asks for (response_format,
// text.format, output_config.format), const, enum, bounds, pattern and all, members in the
// order of the schema. What it writes into a member is, in turn: what a message says
// to put there ("put k7Qz2 in probe", "copy `Umeå` into the field city"; the system's
// word before the user's); a line of the last message, as "Order total (cents): 700" for
// order_total; of an enum the value that the last message names first, else the
// first; zero or the nearer bound, false, and of a text the beginning of the last
// message. Without a schema it repeats the last message, after what it is told to
// put or to "say"; it counts when asked to "count to 500". It calls a tool if it must,
// or if the last message names it; it refuses [RefusedPhrase]; it stops at stop
// sequences and at the limit on tokens, with the finish that belongs to that; it refuses
// unknown models, unknown parameters and values out of range. It streams. [Mind.AnswerFunc]
// makes up the JSON in its place.
//
// A token is four bytes or part of them; a message costs four beside its text, a tool and
// a schema what their JSON costs. What is counted (…/messages/count_tokens,
// …/responses/input_tokens) is what is billed. A model has one system_fingerprint.
//
// A lie is a fault of a model, told at its rate to the requests that it can befall:
// "fence=0.04" to one in 25, "param_unsupported=temperature@0.5" to every second one that has a
// temperature. Which ones follows from the seed and the body of the request alone, so that a
// run can be repeated and many seeds tried; with "flaky" from how often the same
// request came before, too. Lies combine; [Entry.Lies] says which of them changed
// an answer. A step of a script, a directive or the default may have lies (and "honest")
// as it has modifiers, as in "late=2s,fence": they take the place of the model's own
// for that request.
//
// # Driving it from another process
//
//	GET  /sim/ledger    the ledger as JSON (a [Report]); ?intent=k for one intent
//	GET  /sim/faults    the table of faults
//	POST /sim/script    {"intent":"k","steps":["silent","ok"]}; intent is optional
//	GET  /sim/models    the models that have a mind
//	POST /sim/models    {"models":{"m":"fence=0.04,seed=7","n":null}}: sets m and removes n
//	POST /sim/release   lets the requests held by the fault "hold" go
//	POST /sim/drop      {"connections":2}: reset the next two before reading from them
//	POST /sim/reset     forgets everything
//
// Whoever reaches the port may do all this: it is made for tests, not for a
// network one does not own.
package sim
