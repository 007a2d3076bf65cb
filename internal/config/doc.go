// Package config turns onejob.yaml, the environment and flags into settings that
// have been checked.
//
// A setting is taken from the first of these that says something: a flag, the
// environment, the file, the default. Decoding is strict: a key that does not
// exist, a number where a duration belongs, a target nobody declared are faults,
// each with file, line, column and the nearest thing that would have been right.
// All faults are reported at once.
//
// The structs of this package are the only description of the file. The decoder,
// the JSON Schema and the printed configuration are all made from them, so that
// they cannot disagree.
//
// References to the environment and to files, as in "Bearer ${env:ACME_KEY}", are
// resolved in secret fields only. What they resolve to is a [onejob.Secret] and
// appears in no message and no print-out.
package config
