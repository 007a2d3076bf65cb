package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

// A rule says that the effect happened; it cannot make half a body whole.
func TestARuleOfSuccessNeverKeepsACutResult(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n"
	whole := proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}
	for name, c := range map[string]struct {
		answer func(*providertest.Exchange)
		want   proof
	}{
		"whole":               {func(x *providertest.Exchange) { x.Answer(409, okBody) }, whole},
		"closed, whole":       {func(x *providertest.Exchange) { x.Write(head + "\r\n" + okBody); x.Close() }, whole},
		"short of its length": {func(x *providertest.Exchange) { x.Write(head + "Content-Length: 100\r\n\r\n" + okBody); x.Close() }, lostAs("rule_result_lost")},
		"chunks without an end": {func(x *providertest.Exchange) {
			x.Write(head + "Transfer-Encoding: chunked\r\n\r\nb\r\n" + okBody + "\r\n")
			x.Reset()
		}, lostAs("rule_result_lost")},
		"closed in the middle": {func(x *providertest.Exchange) { x.Write(head + "\r\n" + okBody[:5]); x.Close() }, lostAs("rule_result_lost")},
		"beyond what is read":  {func(x *providertest.Exchange) { x.Answer(409, `"`+strings.Repeat("x", 70<<10)+`"`) }, lostAs("rule_result_lost")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, c.answer)
			rules, err := wire.NewRules([]wire.Rule{{When: "status == 409", Class: onejob.OutcomeSucceeded}})
			if err != nil {
				t.Fatal(err)
			}
			caller := newCaller(t, srv.URL, wire.Options{})
			caller.reading.Rules = rules
			a, err := caller.post(t.Context(), `{}`)
			hold(t, proofOf(a, err), c.want)
			if c.want != whole && len(a.Body) > 0 {
				t.Errorf("a cut body of %d bytes is handed on", len(a.Body))
			}
		})
	}
}

func TestAUsageIsBoundedAndTheEvidenceSaysSo(t *testing.T) {
	t.Parallel()
	usage := func(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }
	for name, c := range map[string]struct {
		usage  string
		status int
		kept   bool
	}{
		"at the bound":            {usage(wire.MaxUsageBytes), 200, true},
		"beyond it":               {usage(wire.MaxUsageBytes + 1), 200, false},
		"beyond it, of a failure": {usage(wire.MaxUsageBytes + 1), 400, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(c.status, `{"usage":`+c.usage+`}`) })
			caller := newCaller(t, srv.URL, wire.Options{})
			caller.reading.PriceFunc = func(s *wire.Seen) wire.Price {
				return wire.Price{CostMicros: 7, Currency: "USD", Usage: wire.Member(s.Body, "usage")}
			}
			a, err := caller.post(t.Context(), `{}`)
			got, evidence, cost := a.Usage, a.Evidence, a.CostMicros
			if ce, ok := err.(*onejob.CallError); ok { //nolint:errorlint // it is what Read returns
				got, evidence, cost = ce.Usage, ce.Evidence, ce.CostMicros
			}
			if kept := len(got) > 0 && json.Valid(got); kept != c.kept || cost != 7 {
				t.Errorf("usage of %d bytes, cost %d; want it kept %t, and the cost", len(got), cost, c.kept)
			}
			if said := strings.Contains(evidence.Error, "the usage is left out"); said == c.kept {
				t.Errorf("the evidence says %q", evidence.Error)
			}
		})
	}
}
