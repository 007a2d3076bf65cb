// Package verification finds out whether one target meets one contract, and says so
// in a certificate.
//
// [Run] goes through stages, the cheap ones first, and stops at the first that fails:
// what needs no call (S0, S1), what is no execution (S2), a few probes with words that
// only a target can know that was asked (S3), every case with its repeats (S4, S5), and
// what that took (S6). Calls go through the very [onejob.Provider] that production
// uses, one request each, with a provider key of their own. They are no attempts and
// can win no job.
//
// The verdict is statistical and one-sided. The unit is the case; what earlier runs of
// the same contract and target have shown counts along, so that a lucky repeat of a
// failed run helps nobody; a plan is fixed beforehand and only a failure ends it early.
// A call that came to nothing shows nothing: too many of them, or too few calls, and the
// run is inconclusive, which opens nothing and refuses nothing.
//
// [Replay] judges outputs that earlier runs kept by other assertions, without a call.
//
// The package keeps nothing itself. Evidence goes to a [Recorder], whose clock decides
// how long a certificate lasts.
package verification
