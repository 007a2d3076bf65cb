package config

import (
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
)

// check finds what is wrong with settings together, and fills in the defaults
// that depend on others.
func (c *Config) check(d *decoder) {
	c.checkServer(d)
	c.Webhooks.check(d, "webhooks")
	for _, name := range sortedKeys(c.File.Targets) {
		target := c.File.Targets[name]
		c.checkTarget(d, "targets."+name, &target)
		c.warnOfTarget(name, &target)
	}
	used := map[string]bool{}
	for _, name := range sortedKeys(c.File.Kinds) {
		kind := c.File.Kinds[name]
		kind.check(d, "kinds."+name, sortedKeys(c.File.Targets))
		c.File.Kinds[name] = kind
		c.warnOfKind(name, &kind)
		for _, t := range kind.Targets {
			used[t] = true
		}
	}
	for _, name := range sortedKeys(c.File.Targets) {
		target := c.File.Targets[name]
		callable := target.api() != "" // a front door takes its name for a model
		if !used[name] && !callable && len(c.File.Kinds) > 0 {
			c.warn("targets.%s: no kind uses it", name)
		}
	}
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

func (c *Config) warnOfKind(name string, k *Kind) {
	if len(k.Targets) > 1 && k.Failover.Mode == onejob.FailoverCertified && k.Contract == "" {
		c.warn("kinds.%s: failover is certified and there is no contract to be certified for, so a job stays at its first target; name a contract, or say {declared: \"<why>\"} or never", name)
	}
	if k.Race.After > 0 && k.Contract == "" {
		c.warn("kinds.%s: a racing lane starts only at a certified target, and there is no contract to be certified for, so none starts; declared stands in for the certificate of a fallback alone", name)
	}
	for _, target := range k.Targets {
		if t := c.File.Targets[target]; t.Worker != nil && k.Race.After > 0 {
			c.warn("kinds.%s: workers pull %s, so no race starts beside its attempts, and none there", name, target)
		}
	}
}

const minSecretBytes = 16

func (c *Config) checkServer(d *decoder) {
	if !d.faulty("listen") {
		if err := checkListen(c.Listen); err != nil {
			d.fault("listen", err.Error())
		}
	}
	checkURL(d, "public_url", c.PublicURL)
	if !d.faulty("environment") && !nameForm.MatchString(c.Environment) {
		d.fault("environment", quote(c.Environment)+" is not a name: use letters, digits, _, . and -, at most 100")
	}
	if !d.faulty("store") {
		if _, err := ParseStore(c.Store.Value.Reveal()); err != nil {
			d.fault("store", err.Error())
		}
	}
	if store, err := ParseStore(c.Store.Value.Reveal()); err == nil && store.SQLite != "" && c.Durability == "replicated" {
		d.fault("durability", "replicated needs PostgreSQL; the store is SQLite")
	}
	if n := len(c.File.Secret.Value); n > 0 && n < minSecretBytes {
		d.fault("secret", fmt.Sprintf("it has %d bytes; at least %d are needed, for example from openssl rand -hex 32", n, minSecretBytes))
	}
	if jobs, keys := c.Retention.Jobs, c.Retention.Keys; keys != 0 && (jobs == 0 || jobs > keys) && !d.faulty("retention") {
		d.fault("retention.keys", fmt.Sprintf("it is less than retention.jobs (%s)", jobs))
	}
}

func checkListen(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not host:port, as in 127.0.0.1:4545", listen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port, 0 to 65535", port)
	}
	return nil
}

// check finds what is wrong with a kind, given the names of the targets.
func (k *Kind) check(d *decoder, path string, targets []string) {
	for i, name := range k.Targets {
		at := fmt.Sprintf("%s.targets[%d]", path, i)
		switch {
		case d.faulty(at):
		case !slices.Contains(targets, name) && len(targets) == 0:
			d.fault(at, fmt.Sprintf("there is no target %q; none is declared", name))
		case !slices.Contains(targets, name):
			d.fault(at, fmt.Sprintf("there is no target %q%s", name, Suggest(name, targets)))
		case slices.Contains(k.Targets[:i], name):
			d.fault(at, fmt.Sprintf("target %q is there twice", name))
		}
	}
	if k.Failover.Mode == "" {
		k.Failover.Mode = onejob.FailoverCertified
	}
	if d.places[path+".send_within"] == nil {
		k.SendWithin = min(k.SendWithin, k.Timeout)
	} else if k.SendWithin > k.Timeout {
		d.fault(path+".send_within", fmt.Sprintf("it is longer than timeout (%s)", k.Timeout))
	}
	k.checkRace(d, path+".race")
	if k.FrontDoor.RequireKey && k.FrontDoor.TakeOver {
		d.fault(path+".front_door.take_over", "require_key leaves no call without a key that could take over")
	}
	if d.places[path+".backoff.max"] == nil {
		k.Backoff.Max = max(k.Backoff.Max, k.Backoff.Initial)
	}
	if d.faulty(path) {
		return
	}
	if _, err := k.policy().WithDefaults(); err != nil {
		d.faultsOf(err, path)
	}
}

