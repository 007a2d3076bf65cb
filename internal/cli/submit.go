package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

// maxInputBytes bounds what is read of an input; the server has its own bound.
const maxInputBytes = 1 << 30

func submitCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "submit", ArgsUsage: "KIND",
		Usage: "record an intent and print its job",
		Description: `The key names the intent. Make one for each thing that is to happen once,
outside the loop that retries, and use it for every repeat: a repeat finds the
same job, another input under the same key is a conflict (exit code 4).

  onejob submit charge_card --key order-42 --input charge.json
  echo '{"text":"hi"}' | onejob submit echo --key "$(uuidgen)" --input - --wait 30s

The command itself repeats only when no answer came, or when the server says
that this is of use, and always with the same key.

With --wait the exit code tells how the job ended: 0 it succeeded, 1 it did not
(or not yet), 5 an attempt's outcome is unknown, 6 no target may take over.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Aliases: []string{"k"}, Usage: "idempotency `KEY`, one per intent (required)"},
			&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` with the input, one JSON value; - is stdin (required)"},
			&cli.DurationFlag{Name: "wait", Usage: "wait so long for the job to end or block"},
			&cli.StringFlag{Name: "target", Usage: "one of the kind's targets, instead of the first"},
			&cli.StringFlag{Name: "metadata", Usage: "a `JSON` object that is kept with the job and is no part of the intent"},
			&cli.IntFlag{Name: "priority", Usage: "-100 to 100, higher first among the owner's own jobs"},
			&cli.StringFlag{Name: "run-after", Usage: "start no attempt before this `TIME` (RFC 3339)"},
			&cli.StringFlag{Name: "deadline", Usage: "start no attempt after this `TIME` (RFC 3339)"},
			&cli.StringFlag{Name: "supersedes", Usage: "`ID` of the ended job that this one replaces"},
			&cli.StringFlag{Name: "webhook", Usage: "`URL` of the one registered endpoint to be told how the job ends, instead of all of the owner's"},
			serverFlag(), outputFlag(),
		},
		Action: func(ctx context.Context, c *cli.Command) error { return runSubmit(ctx, env, c) },
	}
}

func runSubmit(ctx context.Context, env Env, c *cli.Command) error {
	body, err := submission(env, c)
	if err != nil {
		return err
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return err
	}
	header := http.Header{"Idempotency-Key": {c.String("key")}}
	start := env.NowFunc()
	if wait := c.Duration("wait"); wait > 0 {
		header.Set("Prefer", prefer(wait))
	}
	got, err := api.do(ctx, request{method: http.MethodPost, path: "/v1/jobs", header: header, body: body, repeatable: true})
	if err != nil {
		return doubtful(err, c.String("key"))
	}
	replayed := got.header.Get("Idempotent-Replayed") == "true"
	job, err := decodeJob(got.body)
	if err != nil {
		return doubtful(err, c.String("key"))
	}
	if c.Duration("wait") <= 0 {
		return printSubmitted(env, c, got.body, &job, replayed)
	}
	raw, err := api.await(ctx, got.body, start.Add(c.Duration("wait")))
	if err != nil {
		return err
	}
	if job, err = decodeJob(raw); err != nil {
		return err
	}
	if err := printSubmitted(env, c, raw, &job, replayed); err != nil {
		return err
	}
	return exitOfJob(env, &job)
}

// doubtful adds what is true when no answer came, and the key to ask with again:
// the command may have been given one that was made on the spot.
func doubtful(err error, key string) error {
	var p *problem
	switch {
	case errors.As(err, &p) && p.Advice == "retry_same_key":
		return fmt.Errorf("%w\nThe key was: %s", err, clean(key))
	case errors.Is(err, errUnreachable) || errors.Is(err, context.Canceled):
		return fmt.Errorf("%w\nThe job may or may not have been recorded. Repeat the same command, with the same key, to find out. The key was: %s", err, clean(key))
	}
	return err
}

func prefer(wait time.Duration) string {
	const longest = 60
	return "wait=" + strconv.Itoa(max(1, min(longest, int(wait.Seconds()))))
}

