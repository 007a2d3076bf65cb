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

// Of a job's id, one byte is the part, six are Unix milliseconds and nine are random.
// An attempt's is its job's, four bytes of number and five random ones: the same
// number of the same job is another attempt once the store was restored.
const (
	jobIDBytes     = 16
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
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())) // its six low bytes are b[2:8]
	copy(b[1:7], b[2:8])
	b[0] = part
	_, _ = rand.Read(b[7:]) // never fails since Go 1.24
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
	return b[0], true
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
