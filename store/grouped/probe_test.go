package grouped_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/memory"
)

func TestQuestionsReachTheStoreBehind(t *testing.T) {
	t.Parallel()
	s := open(t, memory.Open(memory.Options{}), grouped.Options{})
	if _, err := s.AttemptAsk(t.Context(), 1); err != nil {
		t.Errorf("AttemptAsk: %v", err)
	}
	err := s.ProbeNow(t.Context(), onejob.ProbeNowParams{AttemptID: "att_none"})
	if onejob.CodeOf(err) != onejob.CodeNotFound {
		t.Errorf("ProbeNow answered %v; want the store's own %q", err, onejob.CodeNotFound)
	}
}

func TestAStoreWithoutQuestionsSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, &slowStore{}, grouped.Options{})
	if _, err := s.ProbeClaim(t.Context(), onejob.ProbeClaimParams{Max: 1}); onejob.CodeOf(err) != onejob.CodeInternal {
		t.Errorf("ProbeClaim answered %v; want %q", err, onejob.CodeInternal)
	}
}
