package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/internal/production"
	"github.com/onejob-dev/onejob/internal/telemetry"
	"github.com/onejob-dev/onejob/provider/translate"
	"github.com/onejob-dev/onejob/store/doorbell"
	"github.com/onejob-dev/onejob/store/generation"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/webhook"
)

// server is everything that serves one configuration.
type server struct {
	cfg      *config.Config
	log      *slog.Logger
	keys     realStore
	store    *generation.Store
	engine   *engine.Engine
	sender   *webhook.Sender
	line     *production.Line // nil: no kind has a contract
	office   *certify.Office  // nil: the same
	bell     *doorbell.Bell   // nil: no other process has this store
	http     *http.Server
	listener net.Listener

	draining atomic.Bool
}

// newServer wires a server and listens. After an error nothing is left open.
func newServer(ctx context.Context, env Env, cfg *config.Config, migrate bool, log *slog.Logger) (_ *server, err error) {
	s := &server{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	secret, err := cfg.InstanceSecret()
	if err != nil {
		return nil, err
	}
	if s.keys, err = openStore(ctx, cfg, migrate, log); err != nil {
		return nil, err
	}
	if s.store, err = s.watch(ctx); err != nil {
		return nil, err
	}
	if err := s.wire(ctx, env, secret); err != nil {
		return nil, err
	}
	s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, cannotListen(cfg.Listen, err)
	}
	return s, nil
}

// cannotListen says why there is no listening at an address, and what helps.
func cannotListen(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen at %s: another program listens there; end it, or choose another address with --listen", address)
	}
	return fmt.Errorf("cannot listen at %s: %w", address, err)
}

// watch gathers the callers of the store, and looks whether it went back in time.
func (s *server) watch(ctx context.Context) (*generation.Store, error) {
	gathered, err := grouped.New(s.keys, grouped.Options{})
	if err != nil {
		return nil, err
	}
	path, err := s.cfg.GenerationPath()
	if err != nil {
		return nil, err
	}
	return generation.New(ctx, gathered, s.keys, generation.Options{Path: path, Logger: s.log})
}

