package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// UseGate says what the gate goes by, on every handle of the store.
func (s *Store) UseGate(terms onejob.GateTerms) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms = terms
}

// verdicts are the gate's words that a decision about the job needs now.
func (s *Store) verdicts(r *row, ask onejob.Ask, now time.Time) onejob.Verdicts {
	g, needed := onejob.GateOf(&r.job, r.job.Attempts, ask)
	if !needed {
		return nil
	}
	return s.terms.Verdicts(g, s.gateRows(g.Policy.Contract.Digest), now)
}

// gateRows are the certificates of the contract's kind, newest first, with its pairs
// and waivers.
func (s *Store) gateRows(contract string) (rows onejob.GateRows) {
	environment := onejob.EnvironmentOr(s.terms.Environment)
	kind := s.contracts[contract].Kind
	for _, c := range s.certificates {
		if c.Environment == environment && (c.ContractDigest == contract || kind != "" && c.Kind == kind) {
			rows.Certificates = append(rows.Certificates, *c)
		}
	}
	slices.SortFunc(rows.Certificates, newestCertificate)
	for _, p := range s.pairs {
		if p.Environment == environment && p.ContractDigest == contract {
			rows.Pairs = append(rows.Pairs, p)
		}
	}
	for _, w := range s.waivers {
		if w.Environment == environment && w.ContractDigest == contract {
			rows.Waivers = append(rows.Waivers, w)
		}
	}
	return rows
}

func newestCertificate(a, b onejob.Certificate) int {
	return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), cmp.Compare(b.ID, a.ID))
}

// GateRead returns the verdicts of this moment.
func (s *Store) GateRead(ctx context.Context, policy onejob.Policy, primary string) (onejob.Verdicts, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	g := onejob.GateOfAll(&policy, primary)
	if policy.Contract == nil {
		return s.terms.Verdicts(g, onejob.GateRows{}, now), nil
	}
	return s.terms.Verdicts(g, s.gateRows(policy.Contract.Digest), now), nil
}

// permitted reports whether what let the attempt start still does.
func (s *Store) permitted(a *onejob.Attempt, now time.Time) bool {
	if a.CertificateID != "" {
		c := s.certificates[a.CertificateID]
		return c != nil && c.Live(now)
	}
	w := s.waivers[a.WaiverID]
	return a.WaiverID == "" || w.Live(now)
}
