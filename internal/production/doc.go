// Package production holds production to the contracts of its kinds.
//
// A [Line] makes the requests of kinds that have a contract and judges every output in
// full before it is recorded, by the version of the contract that the job pins. What
// it saw it tells the certificates: outputs and violations, of which too many suspend
// one, and who made the answers, so that a certificate ends when that changes. It is
// what an engine and a client know of contracts.
package production
