package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

// Webhooks says who is told when a job ends.
type Webhooks struct {
	Allow     []string          `yaml:"allow" doc:"Networks that webhooks may go to besides public addresses, by plain http too, as in [10.0.0.0/8]. Public addresses are reached by https alone."`
	Timeout   Duration          `yaml:"timeout" default:"15s" min:"100ms" max:"60s" doc:"How long an endpoint may take to answer."`
	Schedule  []Duration        `yaml:"schedule" doc:"The pauses between tries, each longer or shorter by up to a fifth; after the last a webhook is given up. Absent: 5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h."`
	Endpoints []WebhookEndpoint `yaml:"endpoints" doc:"Where webhooks are sent."`
}

// WebhookEndpoint is where webhooks are sent, and who is told what there.
type WebhookEndpoint struct {
	URL            string         `yaml:"url" required:"true" doc:"Where they are sent by POST. An https URL, or http to a network of webhooks.allow."`
	Secret         Secret         `yaml:"secret" required:"true" doc:"What they are signed with: whsec_ and the base64 of 24 to 64 bytes, as from echo whsec_$(openssl rand -base64 32)."`
	PreviousSecret Secret         `yaml:"previous_secret" doc:"Signs them too, while the receiver changes over to secret."`
	Owner          string         `yaml:"owner" doc:"Whose jobs it is told about, those of its sub-owners included. Absent: every owner's."`
	Events         []WebhookEvent `yaml:"events" doc:"What it is told besides the end of a job."`
}

// WebhookEvent is an event that an endpoint may ask for.
type WebhookEvent string

// askableEvents are those that not every endpoint is told.
func askableEvents() []string {
	var names []string
	for _, e := range onejob.WebhookEvents() {
		if !e.Terminal() {
			names = append(names, string(e))
		}
	}
	return names
}

func (e *WebhookEvent) parse(_ *decoder, text string) error {
	*e = WebhookEvent(text)
	switch {
	case onejob.WebhookEvent(text).Terminal():
		return fmt.Errorf("every endpoint is told of %s; leave it out", text)
	case !slices.Contains(askableEvents(), text):
		return fmt.Errorf("there is no event %q%s", text, Suggest(text, askableEvents()))
	}
	return nil
}

// Bounds of what one job may have to tell.
const (
	maxEndpoints = 1000
	maxPerOwner  = 10
	maxPauses    = 100
	maxPause     = Duration(7 * 24 * time.Hour)
)

func (w *Webhooks) check(d *decoder, path string) {
	guard, err := webhook.NewGuard(w.allowed(d, path+".allow"))
	if err != nil {
		d.fault(path+".allow", err.Error())
		guard = &webhook.Guard{}
	}
	if len(w.Schedule) > maxPauses {
		d.fault(path+".schedule", fmt.Sprintf("it has %d pauses; at most %d are kept", len(w.Schedule), maxPauses))
	}
	for i, pause := range w.Schedule {
		if at := fmt.Sprintf("%s.schedule[%d]", path, i); !d.faulty(at) && (pause <= 0 || pause > maxPause) {
			d.fault(at, fmt.Sprintf("a pause is more than nothing and at most %s", maxPause))
		}
	}
	if len(w.Endpoints) > maxEndpoints {
		d.fault(path+".endpoints", fmt.Sprintf("there are %d; at most %d can be", len(w.Endpoints), maxEndpoints))
		return
	}
	w.checkEndpoints(d, path+".endpoints", guard)
}

// allowed returns the networks that are readable.
func (w *Webhooks) allowed(d *decoder, path string) []netip.Prefix {
	var prefixes []netip.Prefix
	for i, text := range w.Allow {
		at := fmt.Sprintf("%s[%d]", path, i)
		if d.faulty(at) {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			d.fault(at, fmt.Sprintf("%q is not a network; write one like 10.0.0.0/8, 127.0.0.1/32 or fd00::/8", text))
			continue
		}
		prefixes = append(prefixes, p)
	}
	return prefixes
}

