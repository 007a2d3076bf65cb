package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// CertificateList returns certificates, newest first.
func (s *Store) CertificateList(ctx context.Context, p onejob.CertificateListParams) ([]onejob.Certificate, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var found []onejob.Certificate
	for _, c := range s.certificates {
		if keptBy(&p, c.ID, c.Kind, c.ContractDigest, c.TargetDigest, c.TargetName, c.Environment) && (!p.Live || c.Live(now)) {
			found = append(found, copyCertificate(c))
		}
	}
	slices.SortFunc(found, newestCertificate)
	return found[:min(onejob.AtMostCertificates(p.Limit), len(found))], nil
}

func keptBy(p *onejob.CertificateListParams, id, kind, contract, target, name, environment string) bool {
	return is(p.ID, id) && is(p.Kind, kind) && is(p.ContractDigest, contract) && is(p.TargetDigest, target) &&
		is(p.TargetName, name) && is(p.Environment, environment)
}

// is reports whether a filter keeps got. An empty one keeps everything.
func is(filter, got string) bool { return filter == "" || filter == got }

// CertificateEnd suspends or revokes certificates.
func (s *Store) CertificateEnd(ctx context.Context, p onejob.CertificateEndParams) (ended []onejob.Certificate, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, c := range s.certificates {
		named := p.ID == c.ID
		if p.ID == "" {
			named = c.ContractDigest == p.ContractDigest && c.TargetDigest == p.TargetDigest && c.Environment == onejob.EnvironmentOr(p.Environment)
		}
		if named && p.Ends(c) {
			s.endCertificate(c, p.Status, p.Reason, p.Detail)
			ended = append(ended, copyCertificate(c))
		}
	}
	slices.SortFunc(ended, newestCertificate)
	for i := range ended {
		if entry, told := p.AuditOf(&ended[i]); told {
			s.audit(entry, now)
		}
	}
	if p.ID != "" && s.certificates[p.ID] == nil {
		return nil, onejob.ErrorOfNoRecord("certificate", p.ID)
	}
	return ended, nil
}

func (s *Store) endCertificate(c *onejob.Certificate, status onejob.CertificateStatus, reason, detail string) {
	c.Status, c.Reason, c.Detail = status, reason, detail
}

// CertificateObserve counts outputs of production.
func (s *Store) CertificateObserve(ctx context.Context, params []onejob.CertificateObserveParams) (suspended []onejob.Certificate, err error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for i := range params {
		p := &params[i]
		c := s.standing(p.ContractDigest, p.TargetDigest, onejob.EnvironmentOr(p.Environment))
		if c == nil || c.Verdict != onejob.RunCertified {
			continue
		}
		watch, over := s.watches[c.ID].Observe(p)
		s.watches[c.ID] = watch
		if over {
			s.endCertificate(c, onejob.CertificateSuspended, onejob.GateSuspendedViolations, p.Detail)
			suspended = append(suspended, copyCertificate(c))
		}
	}
	return suspended, nil
}

// standing is the active certificate, of which the database's unique index lets
// there be one.
func (s *Store) standing(contract, target, environment string) *onejob.Certificate {
	for _, c := range s.certificates {
		if c.Status == onejob.CertificateActive && c.ContractDigest == contract && c.TargetDigest == target && c.Environment == environment {
			return c
		}
	}
	return nil
}

// CertificateExtend moves the end of a certificate that opens something.
func (s *Store) CertificateExtend(ctx context.Context, id string, until time.Time) (onejob.Certificate, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Certificate{}, err
	}
	defer end()
	c := s.certificates[id]
	if c == nil {
		return onejob.Certificate{}, onejob.ErrorOfNoRecord("certificate", id)
	}
	c.Extend(until.Truncate(time.Microsecond), now)
	return copyCertificate(c), nil
}

func copyCertificate(from *onejob.Certificate) onejob.Certificate {
	c := *from
	c.Counts, c.Bounds, c.Dropped = bytes.Clone(c.Counts), bytes.Clone(c.Bounds), slices.Clone(c.Dropped)
	return c
}

// PairList returns the pairs of a contract and environment.
func (s *Store) PairList(ctx context.Context, contract, environment string) (pairs []onejob.PairResult, err error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range s.pairs {
		if p.ContractDigest == contract && p.Environment == onejob.EnvironmentOr(environment) {
			pairs = append(pairs, p)
		}
	}
	slices.SortFunc(pairs, func(a, b onejob.PairResult) int {
		return cmp.Or(cmp.Compare(a.PrimaryDigest, b.PrimaryDigest), cmp.Compare(a.FallbackDigest, b.FallbackDigest))
	})
	return pairs, nil
}

// WaiverGrant records a waiver.
func (s *Store) WaiverGrant(ctx context.Context, w onejob.Waiver) (onejob.Waiver, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Waiver{}, err
	}
	defer end()
	w.ExpiresAt = w.ExpiresAt.UTC().Truncate(time.Microsecond)
	w, err = w.Grant(now)
	if err != nil {
		return onejob.Waiver{}, err
	}
	s.waivers[w.ID] = w
	s.audit(w.AuditOf(), now)
	return w, nil
}

// WaiverRevoke takes a waiver back.
func (s *Store) WaiverRevoke(ctx context.Context, id, actor string) (onejob.Waiver, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Waiver{}, err
	}
	defer end()
	w, exists := s.waivers[id]
	switch {
	case !exists:
		return onejob.Waiver{}, onejob.ErrorOfNoRecord("waiver", id)
	case w.RevokedAt.IsZero():
		w.RevokedAt = now
		s.waivers[id] = w
		s.audit(w.AuditOfRevoke(actor), now)
	}
	return w, nil
}

// WaiverList returns waivers, newest first.
func (s *Store) WaiverList(ctx context.Context, p onejob.CertificateListParams) ([]onejob.Waiver, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var found []onejob.Waiver
	for _, w := range s.waivers {
		if keptBy(&p, w.ID, w.Kind, w.ContractDigest, w.TargetDigest, w.TargetName, w.Environment) && (!p.Live || w.Live(now)) {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b onejob.Waiver) int {
		return cmp.Or(b.GrantedAt.Compare(a.GrantedAt), cmp.Compare(b.ID, a.ID))
	})
	return found[:min(onejob.AtMostCertificates(p.Limit), len(found))], nil
}
