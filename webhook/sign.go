package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/onejob-dev/onejob"
)

// The headers that a webhook carries.
const (
	HeaderID        = standardwebhooks.HeaderWebhookID
	HeaderTimestamp = standardwebhooks.HeaderWebhookTimestamp
	HeaderSignature = standardwebhooks.HeaderWebhookSignature
)

// SignParams is what is signed, and with what.
type SignParams struct {
	ID   string // the same for every delivery of one webhook; without a full stop
	At   time.Time
	Body []byte
	// Secrets to sign with: at least one, and two while one replaces the other, so
	// that a receiver may change over whenever it likes.
	Secrets []onejob.Secret
}

// Sign sets the three headers of a webhook, with one signature for each secret. It
// returns [ErrSecret], and [ErrHeader] for an id that cannot be signed; then nothing
// is set.
func Sign(header http.Header, p SignParams) error {
	keys, err := keysOf(p.Secrets)
	if err != nil {
		return err
	}
	if err := checkID(p.ID); err != nil {
		return err
	}
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signer, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return err
		}
		if signatures[i], err = signer.Sign(p.ID, p.At, p.Body); err != nil {
			return err
		}
	}
	header.Set(HeaderID, p.ID)
	header.Set(HeaderTimestamp, strconv.FormatInt(p.At.Unix(), 10))
	header.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}
