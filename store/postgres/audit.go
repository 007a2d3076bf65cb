package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// auditPart is where an owner's chain lies.
func auditPart(owner string) int16 { return int16(onejob.PartOf(owner, "")) }

const (
	// A chain that begins gets its end first, so that there is a row to lock. Two
	// that begin one at once wait for each other here.
	sqlAuditBegin = `
INSERT INTO audit_heads (part, owner)
SELECT u.part, u.owner FROM unnest($1::smallint[], $2::text[]) AS u (part, owner) ORDER BY u.part, u.owner COLLATE "C"
ON CONFLICT (part, owner) DO NOTHING`

	// Until the transaction ends nobody else adds to these chains.
	sqlAuditLock = `
SELECT h.owner, h.seq, h.at, h.hash, onejob_now()
  FROM unnest($1::smallint[], $2::text[]) AS u (part, owner)
  JOIN audit_heads h ON h.part = u.part AND h.owner = u.owner
 ORDER BY h.part, h.owner
   FOR UPDATE OF h`

	sqlAuditAppend = `
INSERT INTO audit (part, owner, seq, at, actor, action, subject, detail, prev, hash)
SELECT u.part, u.owner, u.seq, u.at, u.actor, u.action, u.subject, u.detail, u.prev, u.hash
  FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[], $10::bytea[])
       WITH ORDINALITY AS u (part, owner, seq, at, actor, action, subject, detail, prev, hash, ord)
 ORDER BY u.ord`

	sqlAuditMoveOn = `
UPDATE audit_heads h SET seq = u.seq, at = u.at, hash = u.hash
  FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[]) AS u (part, owner, seq, at, hash)
 WHERE h.part = u.part AND h.owner = u.owner AND h.seq < u.seq`
)

// audit adds entries to their owners' chains, in the transaction that does what
// they tell. It is the last thing before the commit: the ends of the chains are
// locked after everything else, and in one order, so that no two wait for each
// other.
func (t *txn) audit(ctx context.Context, entries []onejob.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	heads, err := t.lockHeads(ctx, entries)
	if err != nil {
		return err
	}
	next := make([]onejob.AuditEntry, len(entries))
	for i, entry := range entries {
		head := heads[entry.Owner]
		entry.At = head.now
		next[i] = onejob.NextAudit(head.AuditHead, entry)
		heads[entry.Owner] = &auditEnd{AuditHead: next[i].Head(), now: head.now}
	}
	b := t.batch()
	b.Queue(sqlAuditAppend, auditColumns(next)...)
	ends := make([]onejob.AuditHead, 0, len(heads))
	for _, head := range heads {
		ends = append(ends, head.AuditHead)
	}
	var moved int64
	b.Queue(sqlAuditMoveOn,
		column(ends, func(h onejob.AuditHead) int16 { return auditPart(h.Owner) }),
		column(ends, func(h onejob.AuditHead) string { return h.Owner }),
		column(ends, func(h onejob.AuditHead) int64 { return h.Seq }),
		column(ends, func(h onejob.AuditHead) pgtype.Timestamptz { return stamp(h.At) }),
		column(ends, func(h onejob.AuditHead) []byte { return h.Hash }),
	).Exec(affected(&moved))
	if err := t.send(ctx, b); err != nil {
		return err
	}
	if moved != int64(len(ends)) {
		return spoiled{&onejob.Error{Code: onejob.CodeInternal, Message: "the audit could not be written; nothing was changed"}}
	}
	return nil
}

func auditColumns(entries []onejob.AuditEntry) []any {
	text := func(field func(e onejob.AuditEntry) string) []string { return column(entries, field) }
	return []any{
		column(entries, func(e onejob.AuditEntry) int16 { return auditPart(e.Owner) }),
		text(func(e onejob.AuditEntry) string { return e.Owner }),
		column(entries, func(e onejob.AuditEntry) int64 { return e.Seq }),
		column(entries, func(e onejob.AuditEntry) pgtype.Timestamptz { return stamp(e.At) }),
		text(func(e onejob.AuditEntry) string { return e.Actor }),
		text(func(e onejob.AuditEntry) string { return string(e.Action) }),
		text(func(e onejob.AuditEntry) string { return e.Subject }),
		text(func(e onejob.AuditEntry) string { return e.Detail }),
		column(entries, func(e onejob.AuditEntry) []byte { return notNil(e.Prev) }),
		column(entries, func(e onejob.AuditEntry) []byte { return e.Hash }),
	}
}

