package onejob

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"
	"strings"
	"time"
)

// Parts is how many parts the rows of a store are divided into. It is frozen:
// ids and rows carry their part.
const Parts = 256

// PartOf returns the part of an owner's key: FNV-1a (64 bits) over owner, a zero
// byte and key, its eight bytes folded by exclusive or. It is the first column
// of every table, so that the same schema runs hash-partitioned or sharded.
func PartOf(owner, key string) uint8 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	sum := h.Sum64()
	sum ^= sum >> 32
	sum ^= sum >> 16
	sum ^= sum >> 8
	return uint8(sum)
}

// Prefixes of ids.
const (
	jobPrefix     = "job_"
	attemptPrefix = "att_"
)

// Crockford's alphabet, lower case: no letters that people mistake for digits.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// idBytes is one byte of part, six of Unix milliseconds and nine random ones.
const idBytes = 16

// maxIDLength is room for any prefix and what follows it.
const maxIDLength = 40

// NewJobID returns an id for a job of the given part, created at about now.
func NewJobID(part uint8, now time.Time) string { return newID(jobPrefix, part, now) }

// NewAttemptID returns an id for an attempt of a job of the given part.
func NewAttemptID(part uint8, now time.Time) string { return newID(attemptPrefix, part, now) }

func newID(prefix string, part uint8, now time.Time) string {
	var b [idBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())) // its six low bytes are b[2:8]
	copy(b[1:7], b[2:8])
	b[0] = part
	_, _ = rand.Read(b[7:]) // never fails since Go 1.24
	id := append(make([]byte, 0, maxIDLength), prefix...)
	return string(idEncoding.AppendEncode(id, b[:]))
}

// PartOfID returns the part that a job's or an attempt's id carries. It reports
// false for anything that is not such an id.
func PartOfID(id string) (part uint8, ok bool) {
	rest, isJob := strings.CutPrefix(id, jobPrefix)
	if !isJob {
		var isAttempt bool
		if rest, isAttempt = strings.CutPrefix(id, attemptPrefix); !isAttempt {
			return 0, false
		}
	}
	if len(rest) != idEncoding.EncodedLen(idBytes) { // the decoder would skip line breaks
		return 0, false
	}
	b, err := idEncoding.DecodeString(rest)
	if err != nil || len(b) != idBytes {
		return 0, false
	}
	return b[0], true
}

// NewToken returns a random token of 128 bits, as used for claims and creations.
func NewToken() string { return rand.Text() }
