package httpcall

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// Algorithm is a way in which providers sign what they report.
type Algorithm string

const (
	// HMACSHA256 signs the body.
	HMACSHA256 Algorithm = "hmac-sha256"
	// StandardWebhooks signs an id, a time and the body, as standardwebhooks.com
	// lays down. The header is webhook-signature, and the encoding its own.
	StandardWebhooks Algorithm = "standard-webhooks"
)

// Signature says how a provider signs its reports.
type Signature struct {
	Algorithm Algorithm     // empty: [HMACSHA256]
	Secret    onejob.Secret // required; of StandardWebhooks base64, with or without whsec_
	// OldSecret is taken as well, while the provider still signs with it. Empty: none.
	OldSecret onejob.Secret

	Header   string // of HMACSHA256: carries the signature; required
	Encoding string // of HMACSHA256: hex or base64. Empty: hex
	Prefix   string // of HMACSHA256: stands before it, as in "sha256="
}

// signedWithin is how far the time of a signed report may lie from ours.
const signedWithin = 5 * time.Minute

// The headers of standard webhooks.
const (
	webhookID        = "Webhook-Id"
	webhookTimestamp = "Webhook-Timestamp"
	webhookSignature = "Webhook-Signature"
)

// verifier holds reports to a signature.
type verifier struct {
	Signature
	keys    [][]byte
	nowFunc func() time.Time
}

// newVerifier returns all that is wrong with s at once.
func newVerifier(s Signature, nowFunc func() time.Time) (*verifier, error) {
	if s.Algorithm == "" {
		s.Algorithm = HMACSHA256
	}
	if s.Encoding == "" {
		s.Encoding = "hex"
	}
	if nowFunc == nil {
		nowFunc = time.Now
	}
	v := &verifier{Signature: s, nowFunc: nowFunc}
	errs := []error{s.check()}
	for _, secret := range []onejob.Secret{s.Secret, s.OldSecret} {
		if secret == "" {
			continue
		}
		key, err := s.key(secret)
		errs, v.keys = append(errs, err), append(v.keys, key)
	}
	return v, errors.Join(errs...)
}

func (s *Signature) check() error {
	var c collector
	c.check(s.Secret != "", "secret is required")
	c.check(s.Algorithm == HMACSHA256 || s.Algorithm == StandardWebhooks, "algorithm: %q is neither %s nor %s", s.Algorithm, HMACSHA256, StandardWebhooks)
	c.check(s.Encoding == "hex" || s.Encoding == "base64", "encoding: %q is neither hex nor base64", s.Encoding)
	if s.Algorithm == StandardWebhooks {
		c.check(s.Header == "" && s.Prefix == "" && s.Encoding == "hex", "header, prefix and encoding are laid down by %s: leave them out", StandardWebhooks)
		return errors.Join(c.errs...)
	}
	c.check(isToken(s.Header), "header: %q is no header name", s.Header)
	return errors.Join(c.errs...)
}

// key is what the secret signs with.
func (s *Signature) key(secret onejob.Secret) ([]byte, error) {
	if s.Algorithm != StandardWebhooks {
		return []byte(secret.Reveal()), nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("secret: it is not base64, with or without whsec_ before it")
	}
	return key, nil
}

// verify returns [onejob.ErrForged] unless the report is signed, in a time that does
// not tell how far a forged signature was right.
func (v *verifier) verify(header http.Header, body []byte) error {
	if v.Algorithm == StandardWebhooks {
		return v.verifyStandard(header, body)
	}
	text, prefixed := strings.CutPrefix(header.Get(v.Header), v.Prefix)
	given, err := v.decode(text)
	if !prefixed || err != nil || !v.signs(given, body) {
		return onejob.ErrForged
	}
	return nil
}

func (v *verifier) decode(text string) ([]byte, error) {
	if v.Encoding == "base64" {
		return base64.StdEncoding.DecodeString(text)
	}
	return hex.DecodeString(text)
}

// verifyStandard takes any of the signatures in the header: there are several while
// the provider changes its secret.
func (v *verifier) verifyStandard(header http.Header, body []byte) error {
	id, stamp := header.Get(webhookID), header.Get(webhookTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil || v.nowFunc().Sub(time.Unix(seconds, 0)).Abs() > signedWithin {
		return onejob.ErrForged
	}
	signed := bytes.Join([][]byte{[]byte(id), []byte(stamp), body}, []byte("."))
	for _, one := range strings.Fields(header.Get(webhookSignature)) {
		text, ours := strings.CutPrefix(one, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		if ours && err == nil && v.signs(given, signed) {
			return nil
		}
	}
	return onejob.ErrForged
}

// signs reports whether one of the keys makes the signature.
func (v *verifier) signs(given, signed []byte) bool {
	good := false
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(signed) // never fails
		good = hmac.Equal(given, mac.Sum(nil)) || good
	}
	return good
}

// signature compiles how reports are signed.
func (c *collector) signature(s *Signature, nowFunc func() time.Time) *verifier {
	if s == nil {
		return nil
	}
	v, err := newVerifier(*s, nowFunc)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			c.add(fmt.Errorf("callback.signature.%s", strings.TrimSpace(line)))
		}
	}
	return v
}
