package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

func contractRecordCommand(env Env) *cli.Command {
	return onKind(env, "record", "draft cases from the inputs of real jobs, to be reviewed and redacted",
		`Writes one case a line to stdout, from the newest jobs of the kind that succeeded. Real
inputs hold what people wrote: name what is to be blanked with --redact, once for each
member, as in --redact input.body; --redact none says that nothing needs to be. A text
keeps its length, in x; anything else becomes null. A job whose input has no such member
is left out. What is expected of a case is for a person to add.`,
		[]cli.Flag{
			&cli.BoolFlag{Name: "from-jobs", Usage: "from jobs in the store (required)"},
			&cli.IntFlag{Name: "sample", Value: 100, Usage: "at most so many cases"},
			&cli.StringSliceFlag{Name: "redact", Usage: "a `MEMBER` of the input to blank, or none (required)"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			redact := c.StringSlice("redact")
			switch {
			case !c.Bool("from-jobs"):
				return usage(c, "--from-jobs is required: it is where cases come from")
			case len(redact) == 0:
				return usage(c, "--redact is required: a member of the input, as in input.body, or none")
			case len(redact) > 1 && slices.Contains(redact, "none"):
				return usage(c, "--redact none says that nothing is to be blanked; another --redact says what is")
			case c.Int("sample") < 1:
				return usage(c, "--sample is at least 1")
			}
			if _, err := d.office.ContractOf(kind); err != nil {
				return err
			}
			if redact[0] == "none" {
				redact = nil
			}
			r := recording{env: env, store: d.store, redact: redact, most: c.Int("sample"), seen: map[string]bool{}}
			return r.all(ctx, kind)
		})
}

// recording writes cases for the inputs of jobs, each input once.
type recording struct {
	env    Env
	store  realStore
	redact []string
	most   int
	seen   map[string]bool
	out    int   // jobs left out, and
	why    error // why the first one was
}

func (r *recording) all(ctx context.Context, kind string) error {
	params := onejob.JobListParams{Kind: kind, States: []onejob.JobState{onejob.JobSucceeded}, Limit: 200}
	for {
		page, err := r.store.JobList(ctx, params)
		if err != nil {
			return err
		}
		for _, job := range page.Jobs {
			params.Before = &onejob.JobCursor{CreatedAt: job.CreatedAt, ID: job.ID}
			if len(r.seen) == r.most {
				return r.end()
			}
			if err := r.one(ctx, job.ID); err != nil {
				return err
			}
		}
		if !page.More {
			return r.end()
		}
	}
}

// end says how it went. A member that no input has is more likely a wrong name.
func (r *recording) end() error {
	if r.out > 0 && len(r.seen) == 0 {
		return &exitError{ExitUsage, "nothing is recorded: " + r.why.Error()}
	}
	if r.out > 0 {
		say(r.env, "%s left out, as in: %v", many(r.out, "job"), r.why)
	}
	if len(r.seen) == 0 {
		say(r.env, "0 cases: no job of the kind has succeeded here, or their inputs are emptied")
		return nil
	}
	say(r.env, "%s; review them before they go into a file", many(len(r.seen), "case"))
	return nil
}

func (r *recording) one(ctx context.Context, id string) error {
	results, err := r.store.JobGet(ctx, []onejob.JobGetParams{{ID: id, WithInput: true}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil || len(results[0].Job.Input) == 0 {
		return err // emptied meanwhile
	}
	input, err := redacted(results[0].Job.Input, r.redact)
	if err != nil {
		if r.out++; r.why == nil {
			r.why = fmt.Errorf("%s: %w", id, err)
		}
		return nil
	}
	if r.seen[string(input)] {
		return nil
	}
	r.seen[string(input)] = true
	line, err := readable(map[string]any{"id": "job-" + strings.TrimPrefix(id, "job_"), "input": input, "tags": []string{"recorded"}})
	if err != nil {
		return err
	}
	return printJSONLine(r.env.Stdout, line)
}

// redacted blanks members of an input: a text keeps its length, in x; anything else
// becomes null. A member that is not there is an error, lest a misspelt name let
// through what it was to hold back.
func redacted(input []byte, members []string) (json.RawMessage, error) {
	if len(members) == 0 {
		return input, nil
	}
	value, err := decodeExact(input)
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		if !blankMember(value, strings.Split(strings.TrimPrefix(member, "input."), ".")) {
			return nil, fmt.Errorf("the input has no member %q to be blanked", member)
		}
	}
	return readable(value)
}

// blankMember reports whether the member was there, or cannot be for a null above it.
func blankMember(value any, path []string) bool {
	if value == nil {
		return true
	}
	object, is := value.(map[string]any)
	member, there := object[path[0]]
	switch {
	case !is || !there:
		return false
	case len(path) > 1:
		return blankMember(member, path[1:])
	}
	object[path[0]] = blank(member)
	return true
}

func blank(v any) any {
	if text, isText := v.(string); isText {
		return strings.Repeat("x", len([]rune(text)))
	}
	return nil
}

// decodeExact reads JSON with its numbers as they are written.
func decodeExact(raw []byte) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}
