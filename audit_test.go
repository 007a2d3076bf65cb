package onejob_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// chainOf is an owner's chain of n entries, a second apart.
func chainOf(owner string, n int) []onejob.AuditEntry {
	var entries []onejob.AuditEntry
	var head onejob.AuditHead
	for i := range n {
		e := onejob.NextAudit(head, onejob.AuditEntry{
			Owner: owner, At: time.Unix(int64(1_800_000_000+i), 123_000_000), Actor: "olga",
			Action: onejob.AuditCancel, Subject: fmt.Sprint("job_", i), Detail: "because",
		})
		entries, head = append(entries, e), e.Head()
	}
	return entries
}

func inOrder(chains ...[]onejob.AuditEntry) iter.Seq2[onejob.AuditEntry, error] {
	return func(yield func(onejob.AuditEntry, error) bool) {
		for _, e := range slices.Concat(chains...) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func anchorOf(e onejob.AuditEntry) onejob.AuditAnchor {
	return onejob.AuditAnchor{AuditHead: e.Head(), From: "the anchor"}
}

// The form is what others recompute: it never changes.
func TestTheHashOfAnAuditEntryIsOfThePrevAndItsCanonicalForm(t *testing.T) {
	t.Parallel()

	prev := bytes.Repeat([]byte{7}, 32)
	e := onejob.NextAudit(onejob.AuditHead{Seq: 41, Hash: prev}, onejob.AuditEntry{
		Owner: "shop", At: time.Date(2026, 3, 31, 12, 0, 0, 120_000_000, time.FixedZone("", 3600)), Actor: "olga <o>",
		Action: onejob.AuditResolve, Subject: "att_1", Detail: "not_executed: \"none\"\n€",
	})
	form := `{"action":"attempt.resolve","actor":"olga <o>","at":"2026-03-31T11:00:00.12Z","detail":"not_executed: \"none\"\n€","owner":"shop","seq":42,"subject":"att_1"}`
	want := sha256.Sum256(append(bytes.Clone(prev), form...))
	if !bytes.Equal(e.Hash, want[:]) || e.Seq != 42 || !bytes.Equal(e.Prev, prev) {
		t.Errorf("the entry is %+v; want seq 42 and hash %x", e, want)
	}
}

func TestAuditChainsThatHoldHaveNoFault(t *testing.T) {
	t.Parallel()

	a, b := chainOf("alice", 5), chainOf("bob", 1)
	anchors := []onejob.AuditAnchor{anchorOf(a[1]), anchorOf(a[4]), anchorOf(b[0])}
	heads, faults, err := onejob.VerifyAudit(inOrder(a, b), anchors)
	if err != nil || len(faults) != 0 || len(heads) != 2 || heads[0].Seq != 5 || heads[1].Owner != "bob" {
		t.Errorf("heads %+v, faults %v, %v; want two heads and no fault", heads, faults, err)
	}
	if heads, faults, err := onejob.VerifyAudit(inOrder(), nil); len(heads)+len(faults) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v, %v", heads, faults, err)
	}
}

func TestEveryChangeOfAnAuditEntryIsFound(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(e *onejob.AuditEntry){
		"owner":   func(e *onejob.AuditEntry) { e.Owner = "alicf" },
		"time":    func(e *onejob.AuditEntry) { e.At = e.At.Add(time.Millisecond) },
		"actor":   func(e *onejob.AuditEntry) { e.Actor = "otto" },
		"action":  func(e *onejob.AuditEntry) { e.Action = onejob.AuditUnblock },
		"subject": func(e *onejob.AuditEntry) { e.Subject += " " },
		"detail":  func(e *onejob.AuditEntry) { e.Detail = "" },
		"no text": func(e *onejob.AuditEntry) { e.Detail = "\xff" },
		"prev":    func(e *onejob.AuditEntry) { e.Prev = bytes.Repeat([]byte{1}, 32) },
		"hash":    func(e *onejob.AuditEntry) { e.Hash = bytes.Repeat([]byte{1}, 32) },
		"no hash": func(e *onejob.AuditEntry) { e.Hash = nil },
	} {
		for i := range 4 {
			chain := chainOf("alice", 4)
			change(&chain[i])
			_, faults, err := onejob.VerifyAudit(inOrder(chain), []onejob.AuditAnchor{anchorOf(chainOf("alice", 4)[3])})
			if err != nil || len(faults) == 0 || faults[0].Seq != int64(i+1) && name != "owner" {
				t.Errorf("another %s in entry %d: faults %v, %v; want one there", name, i+1, faults, err)
			}
		}
	}
}

func TestEntriesTakenOutPutInOrMovedAreFound(t *testing.T) {
	t.Parallel()

	chain := chainOf("alice", 5)
	grafted := onejob.NextAudit(onejob.AuditHead{Seq: 2, Hash: bytes.Repeat([]byte{1}, 32)}, chain[2]) // it holds, on another chain
	for name, c := range map[string]struct {
		entries []onejob.AuditEntry
		at      int64
	}{
		"one grafted on":           {[]onejob.AuditEntry{chain[0], chain[1], grafted}, 3},
		"the first taken out":      {chain[1:], 1},
		"one taken out":            {slices.Concat(chain[:2], chain[3:]), 3},
		"two exchanged":            {[]onejob.AuditEntry{chain[0], chain[2], chain[1], chain[3]}, 2},
		"one twice":                {[]onejob.AuditEntry{chain[0], chain[1], chain[1], chain[2]}, 3},
		"one of another's chain":   {slices.Concat(chain[:2], chainOf("bob", 3)[2:], chain[3:]), 1},
		"anothers under this name": {slices.Concat(chain[:2], renamed(chainOf("bob", 3)[2:]), chain[3:]), 3},
	} {
		_, faults, err := onejob.VerifyAudit(inOrder(c.entries), nil)
		if err != nil || len(faults) == 0 || faults[0].Seq != c.at {
			t.Errorf("%s: faults %v, %v; want the first at entry %d", name, faults, err, c.at)
		}
	}
}

func renamed(entries []onejob.AuditEntry) []onejob.AuditEntry {
	for i := range entries {
		entries[i].Owner = "alice"
	}
	return entries
}

// Whoever can write all of the store can make a chain that holds in itself.
func TestOnlyAnAnchorFindsWhatWasWrittenAnew(t *testing.T) {
	t.Parallel()

	chain := chainOf("alice", 5)
	anew := make([]onejob.AuditEntry, 0, 5)
	var head onejob.AuditHead
	for i, e := range chain {
		if i == 2 {
			e.Detail = "nothing happened"
		}
		e = onejob.NextAudit(head, e)
		anew, head = append(anew, e), e.Head()
	}
	for name, c := range map[string]struct {
		entries []onejob.AuditEntry
		anchors []onejob.AuditAnchor
		at      int64 // zero: no fault
	}{
		"written anew, no anchor":               {anew, nil, 0},
		"written anew, an anchor from before":   {anew, []onejob.AuditAnchor{anchorOf(chain[1])}, 0},
		"written anew, an anchor of the change": {anew, []onejob.AuditAnchor{anchorOf(chain[2])}, 3},
		"written anew, a later anchor":          {anew, []onejob.AuditAnchor{anchorOf(chain[4])}, 5},
		"cut, no anchor":                        {chain[:3], nil, 0},
		"cut, an anchor of what is left":        {chain[:3], []onejob.AuditAnchor{anchorOf(chain[2])}, 0},
		"cut, an anchor":                        {chain[:3], []onejob.AuditAnchor{anchorOf(chain[1]), anchorOf(chain[4])}, 4},
		"gone, an anchor":                       {nil, []onejob.AuditAnchor{anchorOf(chain[4])}, 1},
	} {
		_, faults, err := onejob.VerifyAudit(inOrder(c.entries), c.anchors)
		if err != nil || (c.at == 0) != (len(faults) == 0) || c.at > 0 && (len(faults) != 1 || faults[0].Seq != c.at || faults[0].Owner != "alice") {
			t.Errorf("%s: faults %v, %v; want one at entry %d, or none if that is 0", name, faults, err, c.at)
		}
	}
}

func TestAFaultOfOneOwnerLeavesTheOthersVerified(t *testing.T) {
	t.Parallel()

	a, b := chainOf("alice", 3), chainOf("bob", 3)
	a[0].Detail = "changed"
	heads, faults, err := onejob.VerifyAudit(inOrder(a, b), []onejob.AuditAnchor{anchorOf(a[2]), anchorOf(b[2])})
	if err != nil || len(faults) != 1 || faults[0].Owner != "alice" || len(heads) != 1 || heads[0].Owner != "bob" {
		t.Errorf("heads %+v, faults %v, %v; want bob's head and alice's fault", heads, faults, err)
	}
	if got := faults[0].Error(); got != `owner "alice", entry 1: it was changed: its hash is of something else` {
		t.Errorf("the fault says %q", got)
	}
}

func TestAnAuditThatCannotBeReadIsNotVerified(t *testing.T) {
	t.Parallel()

	broken := errors.New("the disk is gone")
	entries := func(yield func(onejob.AuditEntry, error) bool) {
		_ = yield(chainOf("alice", 1)[0], nil) && yield(onejob.AuditEntry{}, broken)
	}
	if _, _, err := onejob.VerifyAudit(entries, nil); !errors.Is(err, broken) {
		t.Errorf("got %v; want the error of the reader", err)
	}
}

func TestAnAuditEntryIsWhatEveryStoreCanKeep(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("€", onejob.MaxAuditText)
	e := onejob.NextAudit(onejob.AuditHead{}, onejob.AuditEntry{Owner: "alice", Actor: "a\x00b\xff", Subject: "job_1", Detail: long, At: time.Unix(1, 0)})
	if e.Actor != "ab\uFFFD" || len(e.Detail) > onejob.MaxAuditText || !strings.HasSuffix(e.Detail, "€…") {
		t.Errorf("the entry is by %q with %d bytes of detail; want clean text of at most %d", e.Actor, len(e.Detail), onejob.MaxAuditText)
	}
	if _, faults, err := onejob.VerifyAudit(inOrder([]onejob.AuditEntry{e}), nil); err != nil || len(faults) != 0 {
		t.Errorf("it does not verify: %v, %v", faults, err)
	}
}
