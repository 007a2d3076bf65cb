// Package frontdoor serves the APIs of OpenAI and Anthropic, so that a client library
// that speaks one of them is pointed here by its base URL and nothing else: a call is
// an intent, its answer the winner's, byte for byte.
//
// A call is held until its job has an answer. The caller's leaving cancels nothing:
// what was sent is being paid for, and a repeat under the same key finds it. When the
// holding ends first and an attempt is in doubt the caller is told so, with the job's
// address, and never that it failed.
//
// A call without a key is an intent of its own. One that says that it is a retry takes
// over at most one job of a call that was alike, whose caller went without the answer.
package frontdoor
