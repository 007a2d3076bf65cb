package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// auditPart is where an owner's chain lies.
func auditPart(owner string) int { return int(onejob.PartOf(owner, "")) }

// audit adds an entry to its owner's chain, in the transaction that does what it
// tells. There is one writer, so that nobody else adds to the chain meanwhile.
func (x *tx) audit(entry onejob.AuditEntry) error {
	head := onejob.AuditHead{Owner: entry.Owner}
	part := auditPart(entry.Owner)
	err := x.query(`SELECT seq, at, hash FROM audit_heads WHERE part = ? AND owner = ?`, func(r *row) error {
		head.Seq, head.At, head.Hash = r.Int64(), r.Time(), r.Bytes()
		return nil
	}, part, entry.Owner)
	if err != nil {
		return err
	}
	entry.At = millis(x.now)
	e := onejob.NextAudit(head, entry)
	_, err = x.exec(`
		INSERT INTO audit (part, owner, seq, at, actor, action, subject, detail, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		part, e.Owner, e.Seq, e.At, e.Actor, string(e.Action), e.Subject, e.Detail, notNil(e.Prev), e.Hash)
	if err != nil {
		return err
	}
	_, err = x.exec(`
		INSERT INTO audit_heads (part, owner, seq, at, hash) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (part, owner) DO UPDATE SET seq = excluded.seq, at = excluded.at, hash = excluded.hash`,
		part, e.Owner, e.Seq, e.At, e.Hash)
	return err
}

// notNil is an empty blob, and not NULL, for nil.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// AuditList reads one page of entries.
func (s *Store) AuditList(ctx context.Context, p onejob.AuditListParams) (page onejob.AuditPage, err error) {
	var w where
	if p.Owner != "" {
		w.and(`part = ?`, auditPart(p.Owner))
		w.and(`owner = ?`, p.Owner)
	}
	order := auditOrder(&p, &w)
	limit := pageOf(p.Limit)
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT owner, seq, at, actor, action, subject, detail, prev, hash FROM audit`+w.sql()+order+` LIMIT ?`, func(r *row) error {
			page.Entries = append(page.Entries, scanEntry(r))
			return nil
		}, append(w.args, limit+1)...)
	})
	if page.More = len(page.Entries) > limit; page.More {
		page.Entries = page.Entries[:limit]
	}
	return page, err
}

// auditOrder adds where the page begins, and returns its order. Of one owner both
// orders follow the key.
func auditOrder(p *onejob.AuditListParams, w *where) string {
	after := p.After
	switch {
	case p.Order == onejob.AuditByChain:
		if after != nil {
			w.and(`(part, owner, seq) > (?, ?, ?)`, auditPart(after.Owner), after.Owner, after.Seq)
		}
		return ` ORDER BY part, owner, seq`
	case p.Owner != "":
		if after != nil {
			w.and(`seq < ?`, after.Seq)
		}
		return ` ORDER BY seq DESC`
	}
	if after != nil {
		w.and(`(at, owner, seq) < (?, ?, ?)`, millis(after.At), after.Owner, after.Seq)
	}
	return ` ORDER BY at DESC, owner DESC, seq DESC`
}

func scanEntry(r *row) onejob.AuditEntry {
	return onejob.AuditEntry{
		Owner: r.String(), Seq: r.Int64(), At: r.Time(), Actor: r.String(), Action: onejob.AuditAction(r.String()),
		Subject: r.String(), Detail: r.String(), Prev: r.Bytes(), Hash: r.Bytes(),
	}
}

// AuditHeads reads the ends of chains, by owner.
func (s *Store) AuditHeads(ctx context.Context, owner string) (heads []onejob.AuditHead, err error) {
	var w where
	if owner != "" {
		w.and(`part = ?`, auditPart(owner))
		w.and(`owner = ?`, owner)
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT owner, seq, at, hash FROM audit_heads`+w.sql()+` ORDER BY owner`, func(r *row) error {
			heads = append(heads, onejob.AuditHead{Owner: r.String(), Seq: r.Int64(), At: r.Time(), Hash: r.Bytes()})
			return nil
		}, w.args...)
	})
	return heads, err
}
