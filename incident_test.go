package onejob_test

import (
	"math"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestAnIncidentsIDReadsBackAndNothingElseDoes(t *testing.T) {
	t.Parallel()

	for _, want := range []struct {
		part  uint8
		event int64
		id    string
	}{{0, 1, "inc_001"}, {10, 255, "inc_0aff"}, {255, math.MaxInt64, "inc_ff7fffffffffffffff"}} {
		if id := onejob.NewIncidentID(want.part, want.event); id != want.id {
			t.Errorf("part %d, event %d: %q; want %q", want.part, want.event, id, want.id)
		}
		part, event, ok := onejob.ParseIncidentID(want.id)
		if !ok || part != want.part || event != want.event {
			t.Errorf("%s reads back as %d, %d, %v", want.id, part, event, ok)
		}
	}
	for _, id := range []string{"", "inc_", "inc_00", "inc_0001", "inc_0A1", "inc_00 1", "inc_00+1", "inc_00-1", "inc_001 ", "job_001", "inc_0080000000000000000", "inc_zz1"} {
		if part, event, ok := onejob.ParseIncidentID(id); ok {
			t.Errorf("%q reads as %d, %d; want it refused", id, part, event)
		}
	}
}
