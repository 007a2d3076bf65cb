package webhook

import (
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Endpoint is where webhooks are sent, and who is told what there.
type Endpoint struct {
	URL string
	// Secret signs what is sent; see [NewSecret].
	Secret onejob.Secret
	// PreviousSecret signs it too, while receivers change over. Empty: there is none.
	PreviousSecret onejob.Secret
	// Owner whose jobs it is told about, those of its sub-owners included. Empty:
	// every owner's.
	Owner string
	// Events beyond the end of a job, which it is always told.
	Events []onejob.WebhookEvent
}

// ID returns the endpoint's id: see [EndpointID].
func (e *Endpoint) ID() string { return EndpointID(e.Owner, e.URL) }

const (
	endpointPrefix = "ep_"
	endpointChars  = 20
)

// EndpointID returns the id of an owner's endpoint: the same wherever and whenever it
// is asked for, whatever secret the endpoint has.
func EndpointID(owner, url string) string {
	sum := sha256.Sum256([]byte("onejob webhook endpoint v1\x00" + owner + "\x00" + url))
	return endpointPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:endpointChars]
}

// Host is as much of the endpoint's URL as may be logged: its path and its query may
// hold a secret.
func (e *Endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "an unreadable URL"
	}
	return u.Host
}

// serves reports whether the endpoint is told about the jobs of an owner.
func (e *Endpoint) serves(owner string) bool {
	return e.Owner == "" || e.Owner == owner || strings.HasPrefix(owner, e.Owner+"/")
}

func (e *Endpoint) subscription() onejob.Subscription {
	return onejob.Subscription{Endpoint: e.ID(), Events: slices.Clone(e.Events)}
}

// SubscribeFunc returns what [onejob.Options] takes to pin the endpoints that are
// told about a job. Of several at one URL, a job that names it has the one whose
// owner is nearest.
func SubscribeFunc(endpoints []Endpoint) func(owner, url string) ([]onejob.Subscription, *onejob.Error) {
	endpoints = slices.Clone(endpoints)
	slices.SortStableFunc(endpoints, func(a, b Endpoint) int { return len(b.Owner) - len(a.Owner) })
	return func(owner, url string) ([]onejob.Subscription, *onejob.Error) {
		var told []onejob.Subscription
		for i := range endpoints {
			switch e := &endpoints[i]; {
			case !e.serves(owner):
			case url == "":
				told = append(told, e.subscription())
			case url == e.URL:
				return []onejob.Subscription{e.subscription()}, nil
			}
		}
		if url != "" {
			return nil, notRegistered()
		}
		return told, nil
	}
}

// notRegistered says nothing of what others have registered.
func notRegistered() *onejob.Error {
	return &onejob.Error{
		Code:    onejob.CodeInvalidJob,
		Message: "webhook.url is not an endpoint that is registered for you; whoever runs this server registers endpoints, in its configuration under webhooks.endpoints",
	}
}