// auditEnd is the locked end of a chain, and the time of what follows on it.
type auditEnd struct {
	onejob.AuditHead
	now time.Time
}

// lockHeads locks the ends of the chains that entries belong to.
func (t *txn) lockHeads(ctx context.Context, entries []onejob.AuditEntry) (map[string]*auditEnd, error) {
	owners := column(entries, func(e onejob.AuditEntry) string { return e.Owner })
	slices.SortFunc(owners, func(a, b string) int { return cmp.Or(cmp.Compare(auditPart(a), auditPart(b)), cmp.Compare(a, b)) })
	owners = slices.Compact(owners)
	parts := column(owners, auditPart)
	heads := map[string]*auditEnd{}
	b := t.batch()
	b.Queue(sqlAuditBegin, parts, owners)
	b.Queue(sqlAuditLock, parts, owners).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			end := &auditEnd{}
			var at pgtype.Timestamptz
			err := row.Scan(&end.Owner, &end.Seq, &at, &end.Hash, &end.now)
			end.At = timeOf(at)
			heads[end.Owner] = end
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	if len(heads) != len(owners) {
		return nil, fmt.Errorf("%d audit chains of %d owners", len(heads), len(owners))
	}
	return heads, nil
}

// audited does one thing in a transaction with the entries that tell of it, and
// waits for whoever is in its way.
func (s *Store) audited(ctx context.Context, act func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error)) error {
	var answer error
	alone := func(ctx context.Context, t *txn, _ []int) error {
		entries, err := act(ctx, t)
		if err != nil {
			return err
		}
		if err := t.audit(ctx, entries); err != nil {
			return err
		}
		return t.commit(ctx, t.batch())
	}
	if err := s.each(ctx, []int{0}, alone, func(_ int, err error) { answer = err }); err != nil {
		return err
	}
	return answer
}

const sqlAuditList = `SELECT owner, seq, at, actor, action, subject, detail, prev, hash FROM audit`

// AuditList implements [onejob.AuditStore].
func (s *Store) AuditList(ctx context.Context, p onejob.AuditListParams) (page onejob.AuditPage, err error) {
	if !storable(p.Owner) {
		return page, nil
	}
	f, limit := &filter{}, pageOf(p.Limit)
	if p.Owner != "" {
		f.where("part = $%d AND owner = $%d", auditPart(p.Owner), p.Owner)
	}
	order := auditOrder(p, f)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s%s LIMIT %d", sqlAuditList, f.sql(), order, limit+1), f.args...)
	if err != nil {
		return page, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		var e onejob.AuditEntry
		err := row.Scan(&e.Owner, &e.Seq, &e.At, &e.Actor, &e.Action, &e.Subject, &e.Detail, &e.Prev, &e.Hash)
		e.At = e.At.UTC()
		page.Entries = append(page.Entries, e)
		return err
	})
	if page.More = len(page.Entries) > limit; page.More {
		page.Entries = page.Entries[:limit]
	}
	return page, onejob.Unavailable(err)
}

// auditOrder adds where the page begins, and returns its order. Of one owner both
// orders follow the key.
func auditOrder(p onejob.AuditListParams, f *filter) string {
	after := p.After
	switch {
	case p.Order == onejob.AuditByChain:
		if after != nil {
			f.where("(part, owner, seq) > ($%d, $%d, $%d)", auditPart(after.Owner), after.Owner, after.Seq)
		}
		return " ORDER BY part, owner, seq"
	case p.Owner != "":
		if after != nil {
			f.where("seq < $%d", after.Seq)
		}
		return " ORDER BY seq DESC"
	}
	if after != nil {
		f.where("(at, owner, seq) < ($%d, $%d, $%d)", stamp(after.At), after.Owner, after.Seq)
	}
	return " ORDER BY at DESC, owner DESC, seq DESC"
}

// AuditHeads implements [onejob.AuditStore].
func (s *Store) AuditHeads(ctx context.Context, owner string) (heads []onejob.AuditHead, err error) {
	if !storable(owner) {
		return nil, nil
	}
	f := &filter{}
	if owner != "" {
		f.where("part = $%d AND owner = $%d", auditPart(owner), owner)
	}
	rows, err := s.pool.Query(ctx, "SELECT owner, seq, at, hash FROM audit_heads"+f.sql()+" ORDER BY owner", f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		var h onejob.AuditHead
		var at pgtype.Timestamptz
		err := row.Scan(&h.Owner, &h.Seq, &at, &h.Hash)
		h.At = timeOf(at)
		heads = append(heads, h)
		return err
	})
	return heads, onejob.Unavailable(err)
}
