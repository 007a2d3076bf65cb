package httpcall_test

import (
	"errors"
	"testing"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/sim"
)

func TestCallSendsTheInputOnceAndReturnsTheAnswer(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	p, err := httpcall.New(httpcall.Options{URL: srv.URL() + "/v1/charges", IdempotencyHeader: "Idempotency-Key"})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	a, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{"amount": 5}`), ProviderKey: "pk_1", Sent: func() { sent++ }})
	if err != nil {
		t.Fatal(err)
	}
	if a.Outcome != onejob.OutcomeSucceeded || len(a.Body) == 0 {
		t.Errorf("answer = %+v, want a success with a body", a)
	}
	if sent != 1 || srv.Executions("pk_1") != 1 {
		t.Errorf("sent %d times, executed %d times, want 1 and 1", sent, srv.Executions("pk_1"))
	}
}

func TestCallProvesNothingByADroppedConnection(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	p, err := httpcall.New(httpcall.Options{URL: srv.URL(), IdempotencyHeader: "Idempotency-Key"})
	if err != nil {
		t.Fatal(err)
	}
	srv.Script(sim.MustParse("ok", "drop_keepalive")...)
	for range 2 {
		_, err = p.Call(t.Context(), onejob.Request{Input: []byte(`{}`), ProviderKey: "pk_1"})
	}
	var ce *onejob.CallError
	if !errors.As(err, &ce) || ce.Proof != nil || ce.Phase != onejob.PhaseSent || !ce.Evidence.ReusedConnection {
		t.Errorf("error = %+v, want one without proof, sent over a reused connection", err)
	}
	if n := srv.Executions("pk_1"); n != 2 {
		t.Errorf("executed %d times, want 2", n)
	}
}
