package onejob

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential. However it is printed, logged or encoded it reads
// "[redacted]"; only [Secret.Reveal] tells it. Do not use it as a map key:
// encoding/json writes string keys as they are.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return redacted }

// Format hides the secret from every verb of package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the secret from package slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText hides the secret from YAML and other encoders of text.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
