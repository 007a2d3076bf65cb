package generation

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// What was taken back stands in every copy that was made before, and would open what
// it no longer may: such a copy has to be told from what follows it.

// CertificateEnd implements [onejob.CertificateStore].
func (s *Store) CertificateEnd(ctx context.Context, p onejob.CertificateEndParams) ([]onejob.Certificate, error) {
	ended, err := s.CertificateStore.CertificateEnd(ctx, p)
	return ended, s.begun(err != nil || len(ended) > 0, err)
}

// CertificateObserve implements [onejob.CertificateStore].
func (s *Store) CertificateObserve(ctx context.Context, params []onejob.CertificateObserveParams) ([]onejob.Certificate, error) {
	suspended, err := s.CertificateStore.CertificateObserve(ctx, params)
	return suspended, s.begun(err != nil || len(suspended) > 0, err)
}

// WaiverRevoke implements [onejob.CertificateStore].
func (s *Store) WaiverRevoke(ctx context.Context, id, actor string) (onejob.Waiver, error) {
	w, err := s.CertificateStore.WaiverRevoke(ctx, id, actor)
	return w, s.begun(true, err)
}
