package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/sim"
)

func simCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "sim", Usage: "run the fake provider alone: it fails on request and counts executions",
		Description: `It speaks a plain JSON API on any path, OpenAI chat completions and responses
and Anthropic messages. A request asks for a fault by the header "Sim-Fault:
silent" or the query "?sim=late:2s". The ledger of executions is at /sim/ledger,
the table of faults at /sim/faults.

With --model there are models: they do what a request asks, with JSON of its
schema, tools and streams, or lie about it at the rates given, in the same way
for the same seed and request. NAME alone is an honest one; * is any other.

   onejob sim --model good --model 'bad=fence:0.04,stringly,seed=7'

Whoever reaches the port may steer it: it is made for tests.`,
		DisableSliceFlagSeparator: true, // lies are separated by commas
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:4546", Usage: "`ADDRESS` to listen at"},
			&cli.StringFlag{Name: "default", Usage: "what a request meets that asks for nothing, as in late=2s"},
			&cli.StringSliceFlag{Name: "model", Usage: "a model and how it lies, as in `NAME=fence:0.04,seed=7`; may be repeated"},
			&cli.StringFlag{Name: "ledger", Usage: "`FILE` that keeps the ledger over restarts"},
			&cli.StringFlag{Name: "intent", Usage: "`MEMBER` of a JSON body that names the intent, as in metadata.order; absent: the Idempotency-Key header"},
			&cli.StringFlag{Name: "reference", Usage: "`MEMBER` of a JSON body that a look-up finds the charge by, beside its id"},
			&cli.DurationFlag{Name: "latency", Usage: "how long every answer takes"},
			&cli.BoolFlag{Name: "honour-keys", Usage: "execute each idempotency key once, as good providers do"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			step, err := sim.Parse(c.String("default"))
			if err != nil {
				return usage(c, "--default: %w", err)
			}
			models, err := modelsOf(c.StringSlice("model"))
			if err != nil {
				return usage(c, "--model: %w", err)
			}
			srv, err := sim.Start(c.String("listen"), sim.Options{
				Default: step, Models: models, LedgerFile: c.String("ledger"), Latency: c.Duration("latency"), HonourIdempotency: c.Bool("honour-keys"),
				IntentFunc: memberFunc(c.String("intent")), ReferenceFunc: memberFunc(c.String("reference")),
			})
			if err != nil {
				return cannotListen(c.String("listen"), err)
			}
			say(env, "fake provider at %s; ledger at %s/sim/ledger", srv.URL(), srv.URL())
			<-ctx.Done()
			return srv.Close()
		},
	}
}

// modelsOf reads models, each as NAME or NAME=LIES.
func modelsOf(texts []string) (map[string]sim.Mind, error) {
	models := map[string]sim.Mind{}
	for _, text := range texts {
		name, lies, _ := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		if _, twice := models[name]; twice || name == "" {
			return nil, fmt.Errorf("%q: a model has a name, and a name of its own", text)
		}
		mind, err := sim.ParseMind(lies)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		models[name] = mind
	}
	return models, nil
}

// memberFunc names requests by a member of their JSON body. Empty: nil.
func memberFunc(path string) func(*http.Request) string {
	if path == "" {
		return nil
	}
	return sim.IntentMember(path)
}
