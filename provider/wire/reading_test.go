package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

func TestRetryAfterIsReadAndBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text, date string
		want       time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{" 1.5 ", "", 1500 * time.Millisecond},
		{"0", "", 0},
		{"-3", "", 0},
		{"NaN", "", 0},
		{"soon", "", 0},
		{"1e300", "", wire.MaxRetryAfter},
		{"99999999", "", wire.MaxRetryAfter},
		{"Fri, 01 May 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Fri, 01 May 2026 11:00:00 GMT", "", 0},
		{"Fri, 01 May 2026 13:00:30 GMT", "Fri, 01 May 2026 13:00:00 GMT", 30 * time.Second}, // its clock, not ours
	} {
		h := http.Header{"Retry-After": {c.text}}
		if c.date != "" {
			h.Set("Date", c.date)
		}
		if got := wire.RetryAfter(h, now); got != c.want {
			t.Errorf("RetryAfter(%q, Date %q) = %v, want %v", c.text, c.date, got, c.want)
		}
	}
}

func TestTheTableEndsInDoubtAndIsNamedOnce(t *testing.T) {
	t.Parallel()
	rows := wire.Table()
	if last := rows[len(rows)-1]; last.Outcome != onejob.OutcomeUnknown {
		t.Errorf("the last row says %q, want unknown", last.Outcome)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.Code] {
			t.Errorf("two rows are named %q", r.Code)
		}
		seen[r.Code] = true
		failed := r.Outcome == onejob.OutcomeNotExecuted || r.Outcome == onejob.OutcomeRefused || r.Outcome == onejob.OutcomeExecutedFailed
		if failed != (r.Next != "") {
			t.Errorf("row %q: outcome %q with next %q", r.Code, r.Outcome, r.Next)
		}
	}
}

func TestASecretIsBlottedOutWhereATextIsCutInItsMiddle(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz"
	echo := func(before int) string { return strings.Repeat("x", before-len(secret)+2) + secret }
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		x.Answer(400, fmt.Sprintf(`{"error":{"message":"%s"}}`, echo(300)), "X-Request-Id: "+echo(200))
	})
	c := newCaller(t, srv.URL, wire.Options{Secrets: []onejob.Secret{"Bearer " + secret}})
	_, err := c.post(t.Context(), `{}`)
	var ce *onejob.CallError
	if !errors.As(err, &ce) {
		t.Fatalf("%v is not a *onejob.CallError", err)
	}
	if all := ce.Failure.Message + ce.Evidence.ProviderRequestID; strings.Contains(all, "sk-live") {
		t.Errorf("a part of the secret is left: %s", all)
	}
}

func TestASecretIsBlottedOutAsOtherLanguagesEncodeIt(t *testing.T) {
	t.Parallel()
	const secret = "sk/live+0123456789"
	for name, echo := range map[string]string{"PHP": `sk\/live+0123456789`, ".NET": `sk/live\u002B0123456789`} {
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(400, `{"echo":"`+echo+`"}`) })
		c := newCaller(t, srv.URL, wire.Options{Secrets: []onejob.Secret{secret}})
		_, err := c.post(t.Context(), `{}`)
		var ce *onejob.CallError
		if !errors.As(err, &ce) || strings.Contains(ce.Evidence.Excerpt, "0123456789") {
			t.Errorf("%s: %v, excerpt %q; want the secret blotted out", name, err, ce.Evidence.Excerpt)
		}
	}
}

func TestEvidenceIsBoundedAndFreeOfSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-live+\"quoted\"/0123"
	echo, _ := json.Marshal(secret)
	long := strings.Repeat("é", 5000)
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		x.Answer(400, fmt.Sprintf(`{"error":{"message":%s},"long":"%s"}`, echo, long), "X-Request-Id: req_9", "Set-Cookie: a=b", "X-Other: "+secret)
	})
	c := newCaller(t, srv.URL, wire.Options{Secrets: []onejob.Secret{"Bearer " + secret}})
	_, err := c.post(t.Context(), `{}`)
	var ce *onejob.CallError
	if !errors.As(err, &ce) {
		t.Fatalf("call: %v", err)
	}
	e := ce.Evidence
	if e.ProviderRequestID != "req_9" || len(e.Excerpt) > 2<<10 || len(e.Excerpt) < 2000 || len(ce.Failure.Message) > 400 {
		t.Errorf("evidence = %+v", e)
	}
	text := fmt.Sprint(ce, e)
	for _, leak := range []string{"sk-live", "0123", "Set-Cookie", "a=b"} {
		if strings.Contains(text, leak) {
			t.Errorf("%q is in %s", leak, text)
		}
	}
	if !strings.Contains(e.Excerpt, "[redacted]") {
		t.Errorf("excerpt %q has nothing blotted out", e.Excerpt[:100])
	}
}

