package httpcall_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/providertest"
)

// sent makes one call and returns the body that arrived.
func sent(t testing.TB, opts httpcall.Options, req onejob.Request) (string, error) {
	t.Helper()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, `{}`) })
	opts.URL = srv.URL
	_, err := newProvider(t, opts).Call(t.Context(), req)
	asked := srv.Asked()
	if len(asked) == 0 {
		return "", err
	}
	return asked[0].Body, err
}

func TestTheInputGoesOutByteForByteWithoutATemplate(t *testing.T) {
	t.Parallel()
	input := "{ \"b\":1.0,\n\t\"a\" : 12345678901234567890, \"\\u0061\":\"<é>\" }"
	got, err := sent(t, httpcall.Options{}, onejob.Request{Input: []byte(input)})
	if err != nil || got != input {
		t.Errorf("sent %q, %v; want %q", got, err, input)
	}
}

func TestATemplateMakesTheBody(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	cases := []struct{ name, contentType, body, input, want string }{
		{"names of the attempt", "", `{"ref": "{{ job.id }}", "try": {{ attempt.number }}, "a": "{{ attempt.id }}", "k": "{{ provider_key }}"}`, `{}`, `{"ref": "job_1", "try": 2, "a": "att_2", "k": "pk_1"}`},
		{"metadata", "", `{"order": {{ metadata.order | tojson }}}`, `{}`, `{"order": "o-7"}`},
		{"a value outside quotes is JSON", "", `{"all": {{ input }}}`, `{"z":1,"a":[true,null,"x\"y"],"big":9007199254740993}`, `{"all": {"z":1,"a":[true,null,"x\"y"],"big":9007199254740993}}`},
		{"a number", "", `{"amount": {{ input.amount }}}`, `{"amount":12.5}`, `{"amount": 12.5}`},
		{"a string outside quotes is quoted", "", `{"amount": {{ input.amount }}}`, `{"amount":"1, \"admin\": true"}`, `{"amount": "1, \"admin\": true"}`},
		{"a string inside quotes cannot leave them", "", `{"note": "for {{ input.note }}!"}`, `{"note":"x\", \"admin\": \"1"}`, `{"note": "for x\", \"admin\": \"1!"}`},
		{"a filter", "", `{"note": "{{ input.note | upper }}"}`, `{"note":"a\"b"}`, `{"note": "A\"B"}`},
		{"branches and loops", "", `{"l": [{% for i in input.l %}{% if not loop.first %},{% endif %}"{{ i }}"{% endfor %}]}`, `{"l":["a","b\\"]}`, `{"l": ["a","b\\"]}`},
		{"a form", form, `amount={{ input.amount }}&note={{ input.note }}`, `{"amount":5,"note":"a&admin=1"}`, `amount=5&note=a%26admin%3D1`},
		{"XML", "application/xml", `<n>{{ input.note }}</n>`, `{"note":"</n><admin/>"}`, `<n>&lt;/n&gt;&lt;admin/&gt;</n>`},
		{"plain text is left alone", "text/plain", `{{ input.note }}`, `{"note":"<&>"}`, `<&>`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			opts := httpcall.Options{Body: c.body, ResultType: "*/*"}
			if c.contentType != "" {
				opts.Headers = map[string]string{"content-type": c.contentType}
			}
			got, err := sent(t, opts, onejob.Request{
				JobID: "job_1", AttemptID: "att_2", Number: 2, ProviderKey: "pk_1",
				Input: []byte(c.input), Metadata: []byte(`{"order":"o-7"}`),
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("body (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

func TestACallersStringNeverChangesTheShapeOfTheBody(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, `{}`) })
	p := newProvider(t, httpcall.Options{
		URL:  srv.URL,
		Body: `{"quoted": "<{{ input.v }}>", "bare": {{ input.v }}, "json": {{ input.v | tojson }}, "both": "{{ input.v | tojson }}", "admin": false}`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.StringOf(rapid.RuneFrom([]rune("\"\\{}[],: \n\tab<1é\u2028"))).Draw(rt, "v")
		input, _ := json.Marshal(map[string]string{"v": v})
		if _, err := p.Call(t.Context(), onejob.Request{Input: input}); err != nil {
			rt.Fatalf("Call: %v", err)
		}
		asked := srv.Asked()
		var got map[string]any
		if err := json.Unmarshal([]byte(asked[len(asked)-1].Body), &got); err != nil {
			rt.Fatalf("body: %v", err)
		}
		delete(got, "both")
		want := map[string]any{"quoted": "<" + v + ">", "bare": v, "json": v, "admin": false}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("body (-want +got):\n%s", diff)
		}
	})
}

// A filter at the end of an expression is of its last operand alone: the others would
// go out as the caller wrote them.
func TestAFilterOfOneOperandDoesNotVouchForTheOthers(t *testing.T) {
	t.Parallel()
	const jsonType, form, xml = "application/json", "application/x-www-form-urlencoded", "text/xml"
	for _, c := range []struct{ contentType, output, v, want string }{ // want empty: refused
		{jsonType, `input.v or 0 | tojson`, `1,"admin":true`, ""},
		{jsonType, `input.v if input.v else "none" | tojson`, `1,"admin":true`, ""},
		{jsonType, `input.v ~ "" | tojson`, `1,"admin":true,"x":`, ""},
		{jsonType, `input.v or-1|tojson`, `1,"admin":true`, ""},
		{jsonType, `input.v or "" | safe`, `1,"admin":true`, ""},
		{jsonType, `(input.v or 0) | tojson`, `1,"admin":true`, `"1,\"admin\":true"`},
		{jsonType, `input.v | default(0 or 1) | tojson`, `1,"admin":true`, `"1,\"admin\":true"`},
		{jsonType, `input["v"]|tojson`, `1,"admin":true`, `"1,\"admin\":true"`},
		{jsonType, `input.v or 0 | abs`, `1,"admin":true`, `"1,\"admin\":true"`},
		{form, `input.v or "none" | urlencode`, `1&admin=true`, ""},
		{form, `input.v | urlencode`, `1&admin=true`, `1%26admin%3Dtrue`},
		{xml, `input.v or "none" | escape`, `<admin/>`, ""},
		{xml, `input.v | e`, `<admin/>`, `&lt;admin/&gt;`},
	} {
		opts := httpcall.Options{URL: "http://x", Body: "{{ " + c.output + " }}", Headers: map[string]string{"Content-Type": c.contentType}}
		if _, err := httpcall.New(opts); (err != nil) != (c.want == "") {
			t.Errorf("%s: %v; want it refused: %t", c.output, err, c.want == "")
		}
		if c.want == "" {
			continue
		}
		opts.URL = ""
		input, _ := json.Marshal(map[string]string{"v": c.v})
		if got, err := sent(t, opts, onejob.Request{Input: input}); err != nil || got != c.want {
			t.Errorf("%s: sent %s, %v; want %s", c.output, got, err, c.want)
		}
	}
}

func TestAnInputThatTheTemplateCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, input string }{
		"no JSON":                    {`{"a": 1}`, `nope`},
		"a member that is missing":   {`{"a": "{{ input.missing }}"}`, `{}`},
		"a number without an equal":  {`{"a": {{ input.n }}}`, `{"n":123456789012345678901234567890}`},
		"a loop without an end":      {`{"a": [{% for i in range(input.n) %}{% endfor %}]}`, `{"n":1000000000}`},
		"the template's own refusal": {`{% if input.n > 3 %}{{ raise_exception("too much") }}{% endif %}{}`, `{"n":4}`},
		"a body that is no JSON":     {`{"a": {% if input.n %}1{% endif %}}`, `{"n":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sent(t, httpcall.Options{Body: c.body}, onejob.Request{Input: []byte(c.input)})
			var ce *onejob.CallError
			if !errors.As(err, &ce) || !errors.Is(err, onejob.ErrNotSent) || ce.Next != onejob.NextNowhere || got != "" {
				t.Errorf("sent %q, error %v; want nothing, and ErrNotSent with next nowhere", got, err)
			}
		})
	}
}

func TestUsesAttemptSeesWhatDiffersBetweenAttempts(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		``:                               false,
		`{"ref": "{{ job.id }}"}`:        false,
		`{"ref": "{{ input.attempt }}"}`: false,
		`{"ref": "attempt", "a": {# attempt #}1}`:      false,
		`{"ref": {{ "attempt" }}}`:                     false,
		`{"ref": "{{ attempt.id }}"}`:                  true,
		`{% set a = attempt %}{"ref": {{ a.number }}}`: true,
		`{"hook": "{{ callback_url }}"}`:               true,
	} {
		p := newProvider(t, httpcall.Options{URL: "https://acme.example", Body: body})
		if got := p.UsesAttempt(); got != want {
			t.Errorf("UsesAttempt() of %q = %t, want %t", body, got, want)
		}
	}
}

func TestTheCallbackURLIsTheAttempts(t *testing.T) {
	t.Parallel()
	got, err := sent(t, httpcall.Options{
		Body:            `{"hook": "{{ callback_url }}"}`,
		CallbackURLFunc: func(req onejob.Request) string { return "https://us.example/cb/" + req.AttemptID },
	}, onejob.Request{AttemptID: "att_1", Input: []byte(`{}`)})
	if want := `{"hook": "https://us.example/cb/att_1"}`; got != want || err != nil {
		t.Errorf("body = %q, %v; want %q", got, err, want)
	}
}

// Whoever reads an attempt's evidence could report the attempt with it.
func TestTheTokenOfTheCallbackURLIsBlottedOut(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		x.Answer(500, `{"error":{"message":"could not reach https://here.example/v1/callbacks/acme/att_7.PROOF"}}`)
	})
	p := newProvider(t, httpcall.Options{
		URL: srv.URL, Body: `{"hook": "{{ callback_url }}"}`,
		CallbackURLFunc: func(req onejob.Request) string {
			return "https://here.example/v1/callbacks/acme/" + req.AttemptID + ".PROOF"
		},
	})
	_, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{}`), AttemptID: "att_7"})
	var ce *onejob.CallError
	if !errors.As(err, &ce) {
		t.Fatalf("%v is not a *onejob.CallError", err)
	}
	if all := ce.Failure.Message + ce.Evidence.Excerpt; strings.Contains(all, "PROOF") || !strings.Contains(all, "[redacted]") {
		t.Errorf("the token is in %s", all)
	}
}

func TestNewReportsAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	_, err := httpcall.New(httpcall.Options{
		Method: "BREW", URL: "ftp://user:hunter2@acme.example/x",
		Headers:           map[string]string{"Bad Name": "x", "Host": "y", "X-Value": "a\r\nb"},
		SecretHeaders:     map[string]onejob.Secret{"x-value": "s3cr3t", "X-Empty": ""},
		Body:              `{"a": "{% if input.x %}"{% else %}b{% endif %}", "now": {{ strftime_now("%Y") }}}{% macro m() %}{% endmacro %}`,
		IdempotencyHeader: "No Token",
		Outcomes:          nil,
		Accepted:          &httpcall.Accepted{When: "status =="},
		Lookup:            &httpcall.Lookup{URL: "https://{id}.example/{nope}", Failed: "true"},
		Cancel:            &httpcall.Cancel{URL: "https://acme.example/cancel"},
		Callback:          &httpcall.Callback{},
		Cost:              "body.",
	})
	if onejob.CodeOf(err) != onejob.CodeInvalidArgument {
		t.Fatalf("New: %v, want invalid-argument", err)
	}
	for _, want := range []string{
		"method:", "url:", `"Bad Name"`, "Host cannot be set", "control characters", "X-Value is given twice", "X-Empty is empty",
		"branches", "strftime_now", "macro", `"No Token"`, "accepted.when:", "accepted.id", "{nope}", "the host is fixed",
		"lookup.succeeded", "cancel.url", "callback.succeeded", "cost:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New does not mention %q:\n%v", want, err)
		}
	}
	for _, secret := range []string{"hunter2", "s3cr3t"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("New tells a secret: %v", err)
		}
	}
}

func TestDigestAddressesWhatIsNotSecret(t *testing.T) {
	t.Parallel()
	base := httpcall.Options{URL: "https://acme.example", SecretHeaders: map[string]onejob.Secret{"Authorization": "a"}}
	rotated, moved := base, base
	rotated.SecretHeaders = map[string]onejob.Secret{"Authorization": "b"}
	moved.URL = "https://acme.example/v2"
	digest := func(o httpcall.Options) string { return newProvider(t, o).Digest() }
	if digest(base) != digest(rotated) {
		t.Error("rotating a credential changed the digest")
	}
	if digest(base) == digest(moved) {
		t.Error("another URL has the same digest")
	}
}
