package onejob_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestSecretIsRedactedHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123"
	type holder struct {
		Key    onejob.Secret
		Nested *onejob.Secret
		List   []onejob.Secret
	}
	s := onejob.Secret(canary)
	h := holder{Key: s, Nested: &s, List: []onejob.Secret{s}}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%10.3s"} {
		for _, value := range []any{s, h, []onejob.Secret{s}} {
			hold(t, verb, fmt.Sprintf(verb, value))
		}
	}
	hold(t, "Print", fmt.Sprint(s, h.List))
	hold(t, "concatenated String", "key "+s.String())

	asJSON, err := json.Marshal(h)
	hold(t, "json", string(asJSON), err)
	asXML, err := xml.Marshal(s)
	hold(t, "xml", string(asXML), err)

	for _, handler := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var log bytes.Buffer
		slog.New(handler(&log)).Info("configured", "key", s, "holder", h)
		hold(t, "slog", log.String())
	}
	if got := s.Reveal(); got != canary {
		t.Errorf("Reveal() = %q, want %q", got, canary)
	}
}

// hold fails the test unless text is redacted.
func hold(t *testing.T, how, text string, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	if !strings.Contains(text, "[redacted]") {
		t.Errorf("%s wrote %q, want [redacted] in it", how, text)
	}
	for _, leak := range []string{"canary", "0123", fmt.Sprintf("%x", "canary")} {
		if strings.Contains(strings.ToLower(text), leak) {
			t.Errorf("%s leaked the secret: %q", how, text)
		}
	}
}
