// Package certify answers who may stand in for whom under the contracts and targets
// that there are, has targets verified, and takes people's word down. It is what the
// doors and the commands know of certificates.
package certify

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/verification"
)

// Kind is a kind of job with its contract.
type Kind struct {
	Policy   onejob.Policy // Contract is what new jobs pin
	Contract *contract.Contract
}

// Options makes an [Office].
type Options struct {
	Store       onejob.CertificateStore
	Environment string                         // empty: [onejob.DefaultEnvironment]
	Kinds       map[string]Kind                // those with a contract
	Targets     map[string]verification.Target // those that can be called
	Digests     map[string]string              // of all targets
	Tool        string                         // version of the program
	Logger      *slog.Logger                   // nil: discards
	NowFunc     func() time.Time               // nil: [time.Now]
	// CallTimeout bounds one call of a verification. Zero: as the package does.
	CallTimeout time.Duration
	// RenewEvery is how often certificates are looked at that may be due for renewal.
	// Zero: every ten minutes.
	RenewEvery time.Duration
}

// Office is safe for concurrent use.
type Office struct {
	opts Options

	mu   sync.Mutex
	busy map[string]bool // targets being verified
	all  sync.WaitGroup  // verifications in the background
	life context.Context
	stop context.CancelFunc
}

// New returns an office.
func New(opts Options) *Office {
	if opts.Environment == "" {
		opts.Environment = onejob.DefaultEnvironment
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.NowFunc == nil {
		opts.NowFunc = time.Now
	}
	if opts.RenewEvery == 0 {
		opts.RenewEvery = defaultRenewEvery
	}
	o := &Office{opts: opts, busy: map[string]bool{}}
	o.life, o.stop = context.WithCancel(context.Background())
	return o
}

// Close ends what is under way in the background: those verifications are
// inconclusive.
func (o *Office) Close() {
	o.stop()
	o.all.Wait()
}

// kind returns a kind that has a contract.
func (o *Office) kind(name string) (Kind, error) {
	k, known := o.opts.Kinds[name]
	if !known {
		return k, &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("no kind %q has a contract; there is %s", name, strings.Join(slices.Sorted(maps.Keys(o.opts.Kinds)), ", "))}
	}
	return k, nil
}

// target checks that a kind has a target.
func (k Kind) target(name string) error {
	if !slices.Contains(k.Policy.Targets, name) {
		return &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("kind %q has no target %q; it has %s", k.Contract.Kind, name, strings.Join(k.Policy.Targets, ", "))}
	}
	return nil
}

// Contract is a contract as it is now.
type Contract struct {
	Kind          string   `json:"kind"`
	Digest        string   `json:"digest" doc:"Of the part that evidence is about"`
	Environment   string   `json:"environment" doc:"What certificates are issued for here"`
	Targets       []string `json:"targets" nullable:"false" doc:"In the order of fallback"`
	Cases         int      `json:"cases"`
	SideEffects   string   `json:"side_effects"`
	Automatic     bool     `json:"automatic" doc:"Whether a certified target takes over without being asked"`
	OnUncertified string   `json:"on_uncertified" doc:"What becomes of a job that needs a target without a certificate: hold, fail or manual"`
	Pair          bool     `json:"pair" doc:"A fallback must also agree with the primary"`
}

// Contracts lists the contracts by kind.
func (o *Office) Contracts() []Contract {
	list := make([]Contract, 0, len(o.opts.Kinds))
	for _, name := range slices.Sorted(maps.Keys(o.opts.Kinds)) {
		k := o.opts.Kinds[name]
		list = append(list, Contract{
			Kind: name, Digest: k.Policy.Contract.Digest, Environment: o.opts.Environment, Targets: k.Policy.Targets,
			Cases: len(k.Contract.CaseList), SideEffects: k.Contract.SideEffects, Automatic: k.Contract.Failover.Automatic,
			OnUncertified: k.Contract.Failover.OnUncertified, Pair: k.Contract.Equivalence != nil,
		})
	}
	return list
}

