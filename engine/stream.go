package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// chunkPause is how long pieces that come one after the other are gathered: what has
// been kept is shown at once, and a commit for each word would cost more than it shows.
const chunkPause = 20 * time.Millisecond

// feed keeps what comes of one attempt's answer, and has it shown once it is kept: a
// piece that a caller has seen is there after a crash. The pieces of a job are those of
// the first attempt that has any, which the store decides.
type feed struct {
	engine *Engine
	trial  *trial
	hangUp func()
	vigil  *vigil
	untold func() // ends the telling of what was dropped; nil: nothing was

	number int // of the next piece; of who keeps

	mu      sync.Mutex
	pending []byte
	working chan struct{} // closed when nobody keeps any more; nil: nobody does
	over    chan struct{} // closed when the call has returned
	until   time.Time     // with over: how long what is left may still be kept
	kept    bool          // something may have been shown
	left    bool          // another attempt's answer is shown: this one is not wanted
	unshown bool          // it is wanted, and not shown
}

// feedOf returns what takes the pieces of an attempt's answer. Nil: the store keeps none.
func (e *Engine) feedOf(t *trial, hangUp func()) *feed {
	if e.streams == nil {
		return nil
	}
	return &feed{engine: e, trial: t, hangUp: hangUp, over: make(chan struct{})}
}

// take is the [onejob.Request.Chunk] of the attempt. It is called by the goroutine of
// the call.
func (f *feed) take(piece []byte) error {
	f.vigil.heard()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.left:
		return onejob.ErrStreamTaken
	case f.unshown:
		return nil
	}
	f.pending = append(f.pending, piece...)
	if f.working == nil {
		f.working = make(chan struct{})
		go f.keep(f.working)
	}
	return nil
}

// dropped has those who are shown the answer told what it was made without. It is
// called by the goroutine of the call.
func (f *feed) dropped(names string) {
	if f.untold == nil { // what rendering left out is what is recorded
		f.untold = f.engine.opts.Signals.StreamDropped(f.trial.ref.JobID, f.trial.Attempt.Number, names)
	}
}

// settled is called once the attempt is recorded, which says the same, or never is from here.
func (f *feed) settled() {
	if f != nil && f.untold != nil {
		f.untold()
	}
}

// keep keeps what is pending, until nothing is.
func (f *feed) keep(done chan struct{}) {
	defer close(done)
	for {
		piece := f.next()
		if piece == nil {
			return
		}
		if f.keepPiece(piece) {
			f.tell()
		}
		select {
		case <-time.After(chunkPause):
		case <-f.over:
		}
	}
}

// next returns the piece to be kept next. Nil: there is none, and nobody keeps any more.
func (f *feed) next() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(f.pending), onejob.MaxChunkBytes)
	if n == 0 || f.left || f.unshown {
		f.working, f.pending = nil, nil
		return nil
	}
	piece := f.pending[:n:n]
	f.pending = f.pending[n:]
	return piece
}

// keepPiece tries until the store says what became of a piece: what it did not confirm
// may be there, and is the same piece again. Once the call has returned it gives up soon.
func (f *feed) keepPiece(piece []byte) bool {
	e, t := f.engine, f.trial
	p := onejob.ChunkAppendParams{Ref: t.ref, ClaimToken: t.token, Number: f.number, Body: piece}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		results, err := e.streams.ChunkAppend(ctx, []onejob.ChunkAppendParams{p})
		cancel()
		if err == nil {
			err = retryable(results[0].Err)
		}
		if err == nil {
			return f.judge(&results[0])
		}
		f.mayShow() // it may be there all the same
		e.complain("piece of an answer not kept yet", err, "job_id", t.Job.ID, "attempt_id", t.ref.ID)
		select {
		case <-time.After(pause):
		case <-f.over:
			if time.Now().After(f.until) {
				f.stop(false)
				return false
			}
			time.Sleep(pause)
		}
	}
}

func (f *feed) mayShow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = true
}

