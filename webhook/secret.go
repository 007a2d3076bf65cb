package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/onejob-dev/onejob"
)

// ErrSecret says that a text is no secret that webhooks could be signed with.
var ErrSecret = errors.New("not a webhook secret")

const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
	newSecretBytes = 32
)

// NewSecret returns a new secret, to be given to the sender and to the receiver.
func NewSecret() onejob.Secret {
	var key [newSecretBytes]byte
	_, _ = rand.Read(key[:]) // never fails since Go 1.24
	return onejob.Secret(secretPrefix + base64.StdEncoding.EncodeToString(key[:]))
}

// CheckSecret returns [ErrSecret], with what would be right, for anything but
// whsec_ and the base64 of 24 to 64 bytes. The message does not hold the secret.
func CheckSecret(secret onejob.Secret) error {
	_, err := keyOf(secret)
	return err
}

// keyOf returns the bytes that a secret stands for. An empty key would sign, and
// let everybody else sign too.
func keyOf(secret onejob.Secret) ([]byte, error) {
	encoded, found := strings.CutPrefix(secret.Reveal(), secretPrefix)
	if !found {
		return nil, secretFault("it does not begin with " + secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
		return nil, secretFault("what follows " + secretPrefix + " is not base64 with its padding")
	case len(key) < minSecretBytes || len(key) > maxSecretBytes:
		return nil, secretFault(fmt.Sprintf("it stands for %d bytes; %d to %d are needed", len(key), minSecretBytes, maxSecretBytes))
	}
	return key, nil
}

func secretFault(what string) error {
	return fmt.Errorf("%w: %s; make one with: echo whsec_$(openssl rand -base64 32)", ErrSecret, what)
}

// keysOf returns the keys of at least one secret.
func keysOf(secrets []onejob.Secret) ([][]byte, error) {
	if len(secrets) == 0 {
		return nil, secretFault("there is none")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}
