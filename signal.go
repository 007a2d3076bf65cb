package onejob

import "sync"

// Signals are wake-ups: a job changed, there is work. They reach whoever waits in
// this process, and through a [Bell] those in others. They are a convenience only.
// Whoever waits also polls, so that a signal that is lost costs at most one poll.
// Safe for concurrent use; the zero value is ready.
type Signals struct {
	mu        sync.Mutex
	waiting   map[string]*watcher // by job id; each the first of a list
	work      chan struct{}
	pulling   map[chan struct{}]struct{} // of workers that wait for something to claim
	streaming map[string]*showing        // of the answers that are made or followed here, by job id
	outbox    chan struct{}              // nil: no webhook is sent here
	questions chan struct{}
	cancels   cancels

	bell    Bell // nil: there are no other processes
	hearing bool // those
}

// watcher is somebody who waits for a job to change.
type watcher struct {
	changed chan struct{}
	// latest is the job as it was last shown, and stale says that it has changed since
	// without being shown.
	latest *Job
	stale  bool
	own    bool // latest is shown to nobody else
	next   *watcher
}

// JobChanged wakes whoever waits for the job, and who sends webhooks.
func (s *Signals) JobChanged(id string) {
	s.mu.Lock()
	s.ringOutbox()
	s.wake(id)
	bell, outbox := s.bell, s.outbox == nil
	s.mu.Unlock()
	if bell != nil {
		bell.Ring(News{Changed: []string{id}, Outbox: outbox})
	}
}

// wake has whoever waits for the job read it.
func (s *Signals) wake(id string) {
	for w := s.waiting[id]; w != nil; w = w.next {
		w.latest, w.stale = nil, true
		ring(w.changed)
	}
}

// JobShown is [Signals.JobChanged] with the job as a commit that has returned left
// it, so that those who wait need not read it. It must not be changed afterwards.
func (s *Signals) JobShown(job *Job) { s.show(job, false) }

// JobGiven is [Signals.JobShown] of a job that the caller gives away: who waits for
// it alone need not copy it.
func (s *Signals) JobGiven(job *Job) { s.show(job, true) }

func (s *Signals) show(job *Job, given bool) {
	s.mu.Lock()
	s.ringOutbox()
	first := s.waiting[job.ID]
	own := given && first != nil && first.next == nil
	for w := first; w != nil; w = w.next {
		if !w.stale && (w.latest == nil || w.latest.Revision < job.Revision) {
			w.latest, w.own = job, own
		}
		ring(w.changed)
	}
	bell, outbox := s.bell, s.outbox == nil
	s.mu.Unlock()
	if bell != nil {
		bell.Ring(News{Changed: []string{job.ID}, Outbox: outbox})
	}
}

func (s *Signals) ringOutbox() {
	if s.outbox != nil {
		ring(s.outbox)
	}
}

// WatchJob returns a channel that receives after each change of the job, changes
// in quick succession merged into one. stop must be called once.
func (s *Signals) WatchJob(id string) (changed <-chan struct{}, stop func()) {
	w := s.watch(id)
	return w.changed, func() { s.forget(id, w) }
}

func (s *Signals) watch(id string) *watcher {
	w := &watcher{changed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]*watcher{}
	}
	w.next = s.waiting[id]
	s.waiting[id] = w
	return w
}

// seen returns the job as it was last shown to w, or nil when it has to be read. own
// says that nobody else was shown it.
func (s *Signals) seen(w *watcher) (job *Job, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job, own = w.latest, w.own
	w.latest, w.own, w.stale = nil, false, false
	return job, own
}

// forget may be called more than once.
func (s *Signals) forget(id string, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.waiting[id]
	switch {
	case first == w && w.next == nil:
		delete(s.waiting, id)
	case first == w:
		s.waiting[id] = w.next
	default:
		for at := first; at != nil; at = at.next {
			if at.next == w {
				at.next = w.next
			}
		}
	}
}

// WorkReady says that an attempt may be due. It wakes the engine and every worker
// that waits.
func (s *Signals) WorkReady() {
	s.mu.Lock()
	s.workReady()
	s.mu.Unlock()
	s.tell(News{Work: true})
}

func (s *Signals) workReady() {
	ring(channel(&s.work))
	for ch := range s.pulling {
		ring(ch)
	}
}

// watchWork returns a channel that receives after each [Signals.WorkReady], those
// in quick succession merged into one. stop must be called once.
func (s *Signals) watchWork() (ready <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulling == nil {
		s.pulling = map[chan struct{}]struct{}{}
	}
	s.pulling[ch] = struct{}{}
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pulling, ch)
	}
}

// Work returns the channel that receives after [Signals.WorkReady]. It has one
// receiver: the engine.
func (s *Signals) Work() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return channel(&s.work)
}

// Outbox returns the channel that receives after each [Signals.JobChanged] of any
// job, those in quick succession merged into one. It has one receiver: who sends
// webhooks.
func (s *Signals) Outbox() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return channel(&s.outbox)
}

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // already rung
	}
}