// checkRace finds races that could never start.
func (k *Kind) checkRace(d *decoder, path string) {
	r := &k.Race
	if d.places[path] == nil || d.faulty(path) {
		return
	}
	switch {
	case k.Effect != onejob.EffectNone:
		d.fault(path, "only effect none may be raced: both lanes do the work")
	case len(k.Targets) < r.Lanes:
		d.fault(path, fmt.Sprintf("%d lanes need %d targets", r.Lanes, r.Lanes))
	case k.Failover.Mode == onejob.FailoverNever:
		d.fault(path, "failover is never, which keeps a job at its first target")
	case r.After >= k.Timeout:
		d.fault(path+".after", fmt.Sprintf("it is not less than timeout (%s)", k.Timeout))
	}
}

// lanes is how many attempts may be in doubt at once.
func (k *Kind) lanes() int {
	if k.Race.After == 0 {
		return 1
	}
	return k.Race.Lanes
}

// faultsOf notes what another package finds wrong with what is at path, each of
// its lines at the key that it begins with, if it does.
func (d *decoder) faultsOf(err error, path string) {
	var invalid *onejob.Error
	if errors.As(err, &invalid) && invalid.Err != nil {
		err = invalid.Err // without its code, which is for callers of the API
	}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		key, message, found := strings.Cut(line, ": ")
		switch {
		case found && d.places[path+"."+key] != nil:
			d.fault(path+"."+key, message)
		case found && d.places[path+".request."+key] != nil:
			d.fault(path+".request."+key, message)
		default:
			d.fault(path, line)
		}
	}
}

// policy returns what the kind says, in the domain's terms.
func (k *Kind) policy() onejob.Policy {
	return onejob.Policy{
		Effect: k.Effect, Targets: slices.Clone(k.Targets), Lanes: k.lanes(), RaceAfter: time.Duration(k.Race.After),
		Timeout: time.Duration(k.Timeout), Linger: time.Duration(k.Linger), SendWithin: time.Duration(k.SendWithin),
		MaxAttempts: k.MaxAttempts, PerTarget: k.PerTarget,
		Backoff:  onejob.Backoff{Initial: time.Duration(k.Backoff.Initial), Max: time.Duration(k.Backoff.Max)},
		Deadline: time.Duration(k.Deadline), AskAfter: time.Duration(k.Unknown.AskAfter),
		Failover: k.Failover.Mode, FailoverWhy: k.Failover.Why,
	}
}

func (c *Config) checkTarget(d *decoder, path string, t *Target) {
	switch {
	case t.HTTP != nil:
		t.HTTP.check(d, path)
		t.HTTP.checkAsynchronous(d, path, c.PublicURL)
	case t.OpenAI != nil:
		t.OpenAI.check(d, path)
	case t.Anthropic != nil:
		checkURL(d, path+".base_url", t.Anthropic.BaseURL)
	}
	t.Model().check(d, path)
	if t.variant() == nil || t.Worker != nil || d.faulty(path) {
		return
	}
	provider, err := c.provider(t, nil)
	if err != nil {
		d.faultsOf(err, path)
		return
	}
	if p, ok := provider.(*httpcall.Provider); ok && p.UsesAttempt() && t.HTTP.IdempotencyHeader != "" {
		d.fault(path+".request.body", "a template that uses attempt.* sends other bytes with every attempt under the same key: take it out, or take idempotency_header out")
	}
}

// These find a name between the braces of a template.
var (
	usesCallback = regexp.MustCompile(`(?s)\{[{%][^}]*?\bcallback_url\b`)
	usesKey      = regexp.MustCompile(`(?s)\{[{%][^}]*?\bprovider_key\b`)
)

func (t *HTTPTarget) check(d *decoder, path string) {
	checkURL(d, path+".request.url", t.Request.URL)
	if t.IdempotencyHeader != "" && !headerForm.MatchString(t.IdempotencyHeader) {
		d.fault(path+".idempotency_header", fmt.Sprintf("%q is not a header's name", t.IdempotencyHeader))
	}
	for _, name := range sortedKeys(t.Request.Headers) {
		t.checkHeader(d, path, name)
	}
}

var headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// ownHeaders are set by the connection, not by the configuration.
var ownHeaders = []string{"Content-Length", "Transfer-Encoding", "Connection", "Host", "Te", "Trailer", "Upgrade", "Expect"}

func (t *HTTPTarget) checkHeader(d *decoder, path, name string) {
	at := path + ".request.headers." + name
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !headerForm.MatchString(name):
		d.fault(at, fmt.Sprintf("%q is not a header's name", name))
	case slices.Contains(ownHeaders, canonical):
		d.fault(at, canonical+" cannot be set")
	case t.IdempotencyHeader != "" && canonical == textproto.CanonicalMIMEHeaderKey(t.IdempotencyHeader):
		d.fault(at, "it is the idempotency_header already; a constant key would make every job the same one")
	case strings.ContainsAny(t.Request.Headers[name].Value.Reveal(), "\r\n\x00"):
		d.fault(at, "its value holds a line break")
	}
}

// checkURL refuses what is no absolute URL, and credentials in one, which would
// be printed.
func checkURL(d *decoder, path, text string) {
	if d.faulty(path) || text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		d.fault(path, "it is not an absolute http or https URL")
	case u.User != nil:
		d.fault(path, "it holds credentials; send them in a header, as ${env:NAME}")
	case u.Fragment != "":
		d.fault(path, "it has a fragment, which is never sent")
	}
}
