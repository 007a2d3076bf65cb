package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/urfave/cli/v3"
)

func incidentsCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "incidents", Usage: "look at successes that may mean money spent twice, and close them",
		Commands: []*cli.Command{incidentsListCommand(env), incidentsCloseCommand(env)},
	}
}

// incidentView is what people are shown of an incident.
type incidentView struct {
	ID        string    `json:"id"`
	JobID     string    `json:"job_id"`
	AttemptID string    `json:"attempt_id"`
	Owner     string    `json:"owner"`
	Kind      string    `json:"kind"`
	State     string    `json:"state"`
	At        time.Time `json:"at"`
	Detail    string    `json:"detail"`
	ClosedAt  time.Time `json:"closed_at"`
	ClosedBy  string    `json:"closed_by"`
	Note      string    `json:"note"`
}

func decodeIncident(raw json.RawMessage) (incidentView, error) {
	var i incidentView
	if err := json.Unmarshal(raw, &i); err != nil || i.ID == "" {
		return i, fmt.Errorf("%w: its answer is not an incident", errUnreachable)
	}
	return i, nil
}

func (i *incidentView) pairs() pairs {
	return pairs{
		{"id", clean(i.ID)},
		{"job", clean(i.JobID)},
		{"attempt", clean(i.AttemptID)},
		{"owner", clean(i.Owner)},
		{"kind", clean(i.Kind)},
		{"state", clean(i.State)},
		{"at", when(i.At)},
		{"detail", clean(i.Detail)},
		{"closed", when(i.ClosedAt)},
		{"closed by", clean(i.ClosedBy)},
		{"note", clean(i.Note)},
	}
}

func incidentsListCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list open incidents, or closed ones, newest first",
		Flags: clientFlags(
			&cli.StringFlag{Name: "state", Usage: "open, closed or open,closed", Value: "open"},
			&cli.StringFlag{Name: "owner", Usage: "of this owner (admin)"},
			&cli.StringFlag{Name: "cursor", Usage: "go on where the page before ended"},
		),
		Action: func(ctx context.Context, c *cli.Command) error { return runIncidentsList(ctx, env, c) },
	}
}

func runIncidentsList(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	query, next := url.Values{"state": {c.String("state")}}, []string{"onejob", "incidents", "list", "--state", c.String("state")}
	if owner := c.String("owner"); owner != "" {
		query.Set("owner", owner)
		next = append(next, "--owner", owner)
	}
	api, raw, p, err := getPage(ctx, env, c, "/v1/incidents", query)
	if err != nil {
		return err
	}
	list := rows{headings: []string{"ID", "JOB", "KIND", "STATE", "AT", "NOTE"}, items: p.Items, envelope: raw}
	for _, item := range p.Items {
		i, err := decodeIncident(item)
		if err != nil {
			return err
		}
		list.cells = append(list.cells, []string{clean(i.ID), clean(i.JobID), clean(i.Kind), clean(i.State), when(i.At), clean(i.Note)})
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	api.sayNext(c, p, next)
	return nil
}

func incidentsCloseCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "close", ArgsUsage: "ID", Usage: "say that somebody has seen to an incident",
		Description: `  onejob incidents close INC --note "refunded the second charge, ch_2"

Safe to repeat: the first note stays, and is kept for ever in the audit. The job's
payload may be purged from then on.`,
		Flags: clientFlags(&cli.StringFlag{Name: "note", Usage: "what came of it (required)"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the incident's id")
			if err != nil {
				return err
			}
			if c.String("note") == "" {
				return usage(c, "--note is required: what came of it")
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			got, err := api.post(ctx, "/v1/incidents/"+url.PathEscape(id)+":close", map[string]string{"note": c.String("note")})
			if err != nil {
				return err
			}
			i, err := decodeIncident(got.body)
			if err != nil {
				return err
			}
			return i.pairs().print(env, c, got.body)
		},
	}
}
