package onejob

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"
)

// JobStreamed wakes whoever follows the job's answer in this process: a piece of it was
// kept.
func (s *Signals) JobStreamed(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown := s.streaming[id]; shown != nil {
		for ch := range shown.following {
			ring(ch)
		}
	}
}

// showing is what is known in this process of an answer that is made or followed here.
type showing struct {
	following map[chan struct{}]struct{}
	dropped   map[int]string // the parameters that an attempt was not sent, by its number
	telling   int            // how many attempts say so
}

// shown returns what is known of a job's answer, from the first who needs it on.
func (s *Signals) shown(id string) *showing {
	if s.streaming == nil {
		s.streaming = map[string]*showing{}
	}
	if s.streaming[id] == nil {
		s.streaming[id] = &showing{following: map[chan struct{}]struct{}{}, dropped: map[int]string{}}
	}
	return s.streaming[id]
}

// hide forgets an answer that nobody makes or follows here any more.
func (s *Signals) hide(id string) {
	if shown := s.streaming[id]; shown != nil && shown.telling == 0 && len(shown.following) == 0 {
		delete(s.streaming, id)
	}
}

// StreamDropped has those who follow the job's answer in this process know which
// parameters an attempt is not sent, before its first piece. told is to be called once
// the attempt's evidence says so.
func (s *Signals) StreamDropped(id string, attempt int, names string) (told func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown(id)
	shown.dropped[attempt] = names
	shown.telling++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		shown.telling--
		s.hide(id)
	}
}

// droppedOf returns what is known here of the parameters that an attempt was not sent.
func (s *Signals) droppedOf(id string, attempt int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown := s.streaming[id]; shown != nil {
		return shown.dropped[attempt]
	}
	return ""
}

// watchStream returns a channel that receives after each [Signals.JobStreamed] of the
// job, those in quick succession merged into one. stop must be called once.
func (s *Signals) watchStream(id string) (streamed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown(id)
	shown.following[ch] = struct{}{}
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(shown.following, ch)
		s.hide(id)
	}
}

// ErrAnotherAnswer : the job has another answer than the one that was begun to be shown:
// another attempt's, or one that was found out about the same.
var ErrAnotherAnswer = errors.New("another attempt has answered the job")

// Follower shows the answer of one job as it comes, from its first byte on. All that it
// shows is one attempt's. It is for one goroutine, and to be stopped.
type Follower struct {
	client  *Client
	streams StreamStore // nil: nothing is shown before the end
	owner   string
	job     *Job

	changed  *watcher
	streamed <-chan struct{}
	stop     func()

	attempt int          // whose pieces were shown: its number; zero: none were
	number  int          // of the next piece
	sent    int          // bytes shown
	digest  maphash.Hash // of those
	woken   bool         // by a piece: the answer is made in this process
}

// Follow begins to follow the answer of a job of the owner that was just read. An empty
// owner sees everybody's.
func (c *Client) Follow(owner string, job *Job) *Follower {
	f := &Follower{client: c, owner: owner, job: job, changed: c.opts.Signals.watch(job.ID)}
	f.streams, _ = c.store.(StreamStore)
	f.streamed, f.stop = c.opts.Signals.watchStream(job.ID)
	return f
}

// Stop ends the following. It is called once.
func (f *Follower) Stop() {
	f.client.opts.Signals.forget(f.job.ID, f.changed)
	f.stop()
}

// Job is the job as it was last seen.
func (f *Follower) Job() *Job { return f.job }

// Attempt is the attempt whose answer is shown; nil: none is yet, or it is not known here.
func (f *Follower) Attempt() *Attempt {
	i := slices.IndexFunc(f.job.Attempts, func(a Attempt) bool { return a.Number == f.attempt })
	if i < 0 {
		return nil
	}
	return &f.job.Attempts[i]
}

// DroppedParams are the parameters that the attempt whose answer is shown was not sent,
// as [Evidence.DroppedParams]. Until it is recorded only the process that makes it knows.
func (f *Follower) DroppedParams() string {
	if a := f.Attempt(); a != nil && a.Evidence.DroppedParams != "" {
		return a.Evidence.DroppedParams
	}
	return f.client.opts.Signals.droppedOf(f.job.ID, f.attempt)
}

