package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"
)

func jobsCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "jobs", Usage: "look at jobs, cancel them, let them go on",
		Commands: []*cli.Command{
			jobsGetCommand(env), jobsListCommand(env), jobsWatchCommand(env), jobsResultCommand(env),
			jobsCancelCommand(env), jobsUnblockCommand(env),
		},
	}
}

func clientFlags(more ...cli.Flag) []cli.Flag { return append(more, serverFlag(), outputFlag()) }

func jobsGetCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "get", ArgsUsage: "ID", Usage: "show one job with its attempts", Flags: clientFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the job's id")
			if err != nil {
				return err
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			got, err := api.get(ctx, "/v1/jobs/"+url.PathEscape(id), nil)
			if err != nil {
				return err
			}
			return printJob(env, c, got.body)
		},
	}
}

func printJob(env Env, c *cli.Command, raw json.RawMessage) error {
	job, err := decodeJob(raw)
	if err != nil {
		return err
	}
	return job.pairs().print(env, c, raw)
}

// listFilters are the filters of a list of jobs, by the names of the API.
var listFilters = []struct{ flag, usage string }{
	{"state", "queued, running, blocked, succeeded, failed or cancelled"},
	{"kind", "of this kind"},
	{"target", "asked for, or tried at, this target"},
	{"owner", "of this owner (admin)"},
	{"idempotency-key", "the job under this key"},
	{"error-code", "that failed so"},
	{"created-after", "`TIME` (RFC 3339)"},
	{"created-before", "`TIME` (RFC 3339)"},
}

func jobsListCommand(env Env) *cli.Command {
	flags := []cli.Flag{
		&cli.IntFlag{Name: "limit", Usage: "at most so many, up to 200", Value: 50},
		&cli.StringFlag{Name: "cursor", Usage: "go on where the page before ended"},
	}
	for _, f := range listFilters {
		flags = append(flags, &cli.StringFlag{Name: f.flag, Usage: f.usage})
	}
	return &cli.Command{
		Name: "list", Usage: "list jobs, newest first", Flags: clientFlags(flags...),
		Description: `  onejob jobs list --state blocked
  onejob jobs list --kind charge_card -o jsonl | jq .id`,
		Action: func(ctx context.Context, c *cli.Command) error { return runJobsList(ctx, env, c) },
	}
}

func runJobsList(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(c.Int("limit"))}}
	next := []string{"onejob", "jobs", "list", "--limit", strconv.Itoa(c.Int("limit"))}
	for _, f := range listFilters {
		if value := c.String(f.flag); value != "" {
			query.Set(strings.ReplaceAll(f.flag, "-", "_"), value)
			next = append(next, "--"+f.flag, value)
		}
	}
	api, raw, p, err := getPage(ctx, env, c, "/v1/jobs", query)
	if err != nil {
		return err
	}
	list := rows{headings: []string{"ID", "KIND", "STATE", "ATTEMPTS", "CREATED"}, items: p.Items, envelope: raw}
	for _, item := range p.Items {
		job, err := decodeJob(item)
		if err != nil {
			return err
		}
		list.cells = append(list.cells, []string{
			clean(job.ID), clean(job.Kind), job.describe(), strconv.Itoa(len(job.Attempts)), when(job.CreatedAt),
		})
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	api.sayNext(c, p, next)
	return nil
}

func getPage(ctx context.Context, env Env, c *cli.Command, path string, query url.Values) (*apiClient, json.RawMessage, page, error) {
	if cursor := c.String("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return nil, nil, page{}, err
	}
	got, err := api.get(ctx, path, query)
	if err != nil {
		return nil, nil, page{}, err
	}
	p, err := decodePage(got.body)
	return api, got.body, p, err
}

// sayNext prints the command that shows the next page.
func (a *apiClient) sayNext(c *cli.Command, p page, command []string) {
	if p.NextCursor == "" {
		return
	}
	for _, flag := range []string{"server", "output"} {
		if c.IsSet(flag) {
			command = append(command, "--"+flag, c.String(flag))
		}
	}
	command = append(command, "--cursor", p.NextCursor)
	for i := range command {
		command[i] = shellQuote(command[i])
	}
	say(a.env, "there is more: %s", strings.Join(command, " "))
}

func jobsResultCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "result", ArgsUsage: "ID", Usage: "write a job's result to stdout, as the provider sent it",
		Flags: []cli.Flag{serverFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the job's id")
			if err != nil {
				return err
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			got, err := api.get(ctx, "/v1/jobs/"+url.PathEscape(id)+"/result", nil)
			if err != nil {
				return err
			}
			_, err = env.Stdout.Write(got.body)
			return err
		},
	}
}

func jobsCancelCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "cancel", ArgsUsage: "ID", Usage: "ask for a job to be given up", Flags: clientFlags(),
		Description: "No new attempt starts. One that is in doubt ends by itself: if it succeeds after\nall, so does the job.",
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the job's id")
			if err != nil {
				return err
			}
			return postJob(ctx, env, c, "/v1/jobs/"+url.PathEscape(id)+"/cancel", struct{}{}, func(status int) {
				if status == http.StatusAccepted {
					say(env, "an attempt is in doubt; the job ends when that one does")
				}
			})
		},
	}
}

func jobsUnblockCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "unblock", ArgsUsage: "ID", Usage: "let a job go on that needs an operator or is parked",
		Description: "It is tried again, so look first whether its work was done: cancel it, or resolve\nits attempt, if it was. Refused while an attempt is in doubt (exit code 5).",
		Flags:       clientFlags(&cli.StringFlag{Name: "reason", Usage: "why; kept with the job (required)"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the job's id")
			if err != nil {
				return err
			}
			if c.String("reason") == "" {
				return usage(c, "--reason is required")
			}
			return postJob(ctx, env, c, "/v1/jobs/"+url.PathEscape(id)+"/unblock", map[string]string{"reason": c.String("reason")}, nil)
		},
	}
}

// postJob asks for a change of a job and prints the job as it is then.
func postJob(ctx context.Context, env Env, c *cli.Command, path string, body any, told func(status int)) error {
	api, err := newAPIClient(env, c)
	if err != nil {
		return err
	}
	got, err := api.post(ctx, path, body)
	if err != nil {
		return err
	}
	if told != nil {
		told(got.status)
	}
	job, err := decodeJob(got.body)
	if err != nil {
		return err
	}
	if c.String("output") == formTable {
		_, err = fmt.Fprintf(env.Stdout, "%s %s\n", clean(job.ID), job.describe())
		return err
	}
	return job.pairs().print(env, c, got.body)
}
