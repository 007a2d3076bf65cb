package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"github.com/onejob-dev/onejob"
)

// TokenPrice is what a model costs. The zero value tells no price.
type TokenPrice struct {
	InputMicros  int64  // millionths of Currency for a million tokens
	OutputMicros int64  // the same
	Currency     string // empty: no price is told
}

// Check says what is wrong with a price.
func (p TokenPrice) Check() error {
	switch {
	case p.InputMicros < 0 || p.OutputMicros < 0:
		return errors.New("price: a price is negative")
	case p.Currency == "" && (p.InputMicros > 0 || p.OutputMicros > 0):
		return errors.New("price: the currency is missing")
	}
	return nil
}

// MaxUsageBytes is how long a usage may be to be kept: it comes with every list.
const MaxUsageBytes = 16 << 10

// Bounded drops a usage that is longer than [MaxUsageBytes], and says so in e.
func (p Price) Bounded(e *onejob.Evidence) Price {
	if len(p.Usage) <= MaxUsageBytes {
		return p
	}
	note := fmt.Sprintf("the usage is left out: it has %d bytes, more than %d", len(p.Usage), MaxUsageBytes)
	if e.Error != "" {
		note = e.Error + "; " + note
	}
	p.Usage, e.Error = nil, note
	return p
}

const million = 1_000_000

// Micros is the price of so many tokens, rounded up. It reports false when no
// price is told or the counts cannot be right.
func (p TokenPrice) Micros(input, output int64) (int64, bool) {
	if p.Currency == "" || input < 0 || output < 0 {
		return 0, false
	}
	inHigh, inLow := bits.Mul64(uint64(input), uint64(p.InputMicros))
	outHigh, outLow := bits.Mul64(uint64(output), uint64(p.OutputMicros))
	low, carry := bits.Add64(inLow, outLow, 0)
	low, carry2 := bits.Add64(low, million-1, 0)
	if inHigh|outHigh|carry|carry2 != 0 {
		return 0, false
	}
	return int64(low / million), true
}

// Count reads a whole number of at least zero from a parsed JSON object. Zero:
// there is none.
func Count(object any, name string) int64 {
	o, _ := object.(map[string]any)
	n, _ := o[name].(json.Number)
	count, err := n.Int64()
	if err != nil || count < 0 {
		return 0
	}
	return count
}
