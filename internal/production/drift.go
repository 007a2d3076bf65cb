package production

import (
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// lookEvery is how often the certificates that stand are read: to compare answers
// with, and to tell when they end. Nothing ends by what was read then alone.
const lookEvery = 15 * time.Second

// maxListed bounds how many certificates are read at once.
const maxListed = 1000

// drift is a change that an answer showed.
type drift struct {
	about  subject
	signal string // response_model, upstream_provider, server_build or system_fingerprint
	value  string
	verb   string // suspend or reverify, as the contract says
}

// maxDrifts bounds how many wait to be looked into.
const maxDrifts = 256

const (
	suspend  = "suspend"
	reverify = "reverify"
)

// signals are what an answer says of who made it, with what its change does.
func signals(terms contract.Drift, o onejob.Observed) []drift {
	return []drift{
		{signal: "response_model", value: o.Model, verb: terms.ResponseModel},
		{signal: "upstream_provider", value: o.Upstream, verb: terms.UpstreamProvider},
		{signal: "server_build", value: o.Build, verb: terms.ServerBuild},
		{signal: "system_fingerprint", value: o.Fingerprint, verb: terms.SystemFingerprint},
	}
}

// baseline is what was said of a signal when a target was verified. Empty: nothing, or
// several things.
func (d *drift) baseline(o onejob.Observed) string {
	switch d.signal {
	case "response_model":
		return o.Model
	case "upstream_provider":
		return o.Upstream
	case "server_build":
		return o.Build
	}
	return o.Fingerprint
}

// moves reports whether what an answer said is not what the certificate is about.
func (d *drift) moves(from onejob.Observed) bool {
	was := d.baseline(from)
	return (d.verb == suspend || d.verb == reverify) && d.value != "" && was != "" && d.value != was
}

// noteDrift notes what an answer shows to have changed since the certificates were
// read, and reports whether anything has. l.mu is held.
func (l *Line) noteDrift(about subject, terms contract.Drift, o onejob.Output) (noted bool) {
	c, stands := l.standing[about]
	if !stands {
		return false
	}
	said := onejob.Observed{Model: o.Model, Fingerprint: o.Fingerprint, Upstream: o.Upstream, Build: o.Build}
	for _, d := range signals(terms, said) {
		d.about = about
		if !d.moves(c.Observed) || l.moved[d] || len(l.moved) >= maxDrifts || l.noticed[d.noticeOf(&c)] {
			continue
		}
		l.moved[d] = true
		noted = true
	}
	return noted
}

// noticeOf names a change that was said of a certificate.
func (d *drift) noticeOf(c *onejob.Certificate) string {
	return c.ID + " " + d.signal + " " + d.value
}

// lookInto compares what seemed to have changed with the certificate as it is now,
// and does what the contract says.
func (l *Line) lookInto(ctx context.Context) {
	l.mu.Lock()
	moved := l.moved
	l.moved = map[drift]bool{}
	l.mu.Unlock()
	for d := range moved {
		if err := l.drifted(ctx, d); err != nil {
			l.opts.Logger.Warn("a drift is not looked into yet", "error", err)
			l.mu.Lock()
			l.moved[d] = true
			l.mu.Unlock()
		}
	}
}

func (l *Line) drifted(ctx context.Context, d drift) error {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	live, err := l.opts.Store.CertificateList(ctx, onejob.CertificateListParams{
		ContractDigest: d.about.contract, TargetDigest: d.about.target, Environment: l.opts.Environment, Live: true, Limit: 1,
	})
	if err != nil {
		return err
	}
	l.stands(d.about, live)
	if len(live) == 0 || !d.moves(live[0].Observed) {
		return nil
	}
	c := &live[0]
	detail := fmt.Sprintf("%s changed from %q to %q", d.signal, d.baseline(c.Observed), clip(d.value))
	if d.verb == reverify {
		l.askAgain(c, &d, detail)
		return nil
	}
	ended, err := l.opts.Store.CertificateEnd(ctx, onejob.CertificateEndParams{
		ID: c.ID, Status: onejob.CertificateSuspended, Reason: onejob.GateSuspendedDrift, Detail: detail,
	})
	if err == nil {
		l.stands(d.about, nil)
	}
	l.ended(ended)
	return err
}

// stands notes which certificate stands, if one does.
func (l *Line) stands(about subject, live []onejob.Certificate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.standing, about)
	if len(live) > 0 {
		l.standing[about] = live[0]
	}
}

// askAgain asks people, once, to verify a target again.
func (l *Line) askAgain(c *onejob.Certificate, d *drift, detail string) {
	l.mu.Lock()
	known := l.noticed[d.noticeOf(c)]
	l.notice(d.noticeOf(c))
	l.mu.Unlock()
	if known {
		return
	}
	l.opts.Observer.ReverificationAsked(c.Kind, c.TargetName, d.signal)
	l.opts.Logger.Warn("a target is to be verified again", "certificate", c.ID, "kind", c.Kind, "target", c.TargetName, "detail", detail)
}

// maxNotices bounds what is remembered of what was said. Saying it again is no harm.
const maxNotices = 4096

// notice remembers that something was said. l.mu is held.
func (l *Line) notice(what string) {
	if len(l.noticed) >= maxNotices {
		clear(l.noticed)
	}
	l.noticed[what] = true
}

// look reads the certificates that stand, and says which are due for renewal.
func (l *Line) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	live, err := l.opts.Store.CertificateList(ctx, onejob.CertificateListParams{Environment: l.opts.Environment, Live: true, Limit: maxListed})
	if err != nil {
		l.opts.Logger.Warn("certificates cannot be read", "error", err)
		return
	}
	now := l.opts.NowFunc()
	standing := make(map[subject]onejob.Certificate, len(live))
	for i := range live {
		c := &live[i]
		standing[subject{c.ContractDigest, c.TargetDigest}] = *c
		if !c.RenewAt.IsZero() && !now.Before(c.RenewAt) {
			l.remind(c)
		}
	}
	l.mu.Lock()
	l.standing = standing
	l.mu.Unlock()
	l.opts.Observer.CertificatesStand(live)
}

// remind says once that a certificate is due for renewal: one that ends when an outage
// begins cannot be renewed at a target that is down.
func (l *Line) remind(c *onejob.Certificate) {
	l.mu.Lock()
	what := "renew " + c.ID + c.ExpiresAt.String()
	known := l.noticed[what]
	l.notice(what)
	l.mu.Unlock()
	if !known {
		l.opts.Logger.Warn("half of a certificate's life is over; verify the target again", "certificate", c.ID, "kind", c.Kind, "target", c.TargetName, "expires_at", c.ExpiresAt)
	}
}

// maxShown bounds what is shown of a value that somebody else chose.
const maxShown = 120

func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown] + "…"
}
