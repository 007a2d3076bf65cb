package loadgen_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/loadgen"
)

// server answers submissions as a onejob server would, with faults.
type server struct {
	mu     sync.Mutex
	jobs   map[string]string // id by key
	bodies map[string]string // by key
	posts  int
	gone   func(id string) bool
	fault  func(n int, w http.ResponseWriter) bool // true: it has answered
	busy   atomic.Int32
	most   atomic.Int32
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := s.busy.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.busy.Add(-1)
	if id, asked := strings.CutPrefix(r.URL.Path, "/v1/jobs/"); asked {
		if s.gone != nil && s.gone(id) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"id":%q,"state":"succeeded"}`, id)
		return
	}
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	s.posts++
	n := s.posts
	s.mu.Unlock()
	if s.fault != nil && s.fault(n, w) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, known := s.jobs[key]
	if !known {
		id = fmt.Sprintf("job_%d", len(s.jobs))
		s.jobs[key], s.bodies[key] = id, string(body)
	} else {
		w.Header().Set("Idempotent-Replayed", "true")
		if s.bodies[key] != string(body) {
			w.WriteHeader(http.StatusConflict)
			return
		}
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(w, `{"id":%q,"state":"queued"}`, id)
}

// put puts a load on a server.
func put(t *testing.T, s *server, change func(*loadgen.Plan)) (*loadgen.Load, loadgen.Counts, error) {
	t.Helper()
	s.jobs, s.bodies = map[string]string{}, map[string]string{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := loadgen.Plan{
		Server: at, Client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 64}}, Kind: "k", Input: loadgen.Payload(100),
		Mode: loadgen.Closed, Callers: 4, For: 500 * time.Millisecond, KeyPrefix: "k-",
	}
	change(&p)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	l := loadgen.New(p)
	err = l.Run(t.Context())
	counts, _ := l.Counts()
	return l, counts, err
}

func TestAClosedLoopAsksAsOftenAsItIsAnswered(t *testing.T) {
	t.Parallel()
	s := &server{}
	l, c, err := put(t, s, func(p *loadgen.Plan) { p.RepeatFraction, p.Wait = 0.3, time.Second })
	if err != nil {
		t.Fatal(err)
	}
	if c.Submitted == 0 || c.Submitted != int64(s.posts) || c.Accepted != int64(len(s.jobs)) || c.Accepted+c.Replayed != c.Submitted || c.Errors+c.Otherwise > 0 {
		t.Errorf("counted %+v of %d posts and %d jobs", c, s.posts, len(s.jobs))
	}
	if share := float64(c.Replayed) / float64(c.Submitted); c.Submitted > 200 && (share < 0.15 || share > 0.45) {
		t.Errorf("%.2f of the submissions are repeats; want about 0.3", share)
	}
	if s.most.Load() > 4 {
		t.Errorf("%d requests at once of 4 callers", s.most.Load())
	}
	if q := l.Result.Quantiles(); q.Count != c.Submitted || c.Ended["succeeded"] != c.Submitted {
		t.Errorf("%d results, %v ended; want %d", q.Count, c.Ended, c.Submitted)
	}
}

// Coordinated omission: a server that stands still for a while must show in the
// latency of all that was to be sent meanwhile, though nothing was sent.
func TestAnOpenLoopCountsFromWhenItWasToSend(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var once sync.Once
	s := &server{fault: func(int, http.ResponseWriter) bool {
		once.Do(func() { time.Sleep(stall) }) // the only caller is held
		return false
	}}
	l, c, err := put(t, s, func(p *loadgen.Plan) { p.Mode, p.Rate, p.Callers, p.For = loadgen.Open, 100, 1, 500*time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	if q := l.Acknowledgement.Quantiles(); q.Max < stall || q.P50 < 20*time.Millisecond {
		t.Errorf("the median is %s and the longest %s; more than half of the submissions were held up by the stall", q.P50, q.Max)
	}
	if c.Late < 15 || c.Submitted+c.NotSent < 48 || c.Submitted+c.NotSent > 51 {
		t.Errorf("counted %+v; want about 30 late, and 50 sent or not", c)
	}
}

func TestWhatTheServerHasNoRoomForIsCountedAndNoneOfItsFaultsIsMissed(t *testing.T) {
	t.Parallel()
	s := &server{fault: func(n int, w http.ResponseWriter) bool {
		switch n % 4 {
		case 0:
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		case 1:
			panic(http.ErrAbortHandler)
		}
		return false
	}}
	_, c, err := put(t, s, func(*loadgen.Plan) {})
	if err != nil || c.Refused[http.StatusTooManyRequests] == 0 || c.Errors == 0 || c.Error == "" || c.Accepted != int64(len(s.jobs)) {
		t.Errorf("counted %+v, %v; want refusals, errors and %d jobs", c, err, len(s.jobs))
	}
}

func TestALostJobAndOneThatChangedIsFound(t *testing.T) {
	t.Parallel()
	s := &server{gone: func(id string) bool { return id == "job_3" }}
	l, c, err := put(t, s, func(*loadgen.Plan) {})
	if err != nil || c.Accepted < 5 {
		t.Fatalf("counted %+v, %v", c, err)
	}
	if got := l.Look(t.Context(), func(int64) {}); got.Lost != 1 || got.Asked != c.Accepted || got.Error != "" {
		t.Errorf("looking found %+v; want one of %d lost", got, c.Accepted)
	}

	forgetful := &server{}
	forgetful.fault = func(n int, _ http.ResponseWriter) bool {
		if n%10 == 0 {
			forgetful.mu.Lock()
			clear(forgetful.jobs)
			forgetful.mu.Unlock()
		}
		return false
	}
	if _, c, err = put(t, forgetful, func(p *loadgen.Plan) { p.RepeatFraction = 0.5 }); err != nil || c.Otherwise == 0 {
		t.Errorf("counted %+v, %v; want repeats with another job", c, err)
	}
}

func TestARequestThatIsRefusedForGoodEndsTheLoad(t *testing.T) {
	t.Parallel()
	s := &server{fault: func(_ int, w http.ResponseWriter) bool { w.WriteHeader(http.StatusUnprocessableEntity); return true }}
	began := time.Now()
	_, _, err := put(t, s, func(p *loadgen.Plan) { p.For = time.Hour })
	var refusal *loadgen.Refusal
	if !errors.As(err, &refusal) || refusal.Status != http.StatusUnprocessableEntity || time.Since(began) > time.Minute {
		t.Errorf("got %v after %s; want the refusal at once", err, time.Since(began))
	}
}

func TestALoadThatIsInterruptedKeepsItsCounts(t *testing.T) {
	t.Parallel()
	s := &server{jobs: map[string]string{}, bodies: map[string]string{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := loadgen.New(loadgen.Plan{Server: at, Client: srv.Client(), Kind: "k", Input: "1", Mode: loadgen.Closed, Callers: 2, For: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	s.fault = func(n int, _ http.ResponseWriter) bool {
		if n == 20 {
			stop()
		}
		return false
	}
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c, elapsed := l.Counts(); c.Submitted < 20 || c.Errors > 0 || elapsed > time.Minute {
		t.Errorf("counted %+v in %s; want those before the interrupt, each answered", c, elapsed)
	}
}

func TestCheckReportsEveryFaultOfAPlanAtOnce(t *testing.T) {
	t.Parallel()
	p := loadgen.Plan{Mode: "ajar", Callers: loadgen.MaxCallers + 1, RepeatFraction: 2, KeyPrefix: "a b", Input: "{", Wait: -1}
	err := p.Check()
	for _, want := range []string{"kind", "ajar", "callers", "how long", "wait", "repeats", "prefix", "JSON"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not speak of %s", err, want)
		}
	}
}