func (w *Webhooks) checkEndpoints(d *decoder, path string, guard *webhook.Guard) {
	seen, perOwner := map[string]int{}, map[string]int{}
	for i := range w.Endpoints {
		e, at := &w.Endpoints[i], fmt.Sprintf("%s[%d]", path, i)
		e.check(d, at, guard)
		id := webhook.EndpointID(e.Owner, e.URL)
		if first, twice := seen[id]; twice && e.URL != "" {
			d.fault(at+".url", fmt.Sprintf("it is there already for the same owner, as %s[%d]", path, first))
		}
		seen[id] = i
		if perOwner[e.Owner]++; perOwner[e.Owner] == maxPerOwner+1 {
			d.fault(at, fmt.Sprintf("it is the owner's %dth; at most %d can be", maxPerOwner+1, maxPerOwner))
		}
	}
}

// ownerForm is an owner's name, or parent/sub.
var ownerForm = regexp.MustCompile(`^[!-.0-~]{1,128}(/[!-.0-~]{1,128})?$`)

func (e *WebhookEndpoint) check(d *decoder, path string, guard *webhook.Guard) {
	if e.URL != "" && !d.faulty(path+".url") {
		if err := guard.CheckURL(e.URL); err != nil {
			message := err.Error()
			if errors.Is(err, webhook.ErrAddress) {
				message += "; networks are allowed by webhooks.allow"
			}
			d.fault(path+".url", message)
		}
	}
	if e.Secret.Written != "" && !d.faulty(path+".secret") {
		checkWebhookSecret(d, path+".secret", e.Secret)
	}
	if e.PreviousSecret.Written != "" && !d.faulty(path+".previous_secret") {
		checkWebhookSecret(d, path+".previous_secret", e.PreviousSecret)
	}
	if e.Owner != "" && !ownerForm.MatchString(e.Owner) {
		d.fault(path+".owner", "an owner is 1 to 128 printable ASCII characters without spaces, or parent/sub")
	}
	for i, event := range e.Events {
		if slices.Contains(e.Events[:i], event) {
			d.fault(fmt.Sprintf("%s.events[%d]", path, i), fmt.Sprintf("%s is there twice", event))
		}
	}
}

func checkWebhookSecret(d *decoder, path string, s Secret) {
	if err := webhook.CheckSecret(s.Value); err != nil {
		d.fault(path, strings.TrimPrefix(err.Error(), webhook.ErrSecret.Error()+": "))
	}
}

// AllowedNetworks are those that webhooks may go to besides public addresses.
func (c *Config) AllowedNetworks() []netip.Prefix {
	return c.Webhooks.allowed(newDecoder("", nil), "webhooks.allow") // checked when it was loaded
}

// WebhookEndpoints are the endpoints as a sender takes them.
func (c *Config) WebhookEndpoints() []webhook.Endpoint {
	endpoints := make([]webhook.Endpoint, len(c.Webhooks.Endpoints))
	for i := range c.Webhooks.Endpoints {
		e := &c.Webhooks.Endpoints[i]
		endpoints[i] = webhook.Endpoint{URL: e.URL, Secret: e.Secret.Value, PreviousSecret: e.PreviousSecret.Value, Owner: e.Owner}
		for _, event := range e.Events {
			endpoints[i].Events = append(endpoints[i].Events, onejob.WebhookEvent(event))
		}
	}
	return endpoints
}

// WebhookSchedule are the pauses between tries. Nil: the sender's own.
func (c *Config) WebhookSchedule() []time.Duration {
	var pauses []time.Duration
	for _, pause := range c.Webhooks.Schedule {
		pauses = append(pauses, time.Duration(pause))
	}
	return pauses
}

// SubscribeFunc finds the endpoints that are told about a new job.
func (c *Config) SubscribeFunc() func(owner, url string) ([]onejob.Subscription, *onejob.Error) {
	return webhook.SubscribeFunc(c.WebhookEndpoints())
}
