// Package contract says what a kind of job needs of any target, and whether an
// output keeps to it.
//
// A [Contract] is one file beside its case files. [Parse] reads it, strictly and
// with a place for every fault; [Lint] checks what can be checked without spending
// anything; [Digest] names the part of it that evidence depends on. [Compile] makes
// a [Checker], whose Validate judges an output as raw text: what decoding would
// hide (a duplicate name, 1200.0 where an integer belongs, a fence around the
// JSON) is a [Violation], and each has the name of its [Class]. Nothing is repaired
// on the way, since what is repaired here would not be repaired in production.
//
// The statistics are exact and small: [LowerBound], [SmallestPlan], [Power]. A case
// is the unit; its repeats, and its repeats in other runs ([Pool]), make it stricter
// and never count as more evidence.
//
// The package calls no target and reads no clock.
package contract
