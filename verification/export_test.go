package verification

import "fmt"

// Repeatable makes the words of probes follow from a seed, so that a run can be
// repeated to the letter.
func Repeatable(o Options, seed uint64) Options {
	n := 0
	o.nonce = func() string {
		n++
		return fmt.Sprintf("k%dq%d", seed, n)
	}
	return o
}
