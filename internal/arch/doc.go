// Package arch holds the tests of the floor plan: which package may import which,
// that everything public is explained, and what is written nowhere.
package arch
