package onejob

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// Parts is how many parts the rows of a store are divided into. It is frozen:
// ids and rows carry their part.
const Parts = 256

// PartOf returns the part of an owner's key: FNV-1a (64 bits) over owner, a zero
// byte and key, its eight bytes folded by exclusive or. It is the first column
// of every table, so that the same schema runs hash-partitioned or sharded.
func PartOf(owner, key string) uint8 { return foldPart(hashPart(hashOwner(owner), key)) }

// Of FNV-1a with 64 bits.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// hashPart goes on with a hash over s.
func hashPart[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func hashOwner(owner string) uint64 { return hashPart(hashPart(fnvOffset, owner), "\x00") }

func foldPart(h uint64) uint8 {
	h ^= h >> 32
	h ^= h >> 16
	h ^= h >> 8
	return uint8(h)
}

// keyInPart returns a new key for an intent that came without one, such that
// [PartOf] owner and key is part: it counts until it meets one, on average to as many
// as there are parts.
func keyInPart(owner string, part uint8) string {
	key := "keyless-" + NewToken() + "-"
	h := hashPart(hashOwner(owner), key)
	var room [20]byte
	for n := int64(0); ; n++ {
		if last := strconv.AppendInt(room[:0], n, 10); foldPart(hashPart(h, last)) == part {
			return key + string(last)
		}
	}
}

// Prefixes of ids.
const (
	jobPrefix     = "job_"
	attemptPrefix = "att_"
)

// Crockford's alphabet, lower case: no letters that people mistake for digits.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Of a job's id, six bytes are Unix milliseconds, nine are random and the last is the
// part: time comes first, so that an index over ids grows at its end, where the ids of
// one batch share a page. An attempt's is its job's, four bytes of number and five
// random ones: the same number of the same job is another attempt once the store was
// restored.
const (
	jobIDBytes     = 16
	partByte       = jobIDBytes - 1
	attemptIDBytes = jobIDBytes + 4 + 5
)

// maxIDLength is room for any prefix and what follows it.
const maxIDLength = 48

func printID(prefix string, b []byte) string {
	id := append(make([]byte, 0, maxIDLength), prefix...)
	return string(idEncoding.AppendEncode(id, b))
}

// NewJobID returns an id for a job of the given part, created at about now.
func NewJobID(part uint8, now time.Time) string { return newID(jobPrefix, part, now) }

func newID(prefix string, part uint8, now time.Time) string {
	var b [jobIDBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16) // its six low bytes
	_, _ = rand.Read(b[6:partByte])                                // never fails since Go 1.24
	b[partByte] = part
	return printID(prefix, b[:])
}

// NewAttemptID returns an id for the attempt of a number, from 1 on, of a job, which
// [JobOfAttemptID] finds in it. If jobID is no job's id it is as good an id, of a job
// that there is not.
func NewAttemptID(jobID string, number int) string {
	var b [attemptIDBytes]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	if job, ok := idBytesOf(jobID, jobPrefix, jobIDBytes); ok {
		copy(b[:], job)
	}
	binary.BigEndian.PutUint32(b[jobIDBytes:], uint32(number))
	return printID(attemptPrefix, b[:])
}

// JobOfAttemptID returns the id of the job whose attempt an id names, and the
// attempt's number. It reports false for anything that is not such an id.
func JobOfAttemptID(id string) (jobID string, number int, ok bool) {
	b, ok := idBytesOf(id, attemptPrefix, attemptIDBytes)
	if !ok {
		return "", 0, false
	}
	number = int(binary.BigEndian.Uint32(b[jobIDBytes:]))
	return printID(jobPrefix, b[:jobIDBytes]), number, number >= 1
}

// PartOfID returns the part that a job's or an attempt's id carries. It reports
// false for anything that is not such an id.
func PartOfID(id string) (part uint8, ok bool) {
	b, ok := idBytesOf(id, jobPrefix, jobIDBytes)
	if !ok {
		b, ok = idBytesOf(id, attemptPrefix, attemptIDBytes)
	}
	if !ok {
		return 0, false
	}
	return b[partByte], true
}

// idBytesOf decodes what stands behind the prefix of an id, if it is n bytes.
func idBytesOf(id, prefix string, n int) ([]byte, bool) {
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok || len(rest) != idEncoding.EncodedLen(n) { // the decoder would skip line breaks
		return nil, false
	}
	b, err := idEncoding.DecodeString(rest)
	return b, err == nil && len(b) == n
}

// NewToken returns a random token of 128 bits, as used for claims and creations.
func NewToken() string { return rand.Text() }
