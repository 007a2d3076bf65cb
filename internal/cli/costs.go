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
)

// costFlags are the filters of sums, by the names of the API.
var costFlags = []struct{ flag, usage string }{
	{"by", "owner (the default), kind, target or day"},
	{"owner", "of this owner (admin)"},
	{"kind", "of this kind"},
	{"target", "at this target"},
	{"from", "attempts that started at this `TIME` (RFC 3339, or a day in UTC) or later"},
	{"to", "attempts that started before this `TIME`"},
}

func costsCommand(env Env) *cli.Command {
	flags := []cli.Flag{&cli.StringFlag{Name: "cursor", Usage: "go on where the page before ended"}}
	for _, f := range costFlags {
		flags = append(flags, &cli.StringFlag{Name: f.flag, Usage: f.usage})
	}
	return &cli.Command{
		Name: "costs", Usage: "sum what attempts cost, losers and failures included",
		Description: `  onejob costs --by kind --from 2026-03-01 --to 2026-04-01
  onejob costs --by owner -o jsonl`,
		Flags:  clientFlags(flags...),
		Action: func(ctx context.Context, c *cli.Command) error { return runCosts(ctx, env, c) },
	}
}

func runCosts(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	query, next := url.Values{}, []string{"onejob", "costs"}
	for _, f := range costFlags {
		value := c.String(f.flag)
		if value == "" {
			continue
		}
		next = append(next, "--"+f.flag, value)
		if f.flag == "from" || f.flag == "to" {
			value = timeOfDay(value)
		}
		query.Set(f.flag, value)
	}
	api, raw, p, err := getPage(ctx, env, c, "/v1/costs", query)
	if err != nil {
		return err
	}
	heading := "OWNER"
	if by := c.String("by"); by != "" {
		heading = strings.ToUpper(by)
	}
	list := rows{headings: []string{heading, "COST", "ATTEMPTS", "UNPRICED"}, items: p.Items, envelope: raw}
	for _, item := range p.Items {
		cells, err := costCells(item)
		if err != nil {
			return err
		}
		list.cells = append(list.cells, cells)
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	api.sayNext(c, p, next)
	return nil
}

// timeOfDay makes a time of a day, and leaves anything else to the server.
func timeOfDay(value string) string {
	if day, err := time.Parse(time.DateOnly, value); err == nil {
		return day.Format(time.RFC3339)
	}
	return value
}

func costCells(raw json.RawMessage) ([]string, error) {
	var row struct {
		Key      string `json:"key"`
		Currency string `json:"currency"`
		Micros   int64  `json:"micros"`
		AtLeast  bool   `json:"at_least"`
		Attempts int64  `json:"attempts"`
		Unpriced int64  `json:"unpriced"`
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, fmt.Errorf("%w: its answer is not a sum", errUnreachable)
	}
	cost := "no price told"
	if row.Currency != "" {
		cost = money(row.Micros, row.Currency, row.AtLeast)
	}
	return []string{clean(row.Key), cost, strconv.FormatInt(row.Attempts, 10), strconv.FormatInt(row.Unpriced, 10)}, nil
}
