// Package llama runs a real language model, if one may call it that: llama.cpp over
// a model with the right shape and random weights. Under a grammar its answers have
// the structure that was asked for, every time, and mean nothing, which is what a
// contract is there to tell apart.
//
// It needs Node.js, npm and a registry that serves packages, so that its test runs
// only when it is asked for: make test-llama.
package llama