// Next returns what came of the answer since, and waits for it. Nothing: enough says so
// of the job, or ctx has ended. enough must not change the job. What is not kept by the
// store any more because the job has succeeded is said by [Follower.Rest].
func (f *Follower) Next(ctx context.Context, enough func(*Job) bool) ([]byte, error) {
	for quiet := 0; ; quiet++ {
		over := enough(f.job) // looked at first: what came before it is kept by then
		piece, err := f.read(ctx)
		if err != nil || len(piece) > 0 || over || ctx.Err() != nil {
			return piece, err
		}
		if err := f.wait(ctx, &quiet); err != nil {
			return nil, err
		}
	}
}

// read returns what the store has that was not shown.
func (f *Follower) read(ctx context.Context) (piece []byte, err error) {
	if f.streams == nil || f.job.State == JobSucceeded && f.attempt == 0 {
		return nil, nil // a whole answer is shown from its own bytes
	}
	for {
		list, err := f.streams.ChunkList(ctx, ChunkListParams{Job: JobRef{Part: f.job.Part, ID: f.job.ID}, From: f.number})
		switch {
		case err == nil:
		case len(piece) == 0 && ctx.Err() == nil:
			return nil, Unavailable(err)
		default: // what could not be read is read the next time
			return piece, nil
		}
		if len(list.Bodies) > 0 && f.attempt == 0 {
			f.attempt = list.Attempt
			f.refresh(ctx)
		}
		for _, body := range list.Bodies {
			piece = append(piece, body...)
			f.sent += len(body)
			_, _ = f.digest.Write(body) // it never fails
		}
		f.number += len(list.Bodies)
		if len(list.Bodies) < MaxChunksListed {
			return piece, nil
		}
	}
}

// refresh reads a job whose answer has begun, if that is all that is known of it. If it
// cannot be read what came is shown all the same.
func (f *Follower) refresh(ctx context.Context) {
	if f.Attempt() != nil {
		return
	}
	_, _ = f.Look(ctx)
}

// streamPoll is how often somebody who was shown a part of an answer looks for more
// without being woken: it is made in another process then.
const streamPoll = 250 * time.Millisecond

// wait waits for news of the job or its answer, and looks at the job.
func (f *Follower) wait(ctx context.Context, quiet *int) (err error) {
	pause := f.client.opts.Signals.PauseAfter(*quiet, f.client.opts.PollInterval)
	if f.number > 0 && !f.woken {
		pause = min(pause, streamPoll)
	}
	poll := time.NewTimer(pause)
	defer poll.Stop()
	select {
	case <-f.streamed:
		*quiet, f.woken = 0, true
		return nil
	case <-f.changed.changed:
		*quiet = 0
		if shown, _ := f.client.opts.Signals.seen(f.changed); shown != nil {
			f.job = shown
			return nil
		}
	case <-poll.C:
	case <-ctx.Done():
		return nil
	}
	_, err = f.Look(ctx)
	return err
}

// Look reads the job anew. Next goes on from what it finds.
func (f *Follower) Look(ctx context.Context) (*Job, error) {
	job, err := f.client.look(ctx, f.owner, f.job.ID)
	if err == nil {
		f.job = job
	}
	return job, err
}

// Rest returns what of the result of a job that has succeeded was not shown. It returns
// [ErrAnotherAnswer] if that is not what was shown before.
func (f *Follower) Rest() ([]byte, error) {
	if f.attempt == 0 {
		return f.job.Result.Body, nil
	}
	shown, body := f.Attempt(), f.job.Result.Body
	if shown == nil || shown.ID != f.job.CompletedBy || f.sent > len(body) || maphash.Bytes(f.digest.Seed(), body[:f.sent]) != f.digest.Sum64() {
		return nil, ErrAnotherAnswer
	}
	return body[f.sent:], nil
}
