// Package prompt carries a prompt in neutral words into the body of one API.
//
// A [Protocol] says which member of a body each parameter goes to; a target may say
// otherwise ([NewCarrier]). What a target does not carry is dropped and said, and
// refused where it is required. The same prompt makes the same bytes.
package prompt
