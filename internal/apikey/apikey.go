// Package apikey makes, reads and checks API keys. A key can be told from any
// other string, and a mistyped one from a good one, without asking anybody: it
// ends in a checksum. Only a hash of its secret is ever stored.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// A printed key is oj_<id>_<secret><checksum>: the secret is 32 random bytes and
// the checksum the CRC-32 of all before it, both in base 62 and of fixed length.
const (
	prefix         = "oj_"
	idLength       = 12
	maxIDLength    = 32
	secretBytes    = 32
	secretLength   = 43
	checksumLength = 6
)

// maxOwnerLength bounds an owner's name, in bytes.
const maxOwnerLength = 128

// Params is what a new key is to be. Owner and Role are required.
type Params struct {
	Owner string
	Role  onejob.Role
	ActAs bool      // may name sub-owners
	Now   time.Time // when it is created
}

func unknownRole(role onejob.Role) error {
	var names []string
	for _, r := range onejob.Roles() {
		names = append(names, string(r))
	}
	return &onejob.Error{
		Code: onejob.CodeInvalidArgument, Message: fmt.Sprintf("there is no role %q; the roles are %s", role, strings.Join(names, ", ")),
	}
}

// Generate returns a new key as it is printed, once, and as it is stored. It
// returns [onejob.CodeInvalidArgument] for an unknown role and for an owner that
// [CheckOwner] refuses.
func Generate(p Params) (printed string, stored onejob.APIKey, err error) {
	if err := CheckOwner(p.Owner); err != nil {
		return "", onejob.APIKey{}, err
	}
	if !slices.Contains(onejob.Roles(), p.Role) {
		return "", onejob.APIKey{}, unknownRole(p.Role)
	}
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	text := new(big.Int).SetBytes(random[:]).Text(62)
	secret := strings.Repeat("0", secretLength-len(text)) + text
	id := strings.ToLower(rand.Text()[:idLength])
	body := prefix + id + "_" + secret
	return body + checksum(body), onejob.APIKey{
		ID: id, Owner: p.Owner, Role: p.Role, ActAs: p.ActAs,
		Hash: hash(secret), CreatedAt: p.Now.UTC(),
	}, nil
}

// CheckOwner returns [onejob.CodeInvalidArgument] unless the name of an owner, or
// of a sub-owner, is 1 to 128 printable ASCII characters without a slash, which
// parts an owner from its sub-owner.
func CheckOwner(name string) error {
	bad := func(r rune) bool { return r < '!' || r > '~' || r == '/' }
	if name == "" || len(name) > maxOwnerLength || strings.IndexFunc(name, bad) >= 0 {
		return &onejob.Error{
			Code:    onejob.CodeInvalidArgument,
			Message: fmt.Sprintf("an owner is 1 to %d printable ASCII characters without spaces and slashes", maxOwnerLength),
		}
	}
	return nil
}

// errMalformed says nothing of what was wrong: the text that came is a secret.
var errMalformed = errors.New("not an API key, or mistyped")

// Parsed is a key that was read and whose checksum holds. Nothing says yet that
// it exists. It formats without its secret.
type Parsed struct {
	ID     string
	secret string
}

// String names the key without its secret.
func (p Parsed) String() string { return prefix + p.ID }

// GoString names the key without its secret.
func (p Parsed) GoString() string { return p.String() }

// Parse reads a printed key. It asks nobody. Its error never holds the text.
func Parse(printed string) (Parsed, error) {
	rest, ok := strings.CutPrefix(printed, prefix)
	if !ok {
		return Parsed{}, errMalformed
	}
	id, tail, ok := strings.Cut(rest, "_")
	if !ok || id == "" || len(id) > maxIDLength || len(tail) != secretLength+checksumLength || !isBase62(id) || !isBase62(tail) {
		return Parsed{}, errMalformed
	}
	body := printed[:len(printed)-checksumLength]
	if subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(printed[len(body):])) != 1 {
		return Parsed{}, errMalformed
	}
	return Parsed{ID: id, secret: tail[:secretLength]}, nil
}

// Matches reports, in constant time, whether the key is the one that was stored.
// Against a key that was never stored it takes as long and says no.
func (p Parsed) Matches(stored onejob.APIKey) bool {
	want := stored.Hash
	known := len(want) == sha256.Size
	if !known {
		want = make([]byte, sha256.Size)
	}
	return subtle.ConstantTimeCompare(hash(p.secret), want) == 1 && known
}

func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func checksum(body string) string {
	return base62(crc32.ChecksumIEEE([]byte(body)))
}

// base62 writes a checksum as [big.Int.Text] does, with zeros in front. It is asked
// for with every request.
func base62(n uint32) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var s [checksumLength]byte
	for i := len(s) - 1; i >= 0; i-- {
		s[i] = digits[n%uint32(len(digits))]
		n /= uint32(len(digits))
	}
	return string(s[:])
}

func isBase62(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