// Standing is where one target stands with a kind.
type Standing struct {
	Target       string    `json:"target"`
	TargetDigest string    `json:"target_digest"`
	Primary      bool      `json:"primary" doc:"It stands in for nobody, and needs no certificate"`
	Allowed      bool      `json:"allowed" doc:"Whether it may take over"`
	Automatic    bool      `json:"automatic" doc:"Whether it does so by itself"`
	Reason       string    `json:"reason,omitzero" doc:"Why it may not, or not by itself"`
	Certificate  string    `json:"certificate,omitzero" doc:"What was judged"`
	Waiver       string    `json:"waiver,omitzero" doc:"What stands in for a certificate"`
	Detail       string    `json:"detail,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	RenewalDue   bool      `json:"renewal_due,omitzero" doc:"Half of the certificate's life is over"`
}

// Matrix is where every target of a kind stands.
type Matrix struct {
	Kind        string     `json:"kind"`
	Contract    string     `json:"contract" doc:"Its digest"`
	Environment string     `json:"environment"`
	Primary     string     `json:"primary" doc:"Whom the others stand in for"`
	Items       []Standing `json:"items" nullable:"false"`
}

// Matrix returns where the targets of a kind stand as fallbacks of its first one.
func (o *Office) Matrix(ctx context.Context, kind string) (Matrix, error) {
	k, err := o.kind(kind)
	if err != nil {
		return Matrix{}, err
	}
	return o.matrix(ctx, k, k.Policy.Targets[0])
}

func (o *Office) matrix(ctx context.Context, k Kind, primary string) (Matrix, error) {
	m := Matrix{Kind: k.Contract.Kind, Contract: k.Policy.Contract.Digest, Environment: o.opts.Environment, Primary: primary, Items: []Standing{}}
	verdicts, err := o.opts.Store.GateRead(ctx, k.Policy, primary)
	if err != nil {
		return m, onejob.Unavailable(err)
	}
	certificates, err := o.opts.Store.CertificateList(ctx, onejob.CertificateListParams{Kind: m.Kind, Environment: o.opts.Environment, Limit: maxListed})
	if err != nil {
		return m, onejob.Unavailable(err)
	}
	for _, name := range k.Policy.Targets {
		s := o.standing(k, name, verdicts[name], certificates)
		if name == primary {
			s.Primary, s.Allowed, s.Automatic, s.Reason = true, true, true, ""
		}
		m.Items = append(m.Items, s)
	}
	return m, nil
}

// maxListed bounds a list.
const maxListed = 1000

func (o *Office) standing(k Kind, name string, v onejob.Verdict, certificates []onejob.Certificate) Standing {
	s := Standing{
		Target: name, TargetDigest: o.opts.Digests[name], Allowed: v.Allowed, Reason: v.Reason, Certificate: v.CertificateID, Waiver: v.WaiverID,
		Automatic: v.Allowed && !k.Policy.Contract.Manual,
	}
	if !v.Allowed && v.Reason == "" {
		s.Reason = onejob.GateNoCertificate
	}
	if v.Allowed && !s.Automatic {
		s.Reason = onejob.GateAutomaticOff
	}
	for i := range certificates {
		c := &certificates[i]
		about := c.ID == v.CertificateID || v.CertificateID == "" && c.ContractDigest == k.Policy.Contract.Digest && c.TargetDigest == s.TargetDigest && c.Status == onejob.CertificateActive
		if !about {
			continue
		}
		s.Certificate, s.ExpiresAt, s.Detail = c.ID, c.ExpiresAt, detailOf(c)
		s.RenewalDue = !c.RenewAt.IsZero() && !o.opts.NowFunc().Before(c.RenewAt)
		break
	}
	return s
}

// detailOf says in words what became of a certificate.
func detailOf(c *onejob.Certificate) string {
	if c.Reason != "" && c.Detail != "" {
		return c.Reason + ": " + c.Detail
	}
	return c.Reason + c.Detail
}

// Failover answers whether one target may stand in for another.
type Failover struct {
	Kind        string `json:"kind"`
	From        string `json:"from"`
	Environment string `json:"environment"`
	Contract    string `json:"contract" doc:"Its digest"`
	Standing
}

// CanFailover answers whether a target may stand in for another under a kind's
// contract, as a decision at this moment would have it.
func (o *Office) CanFailover(ctx context.Context, kind, from, to string) (Failover, error) {
	k, err := o.kind(kind)
	if err != nil {
		return Failover{}, err
	}
	for _, name := range []string{from, to} {
		if err := k.target(name); err != nil {
			return Failover{}, err
		}
	}
	m, err := o.matrix(ctx, k, from)
	if err != nil {
		return Failover{}, err
	}
	i := slices.IndexFunc(m.Items, func(s Standing) bool { return s.Target == to })
	return Failover{Kind: kind, From: from, Environment: m.Environment, Contract: m.Contract, Standing: m.Items[i]}, nil
}

// Certificates lists certificates, newest first. The environment is this office's.
func (o *Office) Certificates(ctx context.Context, p onejob.CertificateListParams) ([]onejob.Certificate, error) {
	p.Environment = o.opts.Environment
	list, err := o.opts.Store.CertificateList(ctx, p)
	return list, onejob.Unavailable(err)
}

// Revoke takes a certificate back. After it has returned nothing starts by it.
func (o *Office) Revoke(ctx context.Context, id, actor, reason string) (onejob.Certificate, error) {
	ended, err := o.opts.Store.CertificateEnd(ctx, onejob.CertificateEndParams{
		ID: id, Status: onejob.CertificateRevoked, Reason: "revoked", Detail: reason, Actor: actor,
	})
	if err != nil {
		return onejob.Certificate{}, onejob.Unavailable(err)
	}
	if len(ended) > 0 {
		return ended[0], nil
	}
	known, err := o.opts.Store.CertificateList(ctx, onejob.CertificateListParams{ID: id, Limit: 1})
	switch {
	case err != nil:
		return onejob.Certificate{}, onejob.Unavailable(err)
	case len(known) == 0:
		return onejob.Certificate{}, &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("there is no certificate %q", id)}
	}
	return known[0], nil // it had ended before
}

// WaiveParams is a person's word for one target.
type WaiveParams struct {
	Kind, Target, Actor, Reason string
	Until                       time.Time
}

// maxWaiver is the longest that a waiver lasts: for longer there are certificates.
const maxWaiver = 90 * 24 * time.Hour

// Waive records a waiver for the contract and the target as they are now.
func (o *Office) Waive(ctx context.Context, p WaiveParams) (onejob.Waiver, error) {
	k, err := o.kind(p.Kind)
	if err == nil {
		err = k.target(p.Target)
	}
	if err != nil {
		return onejob.Waiver{}, err
	}
	now := o.opts.NowFunc()
	switch {
	case p.Reason == "":
		err = invalid("a waiver needs a reason")
	case !p.Until.After(now):
		err = invalid("a waiver ends in the future")
	case p.Until.Sub(now) > maxWaiver:
		err = invalid("a waiver ends within 90 days; verify the target instead")
	}
	if err != nil {
		return onejob.Waiver{}, err
	}
	w, err := o.opts.Store.WaiverGrant(ctx, onejob.Waiver{
		Kind: p.Kind, ContractDigest: k.Policy.Contract.Digest, TargetDigest: o.opts.Digests[p.Target], TargetName: p.Target,
		Environment: o.opts.Environment, Actor: p.Actor, Reason: p.Reason, ExpiresAt: p.Until,
	})
	return w, onejob.Unavailable(err)
}

func invalid(message string) error {
	return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: message}
}

// Unwaive takes a waiver back.
func (o *Office) Unwaive(ctx context.Context, id, actor string) (onejob.Waiver, error) {
	w, err := o.opts.Store.WaiverRevoke(ctx, id, actor)
	return w, onejob.Unavailable(err)
}

// Waivers lists waivers, newest first.
func (o *Office) Waivers(ctx context.Context, p onejob.CertificateListParams) ([]onejob.Waiver, error) {
	p.Environment = o.opts.Environment
	list, err := o.opts.Store.WaiverList(ctx, p)
	return list, onejob.Unavailable(err)
}
