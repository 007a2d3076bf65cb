package grouped_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/memory"
)

func TestTheOutboxIsTheOneOfTheStoreBehind(t *testing.T) {
	t.Parallel()
	behind := memory.Open(memory.Options{})
	s := open(t, behind, grouped.Options{})
	if err := s.EndpointDisable(t.Context(), "ep_1", "gone"); err != nil {
		t.Errorf("EndpointDisable: %v", err)
	}
	if disabled, err := behind.EndpointDisabled(t.Context()); err != nil || len(disabled) != 1 || disabled[0].ID != "ep_1" {
		t.Errorf("the store behind has %v disabled, %v; want ep_1", disabled, err)
	}
}

func TestAStoreWithoutAnOutboxSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, &slowStore{}, grouped.Options{})
	if _, err := s.DeliveryClaim(t.Context(), onejob.DeliveryClaimParams{Max: 1}); onejob.CodeOf(err) != onejob.CodeInternal {
		t.Errorf("DeliveryClaim answered %v; want %q", err, onejob.CodeInternal)
	}
}