// submission is the request's body. The input stands in it byte for byte.
func submission(env Env, c *cli.Command) ([]byte, error) {
	kind, err := oneArgument(c, "the kind")
	if err != nil {
		return nil, err
	}
	if c.String("key") == "" {
		return nil, usage(c, "--key is required. Make one key per intent, outside the loop that retries (an order's number, or one uuid made beforehand): a new key with every try is a new job with every try")
	}
	if c.String("input") == "" {
		return nil, usage(c, "--input is required: a file, or - for stdin")
	}
	input, err := readInput(env, c.String("input"))
	if err != nil {
		return nil, err
	}
	rest := map[string]any{}
	for flag, member := range map[string]string{"target": "target", "run-after": "run_after", "deadline": "deadline", "supersedes": "supersedes"} {
		if value := c.String(flag); value != "" {
			rest[member] = value
		}
	}
	if c.IsSet("priority") {
		rest["priority"] = c.Int("priority")
	}
	if metadata := c.String("metadata"); metadata != "" {
		if !json.Valid([]byte(metadata)) {
			return nil, usage(c, "--metadata is not JSON")
		}
		rest["metadata"] = json.RawMessage(metadata)
	}
	if address := c.String("webhook"); address != "" {
		rest["webhook"] = map[string]string{"url": address}
	}
	return assemble(kind, input, rest)
}

func assemble(kind string, input []byte, rest map[string]any) ([]byte, error) {
	var body bytes.Buffer
	quoted, err := json.Marshal(kind)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&body, `{"kind":%s,"input":`, quoted)
	body.Write(input) // an encoder would change its bytes
	for member, value := range rest {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&body, `,%q:%s`, member, encoded)
	}
	body.WriteByte('}')
	return body.Bytes(), nil
}

// readInput reads a whole file, or stdin for "-". It must hold JSON: what would
// close the request's own object early is refused here.
func readInput(env Env, name string) ([]byte, error) {
	from := env.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &exitError{code: ExitUsage, message: "the input cannot be read: " + err.Error()}
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	input, err := io.ReadAll(io.LimitReader(from, maxInputBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the input cannot be read: %w", err)
	case len(input) > maxInputBytes:
		return nil, &exitError{code: ExitUsage, message: "the input is too large"}
	case !json.Valid(input):
		return nil, &exitError{code: ExitUsage, message: "the input is not one JSON value; the key has not been used"}
	}
	return bytes.TrimSpace(input), nil
}

// await asks for the job until it has ended, is blocked, or the time is over.
func (a *apiClient) await(ctx context.Context, raw json.RawMessage, until time.Time) (json.RawMessage, error) {
	for {
		job, err := decodeJob(raw)
		if err != nil {
			return nil, err
		}
		left := until.Sub(a.env.NowFunc())
		if job.State.Terminal() || job.State == onejob.JobBlocked || left <= 0 {
			return raw, nil
		}
		got, err := a.do(ctx, request{
			method: http.MethodGet, path: "/v1/jobs/" + job.ID, repeatable: true,
			header: http.Header{"Prefer": {prefer(left)}},
		})
		if err != nil {
			return nil, err
		}
		raw = got.body
	}
}

func printSubmitted(env Env, c *cli.Command, raw json.RawMessage, job *jobView, replayed bool) error {
	if replayed {
		say(env, "this key had been used before, for the same intent: nothing new was started")
	}
	if c.String("output") != formTable {
		return pairs{}.print(env, c, raw)
	}
	word := "created"
	if replayed {
		word = "replayed"
	}
	if c.Duration("wait") > 0 {
		word = job.describe()
	}
	_, err := fmt.Fprintf(env.Stdout, "%s %s\n", clean(job.ID), word)
	return err
}

// exitOfJob ends a command that waited for a job, and says what to do about one
// that did not succeed.
func exitOfJob(env Env, job *jobView) error {
	code := ExitOK
	switch {
	case job.State == onejob.JobSucceeded:
	case job.State == onejob.JobBlocked && job.Blocked != nil:
		code = exitOfBlock(job.Blocked.Reason)
		say(env, "%s", adviceOfBlock(job))
	case job.State.Terminal():
		code = ExitFailed
		if job.Error != nil {
			say(env, "the job ended: %s", clean(job.Error.Code+": "+job.Error.Message))
		}
	default:
		code = ExitFailed
		say(env, "the job has not ended yet and goes on; see: onejob jobs watch %s", job.ID)
	}
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

func exitOfBlock(reason onejob.BlockReason) int {
	if reason == onejob.BlockFailoverNotCertified {
		return ExitNotCertified
	}
	return ExitBlocked
}

func adviceOfBlock(job *jobView) string {
	b := job.Blocked
	text := "the job is blocked: " + clean(cmp.Or(b.Detail, string(b.Reason)))
	if b.AttemptID != "" && b.Reason == onejob.BlockAttemptUnknown {
		text += fmt.Sprintf("\nDo not submit it again. When you know what happened: onejob attempts resolve %s --outcome … --evidence …", clean(b.AttemptID))
	}
	return text
}
