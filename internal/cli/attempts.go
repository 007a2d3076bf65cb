package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/urfave/cli/v3"
)

func attemptsCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "attempts", Usage: "look at attempts, settle unknown ones, start another",
		Commands: []*cli.Command{
			attemptsListCommand(env), attemptsGetCommand(env), attemptsResolveCommand(env), attemptsReconcileCommand(env), attemptsStartCommand(env),
		},
	}
}

func attemptsListCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list unknown attempts, or those of a state or a job",
		Flags: clientFlags(
			&cli.StringFlag{Name: "state", Usage: "starting, running, unknown, succeeded, discarded, failed or cancelled", Value: "unknown"},
			&cli.StringFlag{Name: "job", Usage: "every attempt of the job with this `ID`, oldest first"},
			&cli.StringFlag{Name: "cursor", Usage: "go on where the page before ended"},
		),
		Action: func(ctx context.Context, c *cli.Command) error { return runAttemptsList(ctx, env, c) },
	}
}

func runAttemptsList(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	path, query := "/v1/attempts", url.Values{"state": {c.String("state")}}
	next := []string{"onejob", "attempts", "list", "--state", c.String("state")}
	if job := c.String("job"); job != "" {
		path, query = "/v1/jobs/"+url.PathEscape(job)+"/attempts", url.Values{}
		next = []string{"onejob", "attempts", "list", "--job", job}
	}
	api, raw, p, err := getPage(ctx, env, c, path, query)
	if err != nil {
		return err
	}
	list := rows{headings: []string{"ID", "JOB", "NUMBER", "TARGET", "STATE", "OUTCOME", "STARTED"}, items: p.Items, envelope: raw}
	for _, item := range p.Items {
		a, err := decodeAttempt(item)
		if err != nil {
			return err
		}
		list.cells = append(list.cells, []string{
			clean(a.ID), clean(a.JobID), strconv.Itoa(a.Number), clean(a.Target), clean(string(a.State)), clean(string(a.Outcome)), when(a.StartedAt),
		})
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	api.sayNext(c, p, next)
	return nil
}

func decodeAttempt(raw json.RawMessage) (attemptView, error) {
	var a attemptView
	if err := json.Unmarshal(raw, &a); err != nil || a.ID == "" {
		return a, fmt.Errorf("%w: its answer is not an attempt", errUnreachable)
	}
	return a, nil
}

func attemptsGetCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "get", ArgsUsage: "ID", Usage: "show one attempt with its evidence", Flags: clientFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the attempt's id")
			if err != nil {
				return err
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			got, err := api.get(ctx, "/v1/attempts/"+url.PathEscape(id), nil)
			if err != nil {
				return err
			}
			return printAttempt(env, c, got.body)
		},
	}
}

func printAttempt(env Env, c *cli.Command, raw json.RawMessage) error {
	a, err := decodeAttempt(raw)
	if err != nil {
		return err
	}
	return a.pairs().print(env, c, raw)
}

func attemptsResolveCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "resolve", ArgsUsage: "ID", Usage: "settle an unknown attempt by a ruling of yours",
		Description: `Say what you found out, and how: the evidence is kept for ever.

  onejob attempts resolve ATT --outcome succeeded --result receipt.json --evidence "charge ch_1 in the dashboard"
  onejob attempts resolve ATT --outcome failed --proves not_executed --evidence "no charge for order 42 on the statement"

A failure lets the job go on by itself, and so may send the work again. It is
refused while the provider may still be working (exit code 5).`,
		Flags: clientFlags(
			&cli.StringFlag{Name: "outcome", Usage: "succeeded, failed or cancelled (required)"},
			&cli.StringFlag{Name: "evidence", Usage: "how you know (required)"},
			&cli.StringFlag{Name: "proves", Usage: "with failed: not_executed or executed_failed"},
			&cli.StringFlag{Name: "result", Usage: "with succeeded: `FILE` with the result as JSON; - is stdin"},
			&cli.BoolFlag{Name: "result-lost", Usage: "with succeeded: it happened, and its result cannot be had"},
			&cli.BoolFlag{Name: "acknowledge-risk", Usage: "rule although nothing proves it: the work may happen twice"},
		),
		Action: func(ctx context.Context, c *cli.Command) error { return runAttemptsResolve(ctx, env, c) },
	}
}

func runAttemptsResolve(ctx context.Context, env Env, c *cli.Command) error {
	id, err := oneArgument(c, "the attempt's id")
	if err != nil {
		return err
	}
	body := map[string]any{"outcome": c.String("outcome"), "evidence": c.String("evidence")}
	for _, flag := range []string{"outcome", "evidence"} {
		if c.String(flag) == "" {
			return usage(c, "--%s is required", flag)
		}
	}
	if proves := c.String("proves"); proves != "" {
		body["proves"] = proves
	}
	if file := c.String("result"); file != "" {
		result, err := readInput(env, file)
		if err != nil {
			return err
		}
		body["result"] = json.RawMessage(result)
	}
	for flag, member := range map[string]string{"result-lost": "result_lost", "acknowledge-risk": "acknowledge_risk"} {
		if c.Bool(flag) {
			body[member] = true
		}
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return err
	}
	got, err := api.post(ctx, "/v1/attempts/"+url.PathEscape(id)+"/resolve", body)
	if err != nil {
		return err
	}
	return printAttempt(env, c, got.body)
}

func attemptsReconcileCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "reconcile", ArgsUsage: "ID", Usage: "ask the provider now what became of an attempt",
		Description: "The attempt is shown as it is; look again for what the provider said. Where its\ntarget has no lookup or replay, only a ruling settles it.",
		Flags:       clientFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the attempt's id")
			if err != nil {
				return err
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			got, err := api.post(ctx, "/v1/attempts/"+url.PathEscape(id)+"/reconcile", map[string]any{})
			if err != nil {
				return err
			}
			return printAttempt(env, c, got.body)
		},
	}
}

func attemptsStartCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "start", ArgsUsage: "JOB", Usage: "start another attempt of a job: the fallback button",
		Description: "Refused while an attempt is in doubt (exit code 5) and where no other target may\ntake over (exit code 6). The key is one per press of the button.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "key", Aliases: []string{"k"}, Usage: "idempotency `KEY` of this press (required)"},
			&cli.StringFlag{Name: "target", Usage: "one of the kind's targets, instead of the next in order"},
		),
		Action: func(ctx context.Context, c *cli.Command) error { return runAttemptsStart(ctx, env, c) },
	}
}

func runAttemptsStart(ctx context.Context, env Env, c *cli.Command) error {
	job, err := oneArgument(c, "the job's id")
	if err != nil {
		return err
	}
	if c.String("key") == "" {
		return usage(c, "--key is required: one per press, used again for every repeat of it")
	}
	body := []byte("{}")
	if target := c.String("target"); target != "" {
		if body, err = json.Marshal(map[string]string{"target": target}); err != nil {
			return err
		}
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return err
	}
	got, err := api.do(ctx, request{
		method: http.MethodPost, path: "/v1/jobs/" + url.PathEscape(job) + "/attempts", body: body, repeatable: true,
		header: http.Header{"Idempotency-Key": {c.String("key")}},
	})
	if err != nil {
		return err
	}
	return printAttempt(env, c, got.body)
}
