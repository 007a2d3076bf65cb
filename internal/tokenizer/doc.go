// Package tokenizer counts and reads the tokens of a prompt without asking a target.
//
// [Load] reads a tokenizer.json with a byte-level BPE model; what it does not know
// exactly it refuses, since a count that is nearly right shows nothing. [Tiktoken] has
// the encodings o200k_base and cl100k_base. A [ChatTemplate] makes the text that a
// server makes of messages.
//
// All of it is a model of what a server does, not what it does: engines differ in public.
package tokenizer