func (f *feed) judge(r *onejob.ChunkAppendResult) (kept bool) {
	if r.Err == nil {
		f.mayShow()
		if f.number++; f.number == 1 && f.trial.Job.Policy.Lanes > 1 {
			f.win()
		}
		return true
	}
	// Beside a lane whose answer is shown this one only costs. Where that one is in
	// doubt, or was ruled away, it may be the answer yet.
	lost := errors.Is(r.Err, onejob.ErrStreamTaken) && (r.Leader == onejob.AttemptRunning || r.Leader == onejob.AttemptSucceeded)
	f.stop(lost && f.trial.Job.Policy.Lanes > 1)
	return false
}

// win ends the calls of the job's other lanes, which are all in this process: the first
// piece has decided the race.
func (f *feed) win() {
	for _, t := range f.engine.held.of(f.trial.ref.JobID) {
		if other := t.feed.Load(); other != nil && other != f {
			other.stop(true)
		}
	}
}

// stop ends the keeping, and the call too if nobody wants its answer.
func (f *feed) stop(left bool) {
	f.mu.Lock()
	f.left, f.unshown = left, !left
	f.mu.Unlock()
	if left {
		f.hangUp()
	}
}

// tell has the piece shown. The first is told to other processes, too, where those who
// follow look by themselves from then on.
func (f *feed) tell() {
	if f.number == 1 {
		f.engine.opts.Signals.JobChanged(f.trial.Job.ID)
	}
	f.engine.opts.Signals.JobStreamed(f.trial.Job.ID)
}

// shows reports whether anything may have been shown.
func (f *feed) shows() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept
}

// shows reports whether an attempt of the job that is under way here may have been shown.
func (e *Engine) shows(jobID string) bool {
	return slices.ContainsFunc(e.held.of(jobID), func(t *trial) bool { return t.feed.Load().shows() })
}

// end is called once the provider's call has returned. What is left of a whole answer
// is shown with its end, though in a race its first piece is kept before, which may be
// another lane's to show; what is left of another is kept, so that nobody is shown less
// than came.
func (f *feed) end(whole bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.until = time.Now().Add(settleTime)
	switch {
	case whole && f.trial.Job.Policy.Lanes > 1 && !f.kept:
		f.pending = f.pending[:min(len(f.pending), onejob.MaxChunkBytes)]
	case whole:
		f.pending = nil
	}
	working := f.working
	f.mu.Unlock()
	close(f.over)
	if working != nil {
		<-working
	}
}

// amend says what having been shown, or left, means for an attempt's outcome.
func (f *feed) amend(p *onejob.AttemptFinishParams) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch p.Outcome {
	case onejob.OutcomeExecutedFailed, onejob.OutcomeContractViolation, onejob.OutcomeRefused, onejob.OutcomeNotExecuted:
		if f.kept { // another target's answer after a part of this one's is nobody's
			p.Next = onejob.NextNowhere
			if p.Outcome.Proven() { // what was shown says otherwise
				p.Outcome = onejob.OutcomeExecutedFailed
			}
		}
	case onejob.OutcomeUnknown, onejob.OutcomeResultLost, onejob.OutcomeSucceeded:
		if f.left {
			p.Outcome, p.Next, p.Result = onejob.OutcomeCancelled, onejob.NextNowhere, nil
			p.Failure = &onejob.Failure{Code: "race_lost", Message: "another attempt's answer came first, so this one was given up"}
			p.Evidence.Error = p.Failure.Message
		}
	case onejob.OutcomeAccepted, onejob.OutcomeCancelled: // the provider works on; it is over already
	}
}

// forget has the store forget the pieces of an answer that is recorded whole. What is
// left of them goes with the payload.
func (f *feed) forget() {
	if !f.shows() {
		return
	}
	e, ref := f.engine, onejob.JobRef{Part: f.trial.ref.Part, ID: f.trial.ref.JobID}
	e.working.add()
	go func() {
		defer e.working.done()
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		defer cancel()
		e.complainUnless(ctx, "pieces of an answer not forgotten", e.streams.ChunkDrop(ctx, []onejob.JobRef{ref}))
	}()
}
