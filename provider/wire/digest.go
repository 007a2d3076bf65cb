package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest addresses a configuration by content. Parts must be free of secrets;
// their order matters.
func Digest(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil { // a part that JSON cannot say: tell it apart by its error
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