func TestWithMemberLeavesEveryOtherByte(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, want string }{
		{`{"model":"a","n":1.0}`, `{"model":"M","n":1.0}`},
		{"{ \"n\" : 1e2 ,\n \"model\" : {\"x\":[]} , \"s\":\"\\u0041\" }", "{ \"n\" : 1e2 ,\n \"model\" : \"M\" , \"s\":\"\\u0041\" }"},
		{`{"m\u006fdel":1}`, `{"m\u006fdel":"M"}`},
		{`{"in":{"model":"x"}}`, `{"model":"M","in":{"model":"x"}}`},
		{` {} `, ` {"model":"M"} `},
		{`{"n":1,"n":{"a":1,"a":2}}`, `{"model":"M","n":1,"n":{"a":1,"a":2}}`}, // what it means is the provider's affair
		{"{\"n\":\"\xff\"}", "{\"model\":\"M\",\"n\":\"\xff\"}"},
	} {
		got, err := wire.WithMember([]byte(c.object), "model", []byte(`"M"`))
		if diff := cmp.Diff(c.want, string(got)); diff != "" || err != nil {
			t.Errorf("WithMember(%s) (-want +got):\n%s%v", c.object, diff, err)
		}
	}
	for _, bad := range []string{``, `[]`, `"x"`, `{"a":1`, `{"a":1} x`, `{"model":1,"model":2}`, `{"a":}`} {
		if got, err := wire.WithMember([]byte(bad), "model", []byte(`"M"`)); err == nil {
			t.Errorf("WithMember(%s) = %s, want an error", bad, got)
		}
	}
}

func TestWithMemberChangesOneMemberOfAnyObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		object := rapid.MapOf(rapid.SampledFrom([]string{"model", "a", "b", "é\""}), rapid.String()).Draw(rt, "object")
		text, _ := json.MarshalIndent(object, "", " ")
		changed, err := wire.WithMember(text, "model", []byte(`"M"`))
		if err != nil {
			rt.Fatalf("WithMember(%s): %v", text, err)
		}
		var got map[string]string
		if err := json.Unmarshal(changed, &got); err != nil {
			rt.Fatalf("WithMember(%s) = %s: %v", text, changed, err)
		}
		object["model"] = "M"
		if diff := cmp.Diff(object, got); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestTokenPriceRoundsUpAndNeverOverflows(t *testing.T) {
	t.Parallel()
	price := wire.TokenPrice{InputMicros: 1_250_000, OutputMicros: 10_000_000, Currency: "USD"}
	if got, ok := price.Micros(10, 3); got != 43 || !ok { // 12.5 + 30
		t.Errorf("Micros(10, 3) = %d, %t, want 43", got, ok)
	}
	if got, ok := price.Micros(math.MaxInt64, 1); ok {
		t.Errorf("Micros of too many tokens = %d, want none", got)
	}
	if _, ok := (wire.TokenPrice{}).Micros(1, 1); ok {
		t.Error("a price that is not told was told")
	}
}

func TestAnExpensiveExpressionDoesNotHold(t *testing.T) {
	t.Parallel()
	body := `{"l":[` + strings.Repeat("1,", 2000) + `1]}`
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, body) })
	rules, err := wire.NewRules([]wire.Rule{{When: "body.l.all(a, body.l.all(b, body.l.all(c, a == b && b == c)))", Class: onejob.OutcomeUnknown}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, srv.URL, wire.Options{})
	c.reading.Rules = rules
	began := time.Now()
	hold(t, proofOf(c.post(t.Context(), `{}`)), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the rule took %v", d)
	}
}
