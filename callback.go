package onejob

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
)

// ErrForged says that a report is not signed as the target it names signs. It must
// change nothing and is not written down.
var ErrForged = errors.New("the report is not signed as its target signs")

// CallbackToken returns what a provider shows when it reports an attempt by itself:
// the attempt's id, and a proof that it was made with the instance's secret for that
// attempt at that target.
func CallbackToken(secret Secret, target, attemptID string) string {
	return attemptID + "." + callbackProof(secret, target, attemptID)
}

// CheckCallbackToken returns the attempt that a token was made for, in a time that
// does not tell how far a forged one was right. It reports false for every other text.
func CheckCallbackToken(secret Secret, target, token string) (attemptID string, ok bool) {
	attemptID, proof, found := strings.Cut(token, ".")
	if !found || attemptID == "" {
		return "", false
	}
	if !hmac.Equal([]byte(proof), []byte(callbackProof(secret, target, attemptID))) {
		return "", false
	}
	return attemptID, true
}

func callbackProof(secret Secret, target, attemptID string) string {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	_, _ = mac.Write([]byte("onejob callback v1\x00" + target + "\x00" + attemptID)) // never fails
	return idEncoding.EncodeToString(mac.Sum(nil))
}
