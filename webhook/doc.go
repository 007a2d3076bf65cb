// Package webhook signs, verifies and sends webhooks, as Standard Webhooks 1.0
// describes them.
//
// A receiver needs [Verify] alone: it says whether a request is from who it claims
// to be from, and returns the webhook-id. A webhook is delivered at least once and
// every delivery of it carries the same id, so a receiver remembers the ids that it
// has acted on. Order is not promised.
//
// A [Sender] empties the outbox of a store: it claims what is due, sends it once,
// and writes down what came of it. An endpoint that does not answer is tried again
// for three days and then given up; one that is slow holds up nobody else.
//
// Where webhooks go is for a [Guard] to judge: public addresses by https, and what
// the operator allows besides. It judges the address that is about to be dialled,
// after the name was resolved.
package webhook
