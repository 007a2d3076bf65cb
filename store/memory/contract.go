package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// ContractPut keeps a version of a contract.
func (s *Store) ContractPut(ctx context.Context, v onejob.ContractVersion) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := onejob.CheckVersion(v.Digest, v.Kind, v.Body); err != nil {
		return err
	}
	if _, exists := s.contracts[v.Digest]; !exists {
		v.Body, v.CreatedAt = bytes.Clone(v.Body), now
		s.contracts[v.Digest] = v
		s.versions = append(s.versions, v.Digest)
	}
	return nil
}

// TargetPut keeps a version of a target.
func (s *Store) TargetPut(ctx context.Context, v onejob.TargetVersion) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := onejob.CheckVersion(v.Digest, v.Name, v.Body); err != nil {
		return err
	}
	if _, exists := s.targets[v.Digest]; !exists {
		v.Body, v.CreatedAt = bytes.Clone(v.Body), now
		s.targets[v.Digest] = v
	}
	return nil
}

// ContractGet returns one version.
func (s *Store) ContractGet(ctx context.Context, p onejob.ContractGetParams) (onejob.ContractVersion, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.ContractVersion{}, err
	}
	defer end()
	if p.Digest != "" {
		if v, exists := s.contracts[p.Digest]; exists {
			return copyVersion(v), nil
		}
		return onejob.ContractVersion{}, onejob.ErrorOfNoRecord("contract", p.Digest)
	}
	if found := s.contractsOf(p.Kind, 1); p.Kind != "" && len(found) > 0 {
		return found[0], nil
	}
	return onejob.ContractVersion{}, onejob.ErrorOfNoRecord("contract of kind", p.Kind)
}

// ContractList returns versions, newest first.
func (s *Store) ContractList(ctx context.Context, kind string, limit int) ([]onejob.ContractVersion, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.contractsOf(kind, onejob.AtMostCertificates(limit)), nil
}

// contractsOf lists versions, newest first; of the same moment, put last first.
func (s *Store) contractsOf(kind string, limit int) (found []onejob.ContractVersion) {
	for _, digest := range slices.Backward(s.versions) {
		if v := s.contracts[digest]; is(kind, v.Kind) && len(found) < limit {
			found = append(found, copyVersion(v))
		}
	}
	return found
}

func copyVersion(v onejob.ContractVersion) onejob.ContractVersion {
	v.Body = bytes.Clone(v.Body)
	return v
}

// TargetGet returns one version.
func (s *Store) TargetGet(ctx context.Context, digest string) (onejob.TargetVersion, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.TargetVersion{}, err
	}
	defer end()
	v, exists := s.targets[digest]
	if !exists {
		return v, onejob.ErrorOfNoRecord("target version", digest)
	}
	v.Body = bytes.Clone(v.Body)
	return v, nil
}

// RunStart records that a verification begins.
func (s *Store) RunStart(ctx context.Context, r onejob.VerificationRun) (onejob.VerificationRun, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	if r, err = r.Begin(now); err != nil {
		return r, err
	}
	s.runs[r.ID] = &r
	return r, nil
}

// SampleAdd records calls of a run.
func (s *Store) SampleAdd(ctx context.Context, samples []onejob.VerificationSample) ([]error, error) {
	return each(ctx, s, samples, s.addSample)
}

func (s *Store) addSample(sample *onejob.VerificationSample, now time.Time) error {
	run := s.runs[sample.RunID]
	if run == nil {
		run = &onejob.VerificationRun{}
	}
	if err := onejob.CheckSample(run, sample); err != nil {
		return err
	}
	for i := range s.samples {
		old := &s.samples[i]
		if sample.ResponseID != "" && old.ResponseID == sample.ResponseID {
			return onejob.ErrSampleSeen
		}
		if old.RunID == sample.RunID && old.Stage == sample.Stage && old.CaseID == sample.CaseID && old.Repeat == sample.Repeat {
			return onejob.ErrorOfSampleTwice(sample)
		}
	}
	kept := copySample(sample, true)
	kept.At = now
	s.samples = append(s.samples, kept)
	return nil
}

func copySample(from *onejob.VerificationSample, withOutput bool) onejob.VerificationSample {
	v := *from
	v.Observed = bytes.Clone(v.Observed)
	if v.Output = nil; withOutput {
		v.Output = bytes.Clone(from.Output)
	}
	return v
}

// RunFinish ends a run and issues its certificate.
func (s *Store) RunFinish(ctx context.Context, p onejob.RunFinishParams) (onejob.Certificate, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return onejob.Certificate{}, err
	}
	defer end()
	run := s.runs[p.Run.ID]
	if run == nil {
		run = &onejob.VerificationRun{}
	}
	old := s.superseded(run)
	stands := slices.ContainsFunc(old, (*onejob.Certificate).Stands)
	ended, c, pair, err := p.Issue(*run, stands, now)
	if err != nil {
		return onejob.Certificate{}, err
	}
	ended.Report = bytes.Clone(ended.Report)
	s.runs[ended.ID] = &ended
	for _, o := range old {
		if c.Status == onejob.CertificateActive {
			o.Status = onejob.CertificateSuperseded
		}
	}
	kept := copyCertificate(&c)
	s.certificates[c.ID] = &kept
	if pair != nil {
		s.pairs[pairOf{pair.ContractDigest, pair.PrimaryDigest, pair.FallbackDigest, pair.Environment}] = *pair
	}
	return c, nil
}

// superseded are the certificates whose place a verdict of the run takes.
func (s *Store) superseded(run *onejob.VerificationRun) (old []*onejob.Certificate) {
	for _, c := range s.certificates {
		same := c.ContractDigest == run.ContractDigest && c.TargetDigest == run.TargetDigest && c.Environment == run.Environment
		if same && (c.Status == onejob.CertificateActive || c.Status == onejob.CertificateSuspended) {
			old = append(old, c)
		}
	}
	return old
}

// RunList returns verifications, newest first.
func (s *Store) RunList(ctx context.Context, p onejob.RunListParams) ([]onejob.VerificationRun, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var found []onejob.VerificationRun
	for _, r := range s.runs {
		if !is(p.ID, r.ID) || !is(p.ContractDigest, r.ContractDigest) || !is(p.TargetDigest, r.TargetDigest) || !is(p.Environment, r.Environment) {
			continue
		}
		run := *r
		if run.Report = nil; p.ID != "" {
			run.Report = bytes.Clone(r.Report)
		}
		found = append(found, run)
	}
	slices.SortFunc(found, func(a, b onejob.VerificationRun) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
	})
	return found[:min(onejob.AtMostCertificates(p.Limit), len(found))], nil
}

// SampleList returns samples, oldest first.
func (s *Store) SampleList(ctx context.Context, p onejob.SampleListParams) (found []onejob.VerificationSample, err error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for i := range s.samples {
		r := s.runs[s.samples[i].RunID]
		if is(p.RunID, r.ID) && is(p.ContractDigest, r.ContractDigest) && is(p.TargetDigest, r.TargetDigest) && is(p.Environment, r.Environment) {
			found = append(found, copySample(&s.samples[i], p.WithOutput))
		}
	}
	return found, nil
}
