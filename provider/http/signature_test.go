package httpcall_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
)

func sum(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// reporting is a target whose provider signs so.
func reporting(t *testing.T, s httpcall.Signature, now time.Time) *httpcall.Provider {
	t.Helper()
	return newProvider(t, httpcall.Options{
		URL: "https://acme.example", NowFunc: func() time.Time { return now },
		Callback: &httpcall.Callback{Succeeded: "body.status == 'succeeded'", Signature: &s},
	})
}

const report = `{"status":"succeeded"}`

func TestAReportIsHeldToItsSignature(t *testing.T) {
	t.Parallel()
	p := reporting(t, httpcall.Signature{Secret: "new", OldSecret: "old", Header: "X-Signature", Prefix: "sha256="}, time.Now())
	in64 := reporting(t, httpcall.Signature{Secret: "new", Header: "X-Signature", Encoding: "base64"}, time.Now())
	for _, c := range []struct {
		name   string
		p      *httpcall.Provider
		value  string
		body   string
		forged bool
	}{
		{"signed", p, "sha256=" + hex.EncodeToString(sum("new", report)), report, false},
		{"signed with the old secret", p, "sha256=" + hex.EncodeToString(sum("old", report)), report, false},
		{"in base64", in64, base64.StdEncoding.EncodeToString(sum("new", report)), report, false},
		{"another secret", p, "sha256=" + hex.EncodeToString(sum("other", report)), report, true},
		{"an empty secret", in64, base64.StdEncoding.EncodeToString(sum("", report)), report, true},
		{"another body", p, "sha256=" + hex.EncodeToString(sum("new", report)), report + " ", true},
		{"no prefix", p, hex.EncodeToString(sum("new", report)), report, true},
		{"no hex", p, "sha256=zz", report, true},
		{"cut short", p, "sha256=" + hex.EncodeToString(sum("new", report))[:32], report, true},
		{"empty", p, "", report, true},
	} {
		a, err := c.p.ReadCallback(http.Header{"X-Signature": {c.value}}, []byte(c.body))
		if errors.Is(err, onejob.ErrForged) != c.forged || !c.forged && (err != nil || a.Outcome != onejob.OutcomeSucceeded) {
			t.Errorf("%s: %q, %v; want forged %t", c.name, a.Outcome, err, c.forged)
		}
	}
}

func TestAStandardWebhookIsHeldToItsSignatureAndItsTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	key := "0123456789abcdef"
	secret := onejob.Secret("whsec_" + base64.StdEncoding.EncodeToString([]byte(key)))
	p := reporting(t, httpcall.Signature{Algorithm: httpcall.StandardWebhooks, Secret: secret}, now)
	sign := func(key string, at time.Time) http.Header {
		stamp := strconv.FormatInt(at.Unix(), 10)
		return http.Header{
			"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {stamp},
			"Webhook-Signature": {"v1a,AAAA v1," + base64.StdEncoding.EncodeToString(sum(key, "msg_1."+stamp+"."+report))},
		}
	}
	without := func(h http.Header, name string) http.Header { h.Del(name); return h }
	for _, c := range []struct {
		name   string
		header http.Header
		forged bool
	}{
		{"signed", sign(key, now), false},
		{"signed four minutes ago", sign(key, now.Add(-4*time.Minute)), false},
		{"signed long ago", sign(key, now.Add(-6*time.Minute)), true},
		{"signed in times to come", sign(key, now.Add(6*time.Minute)), true},
		{"another secret", sign("another", now), true},
		{"no id", without(sign(key, now), "Webhook-Id"), true},
		{"no time", without(sign(key, now), "Webhook-Timestamp"), true},
		{"no signature", without(sign(key, now), "Webhook-Signature"), true},
	} {
		if _, err := p.ReadCallback(c.header, []byte(report)); errors.Is(err, onejob.ErrForged) != c.forged {
			t.Errorf("%s: %v; want forged %t", c.name, err, c.forged)
		}
	}
}

func TestWhatIsWrongWithASignatureIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	callback := func(s httpcall.Signature) error {
		_, err := httpcall.New(httpcall.Options{URL: "https://acme.example", Callback: &httpcall.Callback{Succeeded: "true", Signature: &s}})
		return err
	}
	for want, s := range map[string]httpcall.Signature{
		"callback.signature.secret is required": {Header: "X"},
		"callback.signature.header:":            {Secret: "s"},
		"callback.signature.algorithm:":         {Secret: "s", Header: "X", Algorithm: "md5"},
		"callback.signature.encoding:":          {Secret: "s", Header: "X", Encoding: "rot13"},
		"it is not base64":                      {Secret: "whsec_hunter2!", Algorithm: httpcall.StandardWebhooks},
		"are laid down":                         {Secret: "aGk=", Algorithm: httpcall.StandardWebhooks, Header: "X"},
	} {
		if err := callback(s); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New: %v; want %q in it, and no secret", err, want)
		}
	}
}
