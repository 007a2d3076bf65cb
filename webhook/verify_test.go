package webhook_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

// Two known answers, published with the specification and by its authors, and made
// again with Python's hmac.
var vectors = []struct {
	name, id, body, signature string
	secret                    onejob.Secret
	at                        int64
}{
	{
		name: "Specification", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: 1614265330, body: `{"test": 2432232314}`,
		signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	},
	{
		name: "Authors", secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
		id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", at: 1649367553, body: `{"email":"test@example.com","username":"test_user"}`,
		signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
	},
}

func TestKnownAnswersAreSignedAndVerified(t *testing.T) {
	t.Parallel()

	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()

			h := http.Header{}
			if err := webhook.Sign(h, webhook.SignParams{ID: v.id, At: time.Unix(v.at, 0), Body: []byte(v.body), Secrets: []onejob.Secret{v.secret}}); err != nil {
				t.Fatal(err)
			}
			if got := h.Get("webhook-signature"); got != v.signature {
				t.Errorf("signature %q; want %q", got, v.signature)
			}
			if h.Get("webhook-id") != v.id || h.Get("webhook-timestamp") != strconv.FormatInt(v.at, 10) {
				t.Errorf("headers %v", h)
			}
			id, err := webhook.Verify(webhook.VerifyParams{Secrets: []onejob.Secret{v.secret}, Header: h, Body: []byte(v.body), Now: time.Unix(v.at, 0)})
			if id != v.id || err != nil {
				t.Errorf("verified as %q, %v; want %q", id, err, v.id)
			}
		})
	}
}

var (
	older, newer = webhook.NewSecret(), webhook.NewSecret()
	signedAt     = time.Unix(1_700_000_000, 0)
)

// signed returns a genuine webhook.
func signed(t *testing.T, body string, secrets ...onejob.Secret) http.Header {
	t.Helper()
	h := http.Header{}
	if err := webhook.Sign(h, webhook.SignParams{ID: "msg_1", At: signedAt, Body: []byte(body), Secrets: secrets}); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWhileASecretIsReplacedEitherVerifies(t *testing.T) {
	t.Parallel()

	h := signed(t, "{}", newer, older)
	if n := len(strings.Fields(h.Get("webhook-signature"))); n != 2 {
		t.Errorf("%d signatures in %q; want 2", n, h.Get("webhook-signature"))
	}
	for _, secrets := range [][]onejob.Secret{{older}, {newer}, {webhook.NewSecret(), older}} {
		if _, err := webhook.Verify(webhook.VerifyParams{Secrets: secrets, Header: h, Body: []byte("{}"), Now: signedAt}); err != nil {
			t.Error(err)
		}
	}
	if _, err := webhook.Verify(webhook.VerifyParams{Secrets: []onejob.Secret{webhook.NewSecret()}, Header: h, Body: []byte("{}"), Now: signedAt}); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("with a third secret: %v; want ErrSignature", err)
	}
}

func TestWhatIsNotGenuineIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()

	set := func(name, value string) func(*webhook.VerifyParams) {
		return func(p *webhook.VerifyParams) { p.Header.Set(name, value) }
	}
	tests := []struct {
		name   string
		change func(p *webhook.VerifyParams)
		want   error
		says   string
	}{
		{"OtherBody", func(p *webhook.VerifyParams) { p.Body = []byte(`{"a":2}`) }, webhook.ErrSignature, ""},
		{"OtherID", set("webhook-id", "msg_2"), webhook.ErrSignature, ""},
		{"OtherTime", set("webhook-timestamp", "1700000001"), webhook.ErrSignature, ""},
		{"OtherVersion", func(p *webhook.VerifyParams) {
			p.Header.Set("webhook-signature", strings.Replace(p.Header.Get("webhook-signature"), "v1,", "v2,", 1))
		}, webhook.ErrSignature, ""},
		{"EmptySignature", set("webhook-signature", "v1,"), webhook.ErrSignature, ""},
		{"NoSignature", func(p *webhook.VerifyParams) { p.Header.Del("webhook-signature") }, webhook.ErrHeader, "webhook-signature is missing"},
		{"NoID", func(p *webhook.VerifyParams) { p.Header.Del("webhook-id") }, webhook.ErrHeader, "webhook-id is missing"},
		{"NoTimestamp", func(p *webhook.VerifyParams) { p.Header.Del("webhook-timestamp") }, webhook.ErrHeader, "webhook-timestamp is missing"},
		{"TwoIDs", func(p *webhook.VerifyParams) { p.Header.Add("webhook-id", "msg_2") }, webhook.ErrHeader, "webhook-id is there twice"},
		{"IDWithAFullStop", set("webhook-id", "msg_1.1"), webhook.ErrHeader, "full stop"},
		{"NotANumber", set("webhook-timestamp", "2023-11-14T22:13:20Z"), webhook.ErrHeader, "not a number of seconds"},
		{"OneSecondTooOld", func(p *webhook.VerifyParams) { p.Now = signedAt.Add(5*time.Minute + time.Second) }, webhook.ErrTimestamp, "in the past"},
		{"OneSecondTooNew", func(p *webhook.VerifyParams) { p.Now = signedAt.Add(-5*time.Minute - time.Second) }, webhook.ErrTimestamp, "in the future"},
		{"OwnTolerance", func(p *webhook.VerifyParams) { p.Now, p.Tolerance = signedAt.Add(3*time.Second), 2*time.Second }, webhook.ErrTimestamp, "2s in the past"},
		{"NowIsNow", func(p *webhook.VerifyParams) { p.Now = time.Time{} }, webhook.ErrTimestamp, "in the past"},
		{"NoSecret", func(p *webhook.VerifyParams) { p.Secrets = nil }, webhook.ErrSecret, "there is none"},
		{"EmptySecret", func(p *webhook.VerifyParams) { p.Secrets = []onejob.Secret{""} }, webhook.ErrSecret, "does not begin with whsec_"},
		{"EmptyKey", func(p *webhook.VerifyParams) { p.Secrets = []onejob.Secret{newer, "whsec_"} }, webhook.ErrSecret, "0 bytes; 24 to 64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p := webhook.VerifyParams{Secrets: []onejob.Secret{newer}, Header: signed(t, `{"a":1}`, newer), Body: []byte(`{"a":1}`), Now: signedAt}
			tt.change(&p)
			id, err := webhook.Verify(p)
			if id != "" || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, %v; want %v that says %q", id, err, tt.want, tt.says)
			}
		})
	}
}

func TestFiveMinutesEitherWayAreTolerated(t *testing.T) {
	t.Parallel()

	for _, now := range []time.Time{signedAt.Add(5 * time.Minute), signedAt.Add(-5 * time.Minute), signedAt} {
		p := webhook.VerifyParams{Secrets: []onejob.Secret{newer}, Header: signed(t, "{}", newer), Body: []byte("{}"), Now: now}
		if _, err := webhook.Verify(p); err != nil {
			t.Errorf("%s after signing: %v", now.Sub(signedAt), err)
		}
	}
}

func TestASecretThatCannotBeUsedIsRefusedWithoutBeingTold(t *testing.T) {
	t.Parallel()

	for secret, says := range map[onejob.Secret]string{
		"":                                      "does not begin with whsec_",
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw":      "does not begin with whsec_",
		"whsec_":                                "stands for 0 bytes",
		"whsec_c2hvcnQtY2FuYXJ5":                "stands for 12 bytes",
		"whsec_canary!":                         "not base64",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS": "not base64",
		onejob.Secret("whsec_" + strings.Repeat("AAAA", 22)): "stands for 66 bytes",
	} {
		err := webhook.CheckSecret(secret)
		if !errors.Is(err, webhook.ErrSecret) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "openssl rand -base64 32") {
			t.Errorf("%d bytes: %v; want %q and how to make one", len(secret), err, says)
		}
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "canary") {
			t.Errorf("the message holds the secret: %v", err)
		}
		if err := webhook.Sign(http.Header{}, webhook.SignParams{ID: "msg_1", Secrets: []onejob.Secret{newer, secret}}); !errors.Is(err, webhook.ErrSecret) {
			t.Errorf("signing with it: %v; want ErrSecret", err)
		}
	}
	if err := webhook.CheckSecret(webhook.NewSecret()); err != nil {
		t.Errorf("a new secret: %v", err)
	}
}

func TestAnIDThatCannotBeSignedSetsNothing(t *testing.T) {
	t.Parallel()

	h := http.Header{}
	if err := webhook.Sign(h, webhook.SignParams{ID: "a.b", Secrets: []onejob.Secret{newer}}); !errors.Is(err, webhook.ErrHeader) || len(h) != 0 {
		t.Errorf("got %v and headers %v; want ErrHeader and none", err, h)
	}
}
