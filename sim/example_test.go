package sim_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/onejob-dev/onejob/sim"
)

// A client that takes a lost connection for a failure and tries again charges
// twice. Only the provider's ledger shows it.
func Example() {
	srv, err := sim.Start("", sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	srv.Script(sim.MustParse("eof", "ok")...)

	for range 2 {
		req, err := http.NewRequest(http.MethodPost, srv.URL()+"/v1/charges", strings.NewReader(`{"amount":700}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.GetBody = nil // or net/http would try again by itself, given a key
		req.Header.Set("Idempotency-Key", "order-1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println("executions:", srv.Executions("order-1"))
	// Output:
	// no answer
	// 200 OK
	// executions: 2
}
