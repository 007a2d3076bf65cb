// Package frontdoor serves the APIs of OpenAI and Anthropic, so that a client library
// that speaks one of them is pointed here by its base URL and nothing else: a call is
// an intent, its answer the winner's, byte for byte.
//
// A call is held until its job has an answer. The caller's leaving cancels nothing:
// what was sent is being paid for, and a repeat under the same key finds it. When the
// holding ends first and an attempt is in doubt the caller is told so, with the job's
// address, and never that it failed.
package frontdoor
