package e2e_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// repeater is a proxy that sends every request twice, to one node each, as nginx
// did with a POST whose first upstream had not answered in time.
type repeater struct {
	nodes [2]*node
	twice bool // at the same time; otherwise the first answer is thrown away first
	sent  atomic.Int64
}

func (p *repeater) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var answers [2]*http.Response
	var both sync.WaitGroup
	for i := range answers {
		ask := func() { answers[i], _ = p.pass(r.Context(), p.nodes[i], r, body) }
		if p.twice {
			both.Go(ask)
			continue
		}
		ask()
	}
	both.Wait()
	for _, a := range answers {
		if a != nil {
			defer func() { _ = a.Body.Close() }()
		}
	}
	last := answers[1]
	if last == nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	for name, values := range last.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(last.StatusCode)
	_, _ = io.Copy(w, last.Body)
}

func (p *repeater) pass(ctx context.Context, to *node, r *http.Request, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, r.Method, "http://"+to.addr+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.GetBody = nil
	out.Header = r.Header.Clone()
	p.sent.Add(1)
	return client.Do(out)
}

// nginx before 1.9.13 sent a POST to a second upstream when the first was slow.
func TestAProxyThatSendsEveryPostTwiceMakesOneJobAndOneExecution(t *testing.T) {
	for name, twice := range map[string]bool{"AtOnce": true, "OneAfterTheOther": false} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, storeURL string) {
				s := newSite(t, storeURL, external, sim.Options{Latency: 20 * time.Millisecond})
				first := s.newNode()
				first.start()
				second := first
				if strings.HasPrefix(storeURL, "postgres:") {
					second = s.newNode()
					second.start()
				}
				proxy := &repeater{nodes: [2]*node{first, second}, twice: twice}
				srv := httptest.NewServer(proxy)
				defer srv.Close()
				front := &node{site: s, addr: strings.TrimPrefix(srv.URL, "http://")}

				const orders = 50
				acked, mu := map[string]string{}, sync.Mutex{}
				l := &load{}
				asked := map[string]string{}
				for range orders {
					asked[l.order()] = ""
				}
				eachOf(asked, func(order, _ string) {
					r, err := front.submit(t.Context(), order)
					if err != nil || r.status/100 != 2 {
						t.Errorf("%s: %d %s, %v", order, r.status, r.job.Code, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					acked[order] = r.job.ID
				})
				succeeded, blocked := audit(t, first, acked)
				t.Logf("%d orders, %d requests passed on: %d succeeded, %d unknown, %d executions", orders, proxy.sent.Load(), succeeded, blocked, s.provider.TotalExecutions())
				if succeeded != orders || s.provider.TotalExecutions() != orders || proxy.sent.Load() != 2*orders {
					t.Errorf("%d succeeded by %d executions from %d requests; want %d by %d from %d",
						succeeded, s.provider.TotalExecutions(), proxy.sent.Load(), orders, orders, 2*orders)
				}
			})
		})
	}
}
