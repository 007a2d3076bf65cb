package providertest

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// goroutines finds a provider's goroutines by a label, which they inherit.
func (s suite) goroutines(t *testing.T) {
	label := "providertest " + t.Name()
	p, srv := s.open(t, func(x *Exchange) {
		if x.Number == 2 {
			x.Wait()
			return
		}
		s.answerWell(x)
	})
	pprof.Do(t.Context(), pprof.Labels("leak", label), func(ctx context.Context) {
		for _, silent := range []bool{false, true, false} {
			patience := 5 * time.Second
			if silent {
				patience = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(ctx, patience)
			if _, err := p.Call(ctx, s.request()); (err != nil) != silent {
				t.Errorf("Call to a provider, silent %t: %v", silent, err)
			}
			cancel()
		}
	})
	closeIdle(p)
	srv.Close()
	deadline := time.Now().Add(5 * time.Second)
	for labelled(label) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left after the calls", labelled(label))
		}
		time.Sleep(5 * time.Millisecond) // until they have ended
	}
}

// labelled counts the groups of goroutines under a label.
func labelled(label string) int {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return 0
	}
	return strings.Count(profile.String(), label)
}
