package main

import (
	"context"
	"sync/atomic"

	"github.com/onejob-dev/onejob"
)

// store is a store with points around its calls.
type store struct {
	onejob.Store
	onejob.ProbeStore
	*point
	starts   bool        // new jobs are started in the commit that creates them
	answered atomic.Bool // a caller has the answer to a creation
}

// idle reports whether nothing is to be claimed: the point comes before any claim,
// or the caller has no answer yet, which a node that dies would keep from it.
func (s *store) idle() bool {
	switch s.call {
	case "request", "respond", "create", "start":
		return s.deed != doubt // which the process survives
	}
	return !s.answered.Load()
}

func some[R any](r []R) bool { return len(r) > 0 }

func (s *store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	call := "create"
	if s.starts {
		call = "start"
	}
	return around(s.point, call, func() ([]onejob.JobCreateResult, error) { return s.Store.JobCreate(ctx, params) }, some)
}

func (s *store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	if s.idle() {
		return onejob.AttemptClaimResult{}, nil
	}
	return around(s.point, "claim", func() (onejob.AttemptClaimResult, error) { return s.Store.AttemptClaim(ctx, p) },
		func(r onejob.AttemptClaimResult) bool { return len(r.Claimed) > 0 })
}

func (s *store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	return around(s.point, "mark", func() ([]onejob.AttemptMarkResult, error) { return s.Store.AttemptMark(ctx, params) }, some)
}

func (s *store) AttemptFinish(ctx context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	return around(s.point, "finish", func() ([]onejob.AttemptFinishResult, error) { return s.Store.AttemptFinish(ctx, params) }, some)
}

func (s *store) AttemptExpire(ctx context.Context, refs []onejob.AttemptRef) ([]onejob.AttemptRef, error) {
	return around(s.point, "sweep", func() ([]onejob.AttemptRef, error) { return s.Store.AttemptExpire(ctx, refs) }, some)
}

func (s *store) ProbeRecord(ctx context.Context, params []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	return around(s.point, "probe", func() ([]onejob.AttemptFinishResult, error) { return s.ProbeStore.ProbeRecord(ctx, params) }, some)
}

func (s *store) JobPurge(ctx context.Context, p onejob.JobPurgeParams) (int, error) {
	return around(s.point, "purge", func() (int, error) { return s.Store.JobPurge(ctx, p) }, func(n int) bool { return n > 0 })
}
