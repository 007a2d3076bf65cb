// Package cli is the onejob command: one file a command.
//
// What a command finds goes to stdout, in the form that -o asks for; everything
// it has to say goes to stderr. Nothing is coloured and nothing moves when the
// output is no terminal, or with NO_COLOR. Exit codes are part of the interface;
// see [ExitOK] and what follows it.
//
// Commands never use package os directly. What they may touch is an [Env].
package cli
