// Package onejob records one job per intent and lets exactly one attempt win it.
//
// A [Job] is the durable record of what an owner asked for. An [Attempt] is one
// try of that job at one target; attempts accumulate under the job and never
// become jobs of their own. Four rules hold everywhere, and the database
// enforces them:
//
//   - One key, one job. A second [Client.Submit] with the same owner, key and
//     intent answers the first job. Another intent under the key is
//     [ErrKeyConflict], in every state of the job and for ever.
//   - No second try while the first is in doubt. A timeout is [AttemptUnknown],
//     never failed, and blocks new attempts until it is resolved.
//   - Nothing leaves before its mark. An attempt is committed as running before
//     the first byte is sent, so what is found in starting was never sent.
//   - One result. Finishing is a compare-and-swap on the result slot; a late
//     success is kept on its own row as [AttemptDiscarded] and changes nothing.
//
// # Choosing a package
//
// A program that only records intents imports onejob and one store
// (store/sqlite or store/postgres). A program that also tries them adds the
// engine and the providers it calls. A program that speaks HTTP to a running
// server needs none of these: see api/openapi.json; one that is told by webhooks
// verifies them with package webhook.
package onejob
