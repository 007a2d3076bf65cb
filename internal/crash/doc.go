// Command crash is a node that dies, or stands still, at one exact point.
//
//	crash --config onejob.yaml --store URL --listen ADDRESS --at finish.within
//
// It wires the packages that `onejob serve` wires, with something in between that
// waits for its moment; the packages themselves know nothing of it. What is left on
// disk is then what a node leaves that is killed right there, and the program
// itself is started on it next. internal/e2e has the table of points and of what
// must follow.
//
// A point is a call and a moment:
//
//	request.before    the request to create has come, nothing was done with it
//	create, start     the store is asked to create; start also starts the attempt
//	respond.after     the caller has its answer
//	claim, mark       the store is asked to claim or to mark
//	send.after        the whole request was handed to the kernel
//	answer.after      the provider's answer was read
//	finish            the store is asked to finish
//	sweep, probe      the store is asked to end leases, to write an answer down
//	migrate, purge    with --do of the same name
//
// The moments of a store's call are before, within (written and not committed) and
// after (committed, and nobody was told).
//
// The deed is kill (SIGKILL), stop (SIGSTOP; whoever started it lets it go on) or
// doubt: the call's outcome is reported as not known, which with before means that
// nothing happened and with after that everything did.
package main