// wire joins the parts: client and engine share signals, so that a new job
// starts at once, and both tell the metrics.
func (s *server) wire(ctx context.Context, env Env, secret onejob.Secret) error {
	targets, err := s.cfg.Targets(secret)
	if err != nil {
		return err
	}
	kinds := s.cfg.Kinds()
	signals := &onejob.Signals{}
	if n, shared := s.keys.(onejob.Notifier); shared {
		s.bell = doorbell.New(n, signals, doorbell.Options{Logger: s.log})
	}
	looker, _ := s.keys.(onejob.Looker)
	b := buildOf()
	metrics := telemetry.NewMetrics(telemetry.Options{
		Kinds: namesOf(kinds), Version: b.Version, Revision: b.Revision, StatsFunc: s.store.Stats, NowFunc: env.NowFunc,
	})
	if err := useContracts(ctx, s.cfg, s.store, targets); err != nil {
		return err
	}
	s.line, err = newLine(s.cfg, targets, production.Options{Store: s.store, Observer: metrics, Logger: s.log, NowFunc: env.NowFunc})
	if err != nil {
		return err
	}
	if s.office, err = newOffice(s.cfg, targets, certify.Options{Store: s.store, Logger: s.log, NowFunc: env.NowFunc, RenewEvery: env.RenewEvery}); err != nil {
		return err
	}
	s.engine, err = engine.New(s.store, targets, engine.Options{
		Slots: s.cfg.Workers.Slots, Lease: time.Duration(s.cfg.Workers.Lease), Drain: time.Duration(s.cfg.Workers.Drain),
		KeepPayloads: time.Duration(s.cfg.Retention.Jobs), KeepKeys: time.Duration(s.cfg.Retention.Keys),
		Looker: looker, Endpoints: endpointIDs(s.cfg), Signals: signals, Logger: s.log, Observer: metrics, Contracts: s.contracts(),
	})
	if err != nil {
		return err
	}
	if s.sender, err = s.newSender(signals, metrics, looker != nil); err != nil {
		return err
	}
	admission, err := httpapi.NewAdmission(httpapi.AdmissionOptions{
		Rate: s.cfg.Limits.PerOwner.Rate, MaxQueued: s.cfg.Limits.MaxQueued, QueuedFunc: s.queued,
		DrainingFunc: s.draining.Load, NowFunc: env.NowFunc,
	})
	if err != nil {
		return err
	}
	client, err := onejob.New(s.store, onejob.Options{
		Secret: []byte(secret.Reveal()), Kinds: kinds, MaxInputBytes: int(s.cfg.Limits.MaxBodyBytes),
		AdmitFunc: admission.Admit, SubscribeFunc: s.cfg.SubscribeFunc(), Starter: s.engine, Judge: s.judge(), Signals: signals, NowFunc: env.NowFunc,
	})
	if err != nil {
		return err
	}
	doors, err := frontdoor.New(frontdoor.Options{
		Client: client, Models: callable(s.cfg, targets), Reconcile: reconcileOf(targets), HeldFunc: s.engine.Holds,
	})
	if err != nil {
		return err
	}
	handler, err := httpapi.New(httpapi.Options{
		Doors:  doors,
		Client: client, Keys: apikey.NewAuthenticator(s.keys, apikey.Options{NowFunc: env.NowFunc}),
		MaxBodyBytes: int(s.cfg.Limits.MaxBodyBytes), MaxRequests: s.cfg.Limits.MaxRequests,
		Callbacks: callbacksOf(targets), Secret: secret, Contracts: s.office,
		Pulled: pulled(targets), Endpoints: endpointInfos(s.cfg.WebhookEndpoints()),
		Metrics: metrics.Handler(), Observer: metrics, DrainingFunc: s.draining.Load,
		OwnerRate: s.cfg.Limits.PerOwner.Rate, KeepPayloads: time.Duration(s.cfg.Retention.Jobs), KeepKeys: time.Duration(s.cfg.Retention.Keys),
		Logger: s.log, NowFunc: env.NowFunc,
	})
	if err != nil {
		return err
	}
	s.http = httpapi.Server(handler, s.log)
	return nil
}

// contracts is what the engine knows of contracts. Nil: there is none.
func (s *server) contracts() engine.Contracts {
	if s.line == nil {
		return nil
	}
	return s.line
}

// judge is what the client knows of them.
func (s *server) judge() onejob.OutputJudge {
	if s.line == nil {
		return nil
	}
	return s.line
}

// callbacksOf lists the targets whose providers report by themselves.
func callbacksOf(targets []onejob.Target) map[string]httpapi.CallbackReader {
	readers := map[string]httpapi.CallbackReader{}
	for i := range targets {
		reader, able := targets[i].Provider.(httpapi.CallbackReader)
		if able && targets[i].Reconcile.Callback {
			readers[targets[i].Name] = reader
		}
	}
	return readers
}

// reconcileOf says how attempts can be found out about, at all targets whose workers are
// engines.
func reconcileOf(targets []onejob.Target) map[string]onejob.Reconcile {
	how := map[string]onejob.Reconcile{}
	for i := range targets {
		if !targets[i].Pulled {
			how[targets[i].Name] = targets[i].Reconcile
		}
	}
	return how
}

