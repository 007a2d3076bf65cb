package sim_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// faulty starts a server that treats its next request as the step says.
func faulty(t *testing.T, step string) *sim.Server {
	t.Helper()
	srv := sim.ForTest(t, sim.Options{})
	srv.Script(sim.MustParse(step)...)
	return srv
}

func TestFaultsThatCutTheConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		step       string
		executions int
		bytes      string
		reset      bool
	}{
		{"reset", 1, "", true},
		{"eof", 1, "", false},
		{"continue_only", 1, "HTTP/1.1 100 Continue\r\n\r\n", false},
		{"cut_status_line", 1, "HTTP/1.1 20", false},
		{"reset_mid_request", 0, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			t.Parallel()
			srv := faulty(t, tt.step)
			c := dial(t, srv)
			c.send()
			got, err := c.rest()
			if got != tt.bytes || isReset(err) != tt.reset || !tt.reset && err != nil {
				t.Errorf("%s: the client read %q, %v; want %q, reset %t", tt.step, got, err, tt.bytes, tt.reset)
			}
			entry := finished(t, srv.Provider, 1)
			if entry.Executions != tt.executions || entry.Status != 0 || entry.Fault != tt.step {
				t.Errorf("%s: entry %+v; want %d executions and no status", tt.step, entry, tt.executions)
			}
		})
	}
}

func TestResetMidRequestHappensWhileTheBodyIsBeingSent(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "reset_mid_request")
	c := dial(t, srv)
	head := fmt.Sprintf("POST /v1/charges HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n", 64<<20)
	if _, err := io.WriteString(c.conn, head); err != nil {
		t.Fatal(err)
	}
	chunk := strings.Repeat("x", 64<<10) // 64 MiB at once take seconds to make on a busy machine
	var err error
	for range 1 << 10 {
		if _, err = io.WriteString(c.conn, chunk); err != nil {
			break
		}
	}
	if !isReset(err) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing gave %v; want a reset", err)
	}
	if got := finished(t, srv.Provider, 1); got.Executions != 0 || got.BodyBytes == 0 {
		t.Errorf("entry %+v; want no execution and some of the body read", got)
	}
}

func TestFaultsOnAReusedConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		step       string
		executions int
		reset      bool
	}{
		{"drop_keepalive", 2, false},
		{"stale", 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			t.Parallel()
			srv := faulty(t, tt.step)
			c := dial(t, srv)
			c.send()
			if resp, body := c.receive(); resp.StatusCode != 200 || resp.Close {
				t.Fatalf("%s: the first request got %d %s, close %t; want a kept-alive answer", tt.step, resp.StatusCode, body, resp.Close)
			}
			c.send()
			got, err := c.rest()
			if got != "" || isReset(err) != tt.reset || !tt.reset && err != nil {
				t.Errorf("%s: the second request got %q, %v; want nothing, reset %t", tt.step, got, err, tt.reset)
			}
			second := finished(t, srv.Provider, 2)
			if second.Conn != 1 || second.ConnRequest != 2 || srv.Executions("k") != tt.executions {
				t.Errorf("%s: entry %+v, %d executions; want request 2 of connection 1 and %d executions", tt.step, second, srv.Executions("k"), tt.executions)
			}
		})
	}
}

func TestHalfABodyIsAnUnexpectedEnd(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "half")
	c := dial(t, srv)
	c.send()
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || len(body) == 0 {
		t.Errorf("got %d, %q, %v; want 200, a part and an unexpected end", resp.StatusCode, body, err)
	}
	if got := finished(t, srv.Provider, 1); got.Executions != 1 || got.Status != 200 {
		t.Errorf("entry %+v; want one execution and status 200", got)
	}
}

func TestACloseDelimitedBodyEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "close_delimited")
	resp, body := charge(t, srv, "k", `{}`)
	if resp.StatusCode != 200 || resp.ContentLength != -1 || strings.HasSuffix(body, "}") || srv.Executions("k") != 1 {
		t.Errorf("got %d, length %d, %q; want 200 with a body cut in silence", resp.StatusCode, resp.ContentLength, body)
	}
}

func TestFaultsThatAnswerUselessly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		step     string
		kind     string
		contains string
		length   int64
	}{
		{"html", "text/html; charset=utf-8", "<h1>", -1},
		{"empty", "application/json", "", 0},
		{"garbage", "application/json", `"status": succee`, -1},
		{"error_body", "application/json", `"status":"failed"`, -1},
		{"huge=100000", "application/json", `{"padding":"xxx`, 100_000},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			t.Parallel()
			srv := faulty(t, tt.step)
			resp, body := charge(t, srv, "k", `{}`)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != tt.kind || !strings.Contains(body, tt.contains) {
				t.Errorf("%s: got %d, %v, %.80q", tt.step, resp.StatusCode, resp.Header, body)
			}
			if tt.length >= 0 && (resp.ContentLength != tt.length || int64(len(body)) != tt.length) {
				t.Errorf("%s: %d bytes of %d; want %d", tt.step, len(body), resp.ContentLength, tt.length)
			}
			if got := srv.Executions("k"); got != 1 {
				t.Errorf("%s: %d executions; want 1", tt.step, got)
			}
		})
	}
}

func TestAnEndlessBodyEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "huge")
	c := dial(t, srv)
	c.send()
	if _, err := io.CopyN(io.Discard, c.read, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = c.conn.Close()
	if got := finished(t, srv.Provider, 1); got.Executions != 1 || got.Status != 200 {
		t.Errorf("entry %+v; want one execution and status 200", got)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		step       string
		status     int
		retryAfter string
		code       string
		executions int
	}{
		{"status", 500, "", "internal_server_error", 0},
		{"status=503,retry_after=1500ms", 503, "2", "service_unavailable", 0},
		{"status=500,executed", 500, "", "internal_server_error", 1},
		{"status=429,code=insufficient_quota", 429, "", "insufficient_quota", 0},
		{"status=201", 201, "", "", 1},
		{"status=529", 529, "", "overloaded", 0},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			t.Parallel()
			srv := faulty(t, tt.step)
			resp, body := charge(t, srv, "k", `{}`)
			if resp.StatusCode != tt.status || resp.Header.Get("Retry-After") != tt.retryAfter || !strings.Contains(body, tt.code) {
				t.Errorf("%s: got %d, Retry-After %q, %s", tt.step, resp.StatusCode, resp.Header.Get("Retry-After"), body)
			}
			if got := srv.Executions("k"); got != tt.executions {
				t.Errorf("%s: %d executions; want %d", tt.step, got, tt.executions)
			}
		})
	}
}

func TestSilentExecutesAndIgnoreDoesNot(t *testing.T) {
	t.Parallel()
	for step, executions := range map[string]int{"silent": 1, "ignore": 0} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			srv := faulty(t, step)
			c := dial(t, srv)
			c.send()
			wait(t, srv.Provider, func() bool { return srv.Requests() == 1 && srv.Executions("k") == executions })
			if got := srv.Ledger()[0]; !got.FinishedAt.IsZero() {
				t.Errorf("%s: entry %+v; want it still open", step, got)
			}
			_ = c.conn.Close()
			if got := finished(t, srv.Provider, 1); !got.ClientGone || got.Executions != executions {
				t.Errorf("%s: entry %+v; want the client gone and %d executions", step, got, executions)
			}
		})
	}
}

func TestLateExecutesAtOnce(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "late=300ms")
	c := dial(t, srv)
	c.send()
	resp, _ := c.receive()
	entry := finished(t, srv.Provider, 1)
	if resp.StatusCode != 200 || entry.FinishedAt.Sub(entry.ExecutedAt) < 300*time.Millisecond {
		t.Errorf("got %d, entry %+v; want the delay after the execution", resp.StatusCode, entry)
	}
}

func TestSlowExecutesAfterTheDelayThoughTheClientHasLeft(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "slow=300ms")
	c := dial(t, srv)
	c.send()
	wait(t, srv.Provider, func() bool { return srv.Requests() == 1 })
	_ = c.conn.Close()
	entry := finished(t, srv.Provider, 1)
	if entry.Executions != 1 || !entry.ClientGone || entry.ExecutedAt.Sub(entry.ReceivedAt) < 300*time.Millisecond {
		t.Errorf("entry %+v; want one execution after the delay, the client gone", entry)
	}
}

func TestHoldAnswersWhenReleased(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "hold")
	c := dial(t, srv)
	c.send()
	wait(t, srv.Provider, func() bool { return srv.Executions("k") == 1 })
	srv.Release()
	if resp, body := c.receive(); resp.StatusCode != 200 || !strings.Contains(body, "succeeded") {
		t.Errorf("got %d %s; want the answer", resp.StatusCode, body)
	}
}

func TestDripSendsTheWholeAnswerSlowly(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "drip=1ms")
	_, body := charge(t, srv, "k", `{"amount":7}`)
	entry := finished(t, srv.Provider, 1)
	least := time.Duration(len(body)) * time.Millisecond
	if decode(t, body)["status"] != "succeeded" || entry.FinishedAt.Sub(entry.ExecutedAt) < least {
		t.Errorf("got %s in %v; want a whole answer in %v at least", body, entry.FinishedAt.Sub(entry.ExecutedAt), least)
	}
}

