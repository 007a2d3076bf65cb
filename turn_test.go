package onejob_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/onejob-dev/onejob"
)

// queue is a store's view of due jobs, by owner.
type queue struct {
	due   map[string][]string
	looks int
}

func (q *queue) look(l onejob.TurnLook) (onejob.Turn, error) {
	q.looks++
	var t onejob.Turn
	for _, owner := range slices.Sorted(maps.Keys(q.due)) {
		if owner > l.After && len(t.Owners) <= l.Owners && len(q.due[owner]) > 0 {
			t.Owners = append(t.Owners, owner)
		}
	}
	looked := min(len(t.Owners), l.Owners)
	for _, owner := range t.Owners[:looked] {
		share := l.Share(looked)
		for _, id := range q.due[owner] {
			ref := onejob.JobRef{ID: id}
			if share > 0 && len(t.Jobs) < l.Max && !slices.Contains(l.Taken, ref) {
				t.Jobs = append(t.Jobs, onejob.TurnJob{Owner: owner, Ref: ref})
				share--
			}
		}
	}
	return t, nil
}

// take claims as a store does: what was found is due no more.
func (q *queue) take(t *testing.T, p *onejob.AttemptClaimParams) map[string]int {
	t.Helper()
	due, last, err := onejob.TakeTurns(p, q.look)
	if err != nil {
		t.Fatal(err)
	}
	p.AfterOwner = last
	had := map[string]int{}
	for _, ref := range due {
		for owner, ids := range q.due {
			if i := slices.Index(ids, ref.ID); i >= 0 {
				q.due[owner] = slices.Delete(slices.Clone(ids), i, i+1)
				had[owner]++
			}
		}
	}
	if len(due) != sum(had) {
		t.Fatalf("of %d jobs found, %v were due", len(due), had)
	}
	return had
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (q *queue) left() (n int) {
	for _, ids := range q.due {
		n += len(ids)
	}
	return n
}

// Whatever the owners have and wherever the walk begins: a claim comes back full
// unless it took all there was, and takes no job twice.
func TestTakeTurnsLeavesNothingBehind(t *testing.T) {
	t.Parallel()

	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := &queue{due: map[string][]string{}}
		for o := range r.IntN(40) {
			for n := range r.IntN(1 + r.IntN(60)) {
				owner := fmt.Sprint("owner-", o)
				q.due[owner] = append(q.due[owner], fmt.Sprint(owner, "/", n))
			}
		}
		p := &onejob.AttemptClaimParams{Max: 1 + r.IntN(70), AfterOwner: []string{"", "owner-2", "zz"}[r.IntN(3)]}
		for claims := 0; q.left() > 0; claims++ {
			before := q.left()
			if got, want := sum(q.take(t, p)), min(p.Max, before); got != want {
				t.Fatalf("seed %d: claim %d of %d took %d of %d due jobs; want %d", seed, claims, p.Max, got, before, want)
			}
		}
		if due, last, _ := onejob.TakeTurns(p, q.look); len(due) != 0 || last != "" {
			t.Fatalf("seed %d: from an empty queue %d jobs were taken, ending at %q", seed, len(due), last)
		}
	}
}

// Between two turns of an owner everybody else has one.
func TestTakeTurnsGivesEverybodyATurn(t *testing.T) {
	t.Parallel()

	for _, most := range []int{1, 2, 7, 64, 300} {
		q := &queue{due: map[string][]string{}}
		for o := range 100 {
			for n := range 100 {
				owner := fmt.Sprintf("owner-%02d", o)
				q.due[owner] = append(q.due[owner], fmt.Sprint(owner, "/", n))
			}
		}
		p, had := &onejob.AttemptClaimParams{Max: most}, map[string]int{}
		for range 30 {
			for owner, n := range q.take(t, p) {
				had[owner] += n
			}
			share := (most + 99) / 100
			counts := slices.Collect(maps.Values(had))
			for len(counts) < 100 {
				counts = append(counts, 0)
			}
			if least, mostHad := slices.Min(counts), slices.Max(counts); mostHad-least > share {
				t.Fatalf("in claims of %d one owner had %d and another %d; want at most %d more", most, mostHad, least, share)
			}
		}
	}
}

// What one look costs is bounded by its width, and the looks of a claim by the
// owners there are.
func TestTakeTurnsLooksOnceWhereEverybodyHasWork(t *testing.T) {
	t.Parallel()

	q := &queue{due: map[string][]string{"big": nil, "small": {"s"}}}
	for n := range 1000 {
		q.due["big"] = append(q.due["big"], fmt.Sprint("b", n))
	}
	p := &onejob.AttemptClaimParams{Max: 1}
	for i, want := range []string{"big", "small", "big", "big"} {
		q.looks = 0
		if had := q.take(t, p); had[want] != 1 {
			t.Errorf("turn %d was %v's; want %s's", i+1, had, want)
		}
		if q.looks > 2 {
			t.Errorf("turn %d took %d looks; want at most 2", i+1, q.looks)
		}
	}
}
