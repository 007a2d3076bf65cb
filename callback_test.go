package onejob_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestACallbackTokenIsGoodForItsAttemptAtItsTargetOnly(t *testing.T) {
	t.Parallel()
	const secret = onejob.Secret("a secret of sixteen")
	token := onejob.CallbackToken(secret, "acme", "att_1")
	if id, ok := onejob.CheckCallbackToken(secret, "acme", token); !ok || id != "att_1" {
		t.Errorf("its own token: %q, %t; want att_1", id, ok)
	}
	_, proof, _ := strings.Cut(token, ".")
	for name, forged := range map[string]string{
		"AnotherAttempt": "att_2." + proof, "Cut": token[:len(token)-1], "Longer": token + "a", "NoProof": "att_1.",
		"NoAttempt": "." + proof, "Empty": "", "AnotherSecret": onejob.CallbackToken("another secret of 16", "acme", "att_1"),
		"AnotherTarget": onejob.CallbackToken(secret, "backup", "att_1"),
	} {
		if id, ok := onejob.CheckCallbackToken(secret, "acme", forged); ok {
			t.Errorf("%s: %q passed as %s", name, forged, id)
		}
	}
}
