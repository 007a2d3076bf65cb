package cli

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/webhook"
)

// newSender makes what tells endpoints that jobs have ended.
func (s *server) newSender(signals *onejob.Signals, observer webhook.Observer, lookedFor bool) (*webhook.Sender, error) {
	return webhook.New(s.store, webhook.Options{
		Endpoints: s.cfg.WebhookEndpoints(), Allow: s.cfg.AllowedNetworks(), BodyFunc: httpapi.WebhookBody,
		Timeout: time.Duration(s.cfg.Webhooks.Timeout), Schedule: s.cfg.WebhookSchedule(),
		Signals: signals, LookedFor: lookedFor, Logger: s.log, Observer: observer,
	})
}

// endpointIDs are those of the configured endpoints.
func endpointIDs(cfg *config.Config) (ids []string) {
	endpoints := cfg.WebhookEndpoints()
	for i := range endpoints {
		ids = append(ids, endpoints[i].ID())
	}
	return ids
}

// warnOfDisabledEndpoints says which of the configured endpoints are sent nothing.
func (s *server) warnOfDisabledEndpoints(ctx context.Context) {
	disabled, err := s.store.EndpointDisabled(ctx)
	if err != nil {
		s.log.Warn("it is not known which webhook endpoints are disabled", "err", err)
		return
	}
	endpoints := s.cfg.WebhookEndpoints()
	for _, d := range disabled {
		for i := range endpoints {
			if e := &endpoints[i]; e.ID() == d.ID {
				s.log.Warn("a webhook endpoint is disabled and is sent nothing; let it go on with: onejob webhooks enable "+d.ID,
					"endpoint", d.ID, "host", e.Host(), "owner", e.Owner, "reason", d.Reason, "since", d.Since)
			}
		}
	}
}