func TestTwiceShowsInTheLedgerOnly(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "twice")
	resp, body := charge(t, srv, "k", `{}`)
	if resp.StatusCode != 200 || srv.Executions("k") != 2 || srv.Requests() != 1 || srv.Duplicates()["k"] != 2 {
		t.Errorf("got %d %s, %+v; want a healthy answer and two executions", resp.StatusCode, body, srv.Report())
	}
	if got := srv.Ledger()[0]; got.ID != decode(t, body)["id"] {
		t.Errorf("entry %+v; want the id of the answer %s", got, body)
	}
}

func TestRedirectShowsWhetherItWasFollowed(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "redirect")
	resp, _ := charge(t, srv, "k", `{}`)
	if resp.StatusCode != 307 || srv.Requests() != 1 || srv.TotalExecutions() != 0 {
		t.Fatalf("got %d, %+v; want 307 and nothing done", resp.StatusCode, srv.Report())
	}
	r := request(t, srv.URL(), "k", `{}`)
	r.Header.Set("Sim-Fault", "redirect")
	follower := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := follower.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got := finished(t, srv.Provider, 3); !got.Followed || got.Path != "/v1/charges" || got.Executions != 1 {
		t.Errorf("entry %+v; want a followed request that was executed", got)
	}
}

func TestTheCanarySitsInTheHeaders(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "header_canary")
	resp, _ := charge(t, srv, "k", `{}`)
	for _, name := range []string{"Authorization", "Set-Cookie", "X-Api-Key"} {
		if !strings.Contains(resp.Header.Get(name), sim.Canary) {
			t.Errorf("%s is %q; want the canary", name, resp.Header.Get(name))
		}
	}
}

func TestAcceptedWorkIsProcessingAtFirst(t *testing.T) {
	t.Parallel()
	srv := faulty(t, "accepted=1h")
	srv.Script(sim.MustParse("accepted=1ns")...)
	for _, want := range []string{"processing", "succeeded"} {
		resp, body := charge(t, srv, "k", `{}`)
		id, _ := decode(t, body)["id"].(string)
		if resp.StatusCode != 202 || id == "" {
			t.Fatalf("got %d %s; want 202 with an id", resp.StatusCode, body)
		}
		_, body = get(t, srv.URL()+"/v1/charges/"+id)
		if got := decode(t, body); got["status"] != want || got["id"] != id {
			t.Errorf("the look-up says %s; want %s of %s", body, want, id)
		}
	}
}

func TestWithoutARawConnectionTheHandlerIsAborted(t *testing.T) {
	t.Parallel()
	p := sim.New(sim.Options{Default: sim.Step{Fault: "reset"}})
	defer func() {
		if got := recover(); got != http.ErrAbortHandler || p.TotalExecutions() != 1 {
			t.Errorf("recovered %v after %d executions; want an abort after one", got, p.TotalExecutions())
		}
	}()
	p.ServeHTTP(httptest.NewRecorder(), request(t, "http://sim", "k", `{}`))
}

func TestDroppedConnectionsReachNoHandler(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	srv.DropConnections(1)
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "http://"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !isReset(err) {
		t.Errorf("the connection gave %v; want a reset", err)
	}
	if resp, _ := charge(t, srv, "k", `{}`); resp.StatusCode != 200 || srv.Requests() != 1 {
		t.Errorf("the next connection got %d, %d requests; want one answered", resp.StatusCode, srv.Requests())
	}
}

func TestEveryFaultIsParsedAndExecutesAsTheTableSays(t *testing.T) {
	t.Parallel()
	want := map[sim.Executes]int{sim.ExecutesAtOnce: 1, sim.ExecutesLate: 1, sim.ExecutesTwice: 2, sim.ExecutesNever: 0, sim.ExecutesIfAsked: 0}
	for _, fault := range sim.Faults() {
		if fault.Lie {
			continue // they need a model; see lie_test.go
		}
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			text := fault.Name
			if fault.Argument == sim.ArgDuration {
				text += "=1ms"
			}
			srv := faulty(t, text)
			executions := want[fault.Executes]
			c := dial(t, srv)
			c.send()
			if fault.Name == "drop_keepalive" || fault.Name == "stale" {
				executions++
				c.receive()
				c.send()
			}
			wait(t, srv.Provider, srv.Unscripted)
			wait(t, srv.Provider, func() bool { return srv.Executions("k") == executions })
			_ = c.conn.Close()
			wait(t, srv.Provider, func() bool {
				for _, e := range srv.Ledger() {
					if e.FinishedAt.IsZero() {
						return false
					}
				}
				return srv.Executions("k") == executions
			})
		})
	}
}
