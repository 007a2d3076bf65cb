package postgres

import "sync/atomic"

// seen is the highest number of the store's generation that this process knows of.
type seen struct{ number atomic.Int64 }

func (s *seen) raise(number int64) {
	for {
		known := s.number.Load()
		if known >= number || s.number.CompareAndSwap(known, number) {
			return
		}
	}
}
