package grouped

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// certificatesOf returns a store's own certificates, which are written too seldom to
// be gathered.
func certificatesOf(store onejob.Store) onejob.CertificateStore {
	if c, ok := store.(onejob.CertificateStore); ok {
		return c
	}
	return noCertificates{}
}

// noCertificates stands in for a store that keeps none. Nothing is certified there.
type noCertificates struct{}

func (noCertificates) refuse() error {
	return &onejob.Error{Code: onejob.CodeInternal, Message: "the store keeps no certificates"}
}

func (noCertificates) UseGate(onejob.GateTerms) {}

func (n noCertificates) ContractPut(context.Context, onejob.ContractVersion) error { return n.refuse() }

func (n noCertificates) TargetPut(context.Context, onejob.TargetVersion) error { return n.refuse() }

func (n noCertificates) ContractGet(context.Context, onejob.ContractGetParams) (onejob.ContractVersion, error) {
	return onejob.ContractVersion{}, n.refuse()
}

func (n noCertificates) ContractList(context.Context, string, int) ([]onejob.ContractVersion, error) {
	return nil, n.refuse()
}

func (n noCertificates) TargetGet(context.Context, string) (onejob.TargetVersion, error) {
	return onejob.TargetVersion{}, n.refuse()
}

func (n noCertificates) RunStart(context.Context, onejob.VerificationRun) (onejob.VerificationRun, error) {
	return onejob.VerificationRun{}, n.refuse()
}

func (n noCertificates) SampleAdd(context.Context, []onejob.VerificationSample) ([]error, error) {
	return nil, n.refuse()
}

func (n noCertificates) RunFinish(context.Context, onejob.RunFinishParams) (onejob.Certificate, error) {
	return onejob.Certificate{}, n.refuse()
}

func (n noCertificates) RunList(context.Context, onejob.RunListParams) ([]onejob.VerificationRun, error) {
	return nil, n.refuse()
}

func (n noCertificates) SampleList(context.Context, onejob.SampleListParams) ([]onejob.VerificationSample, error) {
	return nil, n.refuse()
}

func (n noCertificates) CertificateList(context.Context, onejob.CertificateListParams) ([]onejob.Certificate, error) {
	return nil, n.refuse()
}

func (n noCertificates) CertificateEnd(context.Context, onejob.CertificateEndParams) ([]onejob.Certificate, error) {
	return nil, n.refuse()
}

func (n noCertificates) CertificateObserve(context.Context, []onejob.CertificateObserveParams) ([]onejob.Certificate, error) {
	return nil, n.refuse()
}

func (n noCertificates) CertificateExtend(context.Context, string, time.Time) (onejob.Certificate, error) {
	return onejob.Certificate{}, n.refuse()
}

func (n noCertificates) PairList(context.Context, string, string) ([]onejob.PairResult, error) {
	return nil, n.refuse()
}

func (n noCertificates) WaiverGrant(context.Context, onejob.Waiver) (onejob.Waiver, error) {
	return onejob.Waiver{}, n.refuse()
}

func (n noCertificates) WaiverRevoke(context.Context, string, string) (onejob.Waiver, error) {
	return onejob.Waiver{}, n.refuse()
}

func (n noCertificates) WaiverList(context.Context, onejob.CertificateListParams) ([]onejob.Waiver, error) {
	return nil, n.refuse()
}

func (n noCertificates) GateRead(context.Context, onejob.Policy, string) (onejob.Verdicts, error) {
	return nil, n.refuse()
}
