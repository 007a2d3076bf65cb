package onejob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

func TestAnIDCarriesItsPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Uint8().Draw(t, "part")
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "at"))
		job := onejob.NewJobID(part, at)
		for prefix, id := range map[string]string{"job_": job, "att_": onejob.NewAttemptID(job, 1)} {
			got, ok := onejob.PartOfID(id)
			if got != part || !ok || !strings.HasPrefix(id, prefix) {
				t.Fatalf("id %q carries part %d, %t; want %d, after %q", id, got, ok, part, prefix)
			}
		}
	})
}

func TestAnAttemptsIDCarriesItsJobAndNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		job := onejob.NewJobID(rapid.Uint8().Draw(t, "part"), time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "at")))
		number := rapid.IntRange(1, 1<<31-1).Draw(t, "number")
		id := onejob.NewAttemptID(job, number)
		if of, n, ok := onejob.JobOfAttemptID(id); of != job || n != number || !ok {
			t.Fatalf("id %q is of attempt %d of %s, %t; want %d of %s", id, n, of, ok, number, job)
		}
		if again := onejob.NewAttemptID(job, number); again == id {
			t.Fatalf("two attempts of one number have the id %q", id)
		}
		if of, _, ok := onejob.JobOfAttemptID(job); ok {
			t.Fatalf("a job's id is that of an attempt of %s", of)
		}
	})
}

func TestAnAttemptOfNoJobHasAnIDAllTheSame(t *testing.T) {
	t.Parallel()
	one, other := onejob.NewAttemptID("nonsense", 1), onejob.NewAttemptID("nonsense", 1)
	if _, ok := onejob.PartOfID(one); one == other || !ok {
		t.Errorf("ids %q and %q; want two different ids", one, other)
	}
}

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100_000 {
		seen[onejob.NewJobID(7, noon)] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("100000 ids of one part and millisecond hold %d different ones", len(seen))
	}
}

// An index over ids then grows at its end.
func TestIDsSortByTimeWhateverTheirPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfNDistinct(rapid.Int64Range(0, 1<<48-1), 2, 20, rapid.ID).Draw(t, "times")
		slices.Sort(times)
		parts := rapid.SliceOfN(rapid.Uint8(), len(times), len(times)).Draw(t, "parts")
		ids := make([]string, len(times))
		for i, ms := range times {
			ids[i] = onejob.NewJobID(parts[i], time.UnixMilli(ms))
		}
		if !slices.IsSorted(ids) {
			t.Fatalf("ids of %v sort otherwise: %v", times, ids)
		}
	})
}

func TestPartOfIDRefusesGarbage(t *testing.T) {
	t.Parallel()
	good := onejob.NewJobID(7, noon)
	for _, id := range []string{
		"", "job_", "att_", "job", good[4:], "cert_" + good[4:], "JOB_" + good[4:], strings.ToUpper(good),
		good[:len(good)-1], good + "0", good + "\n", good + " ", " " + good, "job_" + good, good[:29] + "u",
		good[:10] + "\n" + good[10:], good[:10] + "\n" + good[11:], good[:10] + "-" + good[11:], good + good[4:], "job_" + strings.Repeat("é", 13),
	} {
		if part, ok := onejob.PartOfID(id); ok {
			t.Errorf("PartOfID(%q) = %d, true; want false", id, part)
		}
	}
}

// Rows of every store are found by these parts: they are frozen.
func TestPartOfIsFrozen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		owner, key string
		want       uint8
	}{
		{"", "", 210},
		{"alice", "k1", 134},
		{"alice", "k2", 124},
		{"bob", "k1", 12},
		{"parent/sub", "order-42", 148},
		{"alice", strings.Repeat("k", 255), 109},
	} {
		if got := onejob.PartOf(tt.owner, tt.key); got != tt.want {
			t.Errorf("PartOf(%q, %.20q) = %d; want %d", tt.owner, tt.key, got, tt.want)
		}
	}
}

func TestOwnerAndKeyDoNotRunIntoEachOther(t *testing.T) {
	t.Parallel()
	same := 0
	for i := range 1000 {
		owner, key := fmt.Sprintf("owner%d", i), fmt.Sprintf("%dkey", i)
		if onejob.PartOf(owner+"x", key) == onejob.PartOf(owner, "x"+key) {
			same++
		}
	}
	if same > 20 { // one in 256 by chance
		t.Errorf("%d of 1000 pairs have the part of another split of the same text", same)
	}
}

func TestPartsAreEven(t *testing.T) {
	t.Parallel()
	const keys = 256 * 400
	for name, key := range map[string]func(int) string{
		"Counted":  func(i int) string { return fmt.Sprintf("order-%d", i) },
		"Padded":   func(i int) string { return fmt.Sprintf("%08d", i) },
		"Prefixed": func(i int) string { return fmt.Sprintf("%d-charge", i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var counts [onejob.Parts]int
			for i := range keys {
				counts[onejob.PartOf("alice", key(i))]++
			}
			// 400 a part, 20 the standard deviation of chance.
			if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least < 300 || most > 500 {
				t.Errorf("parts hold between %d and %d of %d keys; want about 400", least, most, keys)
			}
		})
	}
}

func TestTokensAreLongAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token := onejob.NewToken()
		if len(token) < 26 {
			t.Fatalf("token %q is short of 128 bits", token)
		}
		seen[token] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 tokens hold %d different ones", len(seen))
	}
}
