package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// audit adds an entry to its owner's chain, in the transaction that does what it
// tells.
func (s *Store) audit(entry onejob.AuditEntry, now time.Time) {
	chain := s.chains[entry.Owner]
	head := onejob.AuditHead{}
	if len(chain) > 0 {
		head = chain[len(chain)-1].Head()
	}
	entry.At = now
	s.chains[entry.Owner] = append(chain, onejob.NextAudit(head, entry))
}

// AuditList reads one page of entries.
func (s *Store) AuditList(ctx context.Context, p onejob.AuditListParams) (onejob.AuditPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.AuditPage{}, err
	}
	defer end()
	order := newestEntryFirst
	if p.Order == onejob.AuditByChain {
		order = byChain
	}
	var entries []onejob.AuditEntry
	for owner, chain := range s.chains {
		for i := range chain {
			if (p.Owner == "" || p.Owner == owner) && (p.After == nil || order(p.After, chain[i].Cursor()) < 0) {
				entries = append(entries, copyEntry(chain[i]))
			}
		}
	}
	slices.SortFunc(entries, func(a, b onejob.AuditEntry) int { return order(a.Cursor(), b.Cursor()) })
	entries, more := page(entries, p.Limit)
	return onejob.AuditPage{Entries: entries, More: more}, nil
}

func newestEntryFirst(a, b *onejob.AuditCursor) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Owner, a.Owner), cmp.Compare(b.Seq, a.Seq))
}

func byChain(a, b *onejob.AuditCursor) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Seq, b.Seq))
}

func copyEntry(e onejob.AuditEntry) onejob.AuditEntry {
	e.Prev, e.Hash = bytes.Clone(e.Prev), bytes.Clone(e.Hash)
	return e
}

// AuditHeads reads the ends of chains, by owner.
func (s *Store) AuditHeads(ctx context.Context, owner string) ([]onejob.AuditHead, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var heads []onejob.AuditHead
	for of, chain := range s.chains {
		if owner == "" || owner == of {
			last := copyEntry(chain[len(chain)-1])
			heads = append(heads, last.Head())
		}
	}
	slices.SortFunc(heads, func(a, b onejob.AuditHead) int { return cmp.Compare(a.Owner, b.Owner) })
	return heads, nil
}
