package onejob

import (
	"slices"
	"strings"
	"sync"
)

// This file is how claims are shared among owners: they take turns, so that one
// owner's backlog delays nobody else by more than their turns. Nobody keeps a list
// of owners; each claim looks at those who have due jobs, from where the claimer's
// last one stopped.

// TurnLook asks a store for due jobs of those owners who come after another one, in
// the order of their bytes.
type TurnLook struct {
	After  string // empty: from the first owner
	Owners int    // how many owners may be looked at
	Max    int    // at most so many jobs, above zero
	// Taken are the jobs that earlier looks of this claim found. They are not to
	// be found again.
	Taken []JobRef
}

// Turn is what a store saw in one look.
type Turn struct {
	// Owners are those looked at, in order, and the one after them if there is one.
	Owners []string
	// Jobs come in the order of Owners; of each owner at most [TurnLook.Share], higher
	// priority first, then longest due.
	Jobs []TurnJob
}

// TurnJob is one due job whose turn it is.
type TurnJob struct {
	Owner string
	Ref   JobRef
}

// Share is how many jobs each of the owners looked at may have, rounded up. From
// the first owner on it is as many as the others. Further on it is one: those who
// come after are as many as there are, and the others' turn comes then.
func (l *TurnLook) Share(owners int) int {
	if l.After != "" || owners < 1 {
		return 1
	}
	return (l.Max + owners - 1) / owners
}

// widestLook bounds how many owners one look takes in, but for larger claims.
const widestLook = 1024

// TakeTurns finds due jobs for a claim, at most p.Max, owners taking turns from the
// one after p.AfterOwner. last is where the claimer's next claim goes on: after that
// owner. With fewer than p.Max jobs there are no more that this claimer could have.
func TakeTurns(p *AttemptClaimParams, look func(TurnLook) (Turn, error)) (due []JobRef, last string, err error) {
	c := circle{after: p.AfterOwner}
	if p.Owner != "" {
		c.after = "" // there is nobody to take turns with
	}
	c.whole = c.after == ""
	for width := p.Max; len(due) < p.Max; width = min(8*width, max(widestLook, p.Max)) {
		l := TurnLook{After: c.after, Owners: width, Max: p.Max - len(due), Taken: due}
		t, err := look(l)
		if err != nil {
			return nil, p.AfterOwner, err
		}
		for _, j := range t.Jobs {
			due = append(due, j.Ref)
		}
		if !c.walk(&l, &t) {
			break
		}
	}
	if p.Owner != "" {
		return due, p.AfterOwner, nil
	}
	return due, c.after, nil
}

// circle is a walk over owners that begins anew after the last one.
type circle struct {
	after string
	whole bool // it has begun at the first owner
	more  bool // and an owner on the way had a whole share, so may have more
}

// walk goes on to where the next look begins, and reports whether there is anything
// to look for.
func (c *circle) walk(l *TurnLook, t *Turn) bool {
	further := len(t.Owners) > l.Owners
	if len(t.Jobs) >= l.Max {
		if c.after = t.Jobs[len(t.Jobs)-1].Owner; c.after == t.Owners[len(t.Owners)-1] {
			c.after = "" // the next claim need not find out that nobody comes after
		}
		return false
	}
	c.more = c.more || t.wholeShare(l)
	if further {
		c.after = t.Owners[l.Owners-1]
		return true
	}
	done := c.whole && !c.more
	c.after, c.whole, c.more = "", true, false
	return !done
}

// wholeShare reports whether some owner had all that was its to have.
func (t *Turn) wholeShare(l *TurnLook) bool {
	share := l.Share(min(len(t.Owners), l.Owners))
	had := map[string]int{}
	for _, j := range t.Jobs {
		if had[j.Owner]++; had[j.Owner] >= share {
			return true
		}
	}
	return false
}

// turns remembers for each queue of pull workers, which are the kinds they take,
// the owner whom the last claim ended with. It is a convenience: whoever is
// forgotten begins at the first owner.
type turns struct {
	mu   sync.Mutex
	last map[string]string
}

// mostQueues bounds the sets of kinds that are remembered.
const mostQueues = 1000

func queueOf(p *AttemptClaimParams) string {
	return strings.Join(slices.Sorted(slices.Values(p.Kinds)), "\x00")
}

func (t *turns) after(queue string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[queue]
}

func (t *turns) next(queue, owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.last[queue]; !known && len(t.last) >= mostQueues {
		clear(t.last)
	}
	if t.last == nil {
		t.last = map[string]string{}
	}
	t.last[queue] = owner
}