// callable is what clients of providers' APIs may name as a model.
func callable(cfg *config.Config, targets []onejob.Target) map[string]frontdoor.Model {
	counters := map[string]onejob.TokenCounter{}
	for i := range targets {
		if counter, able := targets[i].Provider.(onejob.TokenCounter); able {
			counters[targets[i].Name] = counter
		}
	}
	models := map[string]frontdoor.Model{}
	for name, m := range cfg.Callables() {
		models[name] = frontdoor.Model{
			Kind: m.Kind, Target: m.Target, API: frontdoor.API(m.API), Counter: counters[m.First], EventsFunc: eventsOf[m.API], RequireKey: m.RequireKey, TakeOver: m.TakeOver,
			Heartbeat: time.Duration(m.Heartbeat), TakeOverWithin: time.Duration(m.TakeOverWithin),
		}
	}
	return models
}

// eventsOf makes streams of answers that came whole, by API.
var eventsOf = map[string]func([]byte, bool) ([]byte, error){
	string(frontdoor.APIChat):      translate.ChatEvents,
	string(frontdoor.APIMessages):  withUsage(translate.MessageEvents),
	string(frontdoor.APIResponses): withUsage(translate.ResponseEvents),
}

// withUsage is made of streams that always say what they took.
func withUsage(events func([]byte) ([]byte, error)) func([]byte, bool) ([]byte, error) {
	return func(whole []byte, _ bool) ([]byte, error) { return events(whole) }
}

// pulled are the targets whose attempts workers take.
func pulled(targets []onejob.Target) map[string]onejob.TargetPins {
	pins := map[string]onejob.TargetPins{}
	for _, t := range targets {
		if t.Pulled {
			pins[t.Name] = onejob.TargetPins{Digest: t.Digest, MaxExecution: t.MaxExecution}
		}
	}
	return pins
}

// queued counts the jobs that wait to be tried.
func (s *server) queued(ctx context.Context) (int64, error) {
	stats, err := s.store.Stats(ctx)
	return stats.Jobs[onejob.JobQueued], err
}

func namesOf(kinds map[string]onejob.Kind) []string { return slices.Sorted(maps.Keys(kinds)) }

// url is where the server can be reached from this machine.
func (s *server) url() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return s.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// shutdownGrace is how long requests under way may take to end, after the
// engine's own drain.
const shutdownGrace = 15 * time.Second

// serve serves until ctx ends, then drains. It says at once that it is no longer
// ready and takes no new job, but goes on answering while attempts under way end,
// as long as workers.drain says; what is left then is unknown, not failed. The
// webhooks of what ended last leave before it closes everything.
func (s *server) serve(ctx context.Context) error {
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	var watched sync.WaitGroup
	watched.Go(func() { s.store.Run(watching) })
	if s.line != nil {
		watched.Go(func() { s.line.Run(watching) })
	}
	if s.office != nil {
		watched.Go(func() { s.office.KeepRenewed(working) })
	}
	if s.bell != nil {
		watched.Go(func() { s.bell.Run(watching) })
	}
	worked := make(chan error, 1)
	go func() { worked <- s.engine.Run(working) }()
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	sent := make(chan error, 1)
	go func() { sent <- s.sender.Run(sending) }()
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()

	var failed error
	select {
	case <-ctx.Done():
		s.log.Info("stopping", "drain", time.Duration(s.cfg.Workers.Drain).String())
	case failed = <-served: // only a broken listener ends it
	}
	s.draining.Store(true)
	stopWorking()
	err := errors.Join(failed, <-worked, s.stopAnswering(ctx))
	stopSending()
	err = errors.Join(err, <-sent)
	stopWatching()
	watched.Wait()
	err = errors.Join(err, s.close())
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}

// stopAnswering ends the HTTP server. Requests that take too long are cut off.
func (s *server) stopAnswering(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off", "error", err)
		return s.http.Close()
	}
	return nil
}

// close lets go of what is open. It may be called on a half-made server.
func (s *server) close() error {
	var errs []error
	if s.office != nil {
		s.office.Close()
	}
	if s.listener != nil {
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	switch {
	case s.store != nil:
		errs = append(errs, s.store.Close())
	case s.keys != nil:
		errs = append(errs, s.keys.Close())
	}
	return errors.Join(errs...)
}
