package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

func webhooksCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "webhooks", Usage: "look at webhooks, send them again, receive them while developing",
		Commands: []*cli.Command{
			webhooksListCommand(env), webhooksGetCommand(env), webhooksResendCommand(env),
			webhooksEndpointsCommand(env), webhooksEnableCommand(env), webhooksListenCommand(env),
		},
	}
}

// deliveryFilters are the filters of a list of webhooks, by the names of the API.
var deliveryFilters = []struct{ flag, param, usage string }{
	{"job", "job_id", "about the job with this `ID`"},
	{"state", "state", "pending, delivered or failed"},
	{"endpoint", "endpoint", "to the endpoint with this `ID`"},
	{"owner", "owner", "about jobs of this owner (admin)"},
}

func webhooksListCommand(env Env) *cli.Command {
	flags := []cli.Flag{
		&cli.IntFlag{Name: "limit", Usage: "at most so many, up to 200", Value: 50},
		&cli.StringFlag{Name: "cursor", Usage: "go on where the page before ended"},
	}
	for _, f := range deliveryFilters {
		flags = append(flags, &cli.StringFlag{Name: f.flag, Usage: f.usage})
	}
	return &cli.Command{
		Name: "list", Usage: "list webhooks, newest first", Flags: clientFlags(flags...),
		Description: `  onejob webhooks list --state failed
  onejob webhooks list --state failed -o jsonl | jq -r .id | xargs -n 1 onejob webhooks resend`,
		Action: func(ctx context.Context, c *cli.Command) error { return runWebhooksList(ctx, env, c) },
	}
}

func runWebhooksList(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(c.Int("limit"))}}
	next := []string{"onejob", "webhooks", "list", "--limit", strconv.Itoa(c.Int("limit"))}
	for _, f := range deliveryFilters {
		if value := c.String(f.flag); value != "" {
			query.Set(f.param, value)
			next = append(next, "--"+f.flag, value)
		}
	}
	api, raw, p, err := getPage(ctx, env, c, "/v1/deliveries", query)
	if err != nil {
		return err
	}
	list := rows{headings: []string{"ID", "EVENT", "JOB", "ENDPOINT", "STATE", "TRIES", "STATUS", "CREATED"}, items: p.Items, envelope: raw}
	for _, item := range p.Items {
		d, err := decodeDelivery(item)
		if err != nil {
			return err
		}
		list.cells = append(list.cells, []string{
			clean(d.ID), clean(string(d.Event)), clean(d.JobID), clean(d.Endpoint), clean(string(d.State)),
			strconv.Itoa(d.Tries), d.status(), when(d.CreatedAt),
		})
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	api.sayNext(c, p, next)
	return nil
}

// deliveryView is what people are shown of a webhook.
type deliveryView struct {
	ID         string               `json:"id"`
	JobID      string               `json:"job_id"`
	AttemptID  string               `json:"attempt_id"`
	Endpoint   string               `json:"endpoint"`
	Event      onejob.WebhookEvent  `json:"event"`
	State      onejob.DeliveryState `json:"state"`
	Tries      int                  `json:"tries"`
	Status     int                  `json:"status"`
	Error      string               `json:"error"`
	CreatedAt  time.Time            `json:"created_at"`
	DueAt      time.Time            `json:"due_at"`
	FinishedAt time.Time            `json:"finished_at"`
}

func decodeDelivery(raw json.RawMessage) (deliveryView, error) {
	var d deliveryView
	if err := json.Unmarshal(raw, &d); err != nil || d.ID == "" {
		return d, fmt.Errorf("%w: its answer is not a webhook", errUnreachable)
	}
	return d, nil
}

// status is that of the last try, empty if none came.
func (d *deliveryView) status() string {
	if d.Status == 0 {
		return ""
	}
	return strconv.Itoa(d.Status)
}

func (d *deliveryView) pairs() pairs {
	return pairs{
		{"id", clean(d.ID)},
		{"event", clean(string(d.Event))},
		{"job", clean(d.JobID)},
		{"attempt", clean(d.AttemptID)},
		{"endpoint", clean(d.Endpoint)},
		{"state", clean(string(d.State))},
		{"tries", strconv.Itoa(d.Tries)},
		{"status", d.status()},
		{"error", clean(d.Error)},
		{"created", when(d.CreatedAt)},
		{"due", when(d.DueAt)},
		{"finished", when(d.FinishedAt)},
	}
}

