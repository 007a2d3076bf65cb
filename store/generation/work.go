package generation

import (
	"context"
	"slices"

	"github.com/onejob-dev/onejob"
)

// What may begin work, or send. The store itself refuses it while a restore is
// unconfirmed; who knows that does not try.

// JobCreate implements [onejob.Store]. Known keys are answered whatever happened.
func (s *Store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	if s.unconfirmed.Load() {
		params = refused(params)
	}
	results, err := s.Store.JobCreate(ctx, params)
	began := err != nil // it may have been recorded
	for i := range results {
		began = began || (results[i].Err == nil && !results[i].Existed)
		s.heed(results[i].Err)
	}
	return results, s.begun(began, err)
}

// refused asks for the jobs that exist, and for nothing new.
func refused(params []onejob.JobCreateParams) []onejob.JobCreateParams {
	params = slices.Clone(params)
	for i := range params {
		params[i].Start = nil
		if params[i].Refuse == nil {
			params[i].Refuse = onejob.ErrorOfRestore()
		}
	}
	return params
}

// AttemptClaim implements [onejob.Store].
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	if s.unconfirmed.Load() {
		return onejob.AttemptClaimResult{}, onejob.ErrorOfRestore()
	}
	result, err := s.Store.AttemptClaim(ctx, p)
	return result, s.begun(err != nil || len(result.Claimed) > 0, err)
}

// AttemptStart implements [onejob.Store].
func (s *Store) AttemptStart(ctx context.Context, params []onejob.AttemptStartParams) ([]onejob.AttemptStartResult, error) {
	results, err := s.Store.AttemptStart(ctx, params)
	began := err != nil
	for i := range results {
		began = began || (results[i].Err == nil && !results[i].Existed)
		s.heed(results[i].Err)
	}
	return results, s.begun(began, err)
}

// JobCancel implements [onejob.Store]. What was given up is open in every copy that
// was made before, and would be done.
func (s *Store) JobCancel(ctx context.Context, params []onejob.JobCancelParams) ([]onejob.JobResult, error) {
	results, err := s.Store.JobCancel(ctx, params)
	acted := err != nil
	for i := range results {
		acted = acted || results[i].Err == nil
	}
	return results, s.begun(acted, err)
}

// AttemptMark implements [onejob.Store].
func (s *Store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	if s.unconfirmed.Load() {
		return slices.Repeat([]onejob.AttemptMarkResult{{Err: onejob.ErrorOfRestore()}}, len(params)), nil
	}
	results, err := s.Store.AttemptMark(ctx, params)
	began := err != nil
	for i := range results {
		began = began || results[i].Err == nil
		s.heed(results[i].Err)
	}
	return results, s.begun(began, err)
}

// DeliveryClaim implements [onejob.DeliveryStore]. What a restored store has not told
// yet may have been told before: it waits for a person too.
func (s *Store) DeliveryClaim(ctx context.Context, p onejob.DeliveryClaimParams) ([]onejob.Delivery, error) {
	if s.unconfirmed.Load() {
		return nil, nil
	}
	return s.DeliveryStore.DeliveryClaim(ctx, p)
}

// ProbeRecord implements [onejob.ProbeStore].
func (s *Store) ProbeRecord(ctx context.Context, params []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	results, err := s.ProbeStore.ProbeRecord(ctx, params)
	for i := range results {
		s.heed(results[i].Err)
	}
	return results, s.begun(slices.ContainsFunc(params, announces), err)
}

func announces(p onejob.ProbeRecordParams) bool { return p.AnnouncesReplay() }

// begun notes that work may have begun, or was given up.
func (s *Store) begun(began bool, err error) error {
	s.heed(err)
	if began {
		s.wrote()
	}
	return err
}

// heed looks at a store that refuses work because it was restored, which another
// connection or another node has found.
func (s *Store) heed(err error) {
	if err != nil && onejob.CodeOf(err) == onejob.CodeRestoreUnconfirmed && !s.unconfirmed.Load() {
		s.suspect()
	}
}

// Check implements [onejob.Store]. A store that waits for its restore to be confirmed
// is not ready.
func (s *Store) Check(ctx context.Context) error {
	if err := s.Store.Check(ctx); err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	if s.unconfirmed.Load() {
		return onejob.ErrorOfRestore()
	}
	return nil
}