func printDelivery(env Env, c *cli.Command, raw json.RawMessage) error {
	d, err := decodeDelivery(raw)
	if err != nil {
		return err
	}
	return d.pairs().print(env, c, raw)
}

func webhooksGetCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "get", ArgsUsage: "ID", Usage: "show one webhook, and what came of its last try", Flags: clientFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			got, err := aboutOne(env, c, "the webhook's id", func(api *apiClient, id string) (answer, error) {
				return api.get(ctx, "/v1/deliveries/"+id, nil)
			})
			if err != nil {
				return err
			}
			return printDelivery(env, c, got.body)
		},
	}
}

func webhooksResendCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "resend", ArgsUsage: "ID", Usage: "send a webhook again, under the id that it had", Flags: clientFlags(),
		Description: "Whatever became of it before. Its receiver knows the webhook-id if it has seen it,\nand gets the same bytes. To a disabled endpoint it goes once that is enabled.",
		Action: func(ctx context.Context, c *cli.Command) error {
			got, err := aboutOne(env, c, "the webhook's id", func(api *apiClient, id string) (answer, error) {
				return api.post(ctx, "/v1/deliveries/"+id+":resend", struct{}{})
			})
			if err != nil {
				return err
			}
			return printDelivery(env, c, got.body)
		},
	}
}

// aboutOne asks the server about the one thing that the command's argument names,
// by its id as a path has it.
func aboutOne(env Env, c *cli.Command, what string, ask func(api *apiClient, id string) (answer, error)) (answer, error) {
	id, err := oneArgument(c, what)
	if err != nil {
		return answer{}, err
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return answer{}, err
	}
	return ask(api, url.PathEscape(id))
}

// endpointView is what people are shown of an endpoint.
type endpointView struct {
	ID       string                `json:"id"`
	URL      string                `json:"url"`
	Owner    string                `json:"owner"`
	Events   []onejob.WebhookEvent `json:"events"`
	Disabled *struct {
		Reason string    `json:"reason"`
		Since  time.Time `json:"since"`
	} `json:"disabled"`
}

func decodeEndpoint(raw json.RawMessage) (endpointView, error) {
	var e endpointView
	if err := json.Unmarshal(raw, &e); err != nil || e.ID == "" {
		return e, fmt.Errorf("%w: its answer is not an endpoint", errUnreachable)
	}
	return e, nil
}

// events are those beyond the end of a job.
func (e *endpointView) events() string {
	names := make([]string, len(e.Events))
	for i, event := range e.Events {
		names[i] = clean(string(event))
	}
	return strings.Join(names, ",")
}

func (e *endpointView) state() string {
	switch {
	case e.Disabled != nil:
		return "disabled since " + when(e.Disabled.Since) + ": " + clean(e.Disabled.Reason)
	case e.URL == "":
		return "not configured"
	}
	return "enabled"
}

func webhooksEndpointsCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "endpoints", Usage: "list the endpoints of webhooks, and which of them are disabled", Flags: clientFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			_, raw, p, err := getPage(ctx, env, c, "/v1/webhook-endpoints", url.Values{})
			if err != nil {
				return err
			}
			list := rows{headings: []string{"ID", "OWNER", "URL", "EVENTS", "STATE"}, items: p.Items, envelope: raw}
			for _, item := range p.Items {
				e, err := decodeEndpoint(item)
				if err != nil {
					return err
				}
				list.cells = append(list.cells, []string{clean(e.ID), clean(e.Owner), clean(e.URL), e.events(), e.state()})
			}
			return list.print(env, c)
		},
	}
}

func webhooksEnableCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "enable", ArgsUsage: "ID", Usage: "let a disabled endpoint be sent webhooks again", Flags: clientFlags(),
		Description: "An endpoint is disabled when it answers 410. What waited for it is sent when it is due.",
		Action: func(ctx context.Context, c *cli.Command) error {
			got, err := aboutOne(env, c, "the endpoint's id", func(api *apiClient, id string) (answer, error) {
				return api.post(ctx, "/v1/webhook-endpoints/"+id+":enable", struct{}{})
			})
			if err != nil {
				return err
			}
			e, err := decodeEndpoint(got.body)
			if err != nil {
				return err
			}
			return pairs{
				{"id", clean(e.ID)}, {"owner", clean(e.Owner)}, {"url", clean(e.URL)}, {"events", e.events()}, {"state", e.state()},
			}.print(env, c, got.body)
		},
	}
}
