package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

func auditCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "audit", Usage: "read and verify what people did with power, directly in the store",
		Commands: []*cli.Command{auditListCommand(env), auditVerifyCommand(env), auditAnchorCommand(env)},
	}
}

func auditFlags(more ...cli.Flag) []cli.Flag {
	owner := &cli.StringFlag{Name: "owner", Usage: "of this owner alone"}
	return append([]cli.Flag{owner}, append(more, storeFlag(), configFlag())...)
}

// actor names who is at the command line, for the audit. It is what the shell
// says: whoever can open the store can say anything.
func actor(env Env) string {
	const where = "command line"
	if name := cmp.Or(env.Getenv("SUDO_USER"), env.Getenv("LOGNAME"), env.Getenv("USER"), env.Getenv("USERNAME")); name != "" {
		return where + " (" + clean(name) + ")"
	}
	return where
}

// entryView is an entry as it is printed.
type entryView struct {
	Owner   string             `json:"owner"`
	Seq     int64              `json:"seq"`
	At      time.Time          `json:"at"`
	Actor   string             `json:"actor"`
	Action  onejob.AuditAction `json:"action"`
	Subject string             `json:"subject"`
	Detail  string             `json:"detail"`
	Prev    string             `json:"prev"`
	Hash    string             `json:"hash"`
}

func auditListCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list entries, newest first",
		Flags: auditFlags(&cli.IntFlag{Name: "limit", Usage: "at most so many", Value: 50}, outputFlag()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if c.Int("limit") < 1 {
				return usage(c, "--limit is at least 1")
			}
			return withStore(ctx, env, c, func(store realStore) error {
				entries, err := newestEntries(ctx, store, c.String("owner"), c.Int("limit"))
				if err != nil {
					return err
				}
				return printEntries(env, c, entries)
			})
		},
	}
}

func newestEntries(ctx context.Context, store onejob.AuditStore, owner string, limit int) (entries []onejob.AuditEntry, err error) {
	p := onejob.AuditListParams{Owner: owner}
	for len(entries) < limit {
		p.Limit = min(limit-len(entries), 200)
		page, err := store.AuditList(ctx, p)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Entries...)
		if !page.More || len(page.Entries) == 0 {
			break
		}
		p.After = entries[len(entries)-1].Cursor()
	}
	return entries, nil
}

func printEntries(env Env, c *cli.Command, entries []onejob.AuditEntry) error {
	list := rows{headings: []string{"AT", "OWNER", "SEQ", "ACTOR", "ACTION", "SUBJECT", "DETAIL"}}
	views := make([]entryView, len(entries))
	for i := range entries {
		e := &entries[i]
		views[i] = entryView{
			Owner: e.Owner, Seq: e.Seq, At: e.At, Actor: e.Actor, Action: e.Action, Subject: e.Subject, Detail: e.Detail,
			Prev: hex.EncodeToString(e.Prev), Hash: hex.EncodeToString(e.Hash),
		}
		item, err := json.Marshal(views[i])
		if err != nil {
			return err
		}
		list.items = append(list.items, item)
		list.cells = append(list.cells, []string{
			when(e.At), clean(e.Owner), strconv.FormatInt(e.Seq, 10), clean(e.Actor), clean(string(e.Action)), clean(e.Subject), clean(e.Detail),
		})
	}
	return list.printItems(env, c, map[string]any{"items": views})
}

// printItems prints a list that was not made by a server.
func (r rows) printItems(env Env, c *cli.Command, envelope any) error {
	raw, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	r.envelope = raw
	return r.print(env, c)
}

// headView is the end of a chain as it is printed, and as an anchor is read.
type headView struct {
	Owner string    `json:"owner"`
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Hash  string    `json:"hash"`
}

func viewOfHead(h onejob.AuditHead) headView {
	return headView{Owner: h.Owner, Seq: h.Seq, At: h.At, Hash: hex.EncodeToString(h.Hash)}
}

func auditAnchorCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "anchor", Usage: "write the end of each chain to stdout, to be kept elsewhere",
		Description: `Keep what it writes where whoever can write to the store cannot: what the chains
were up to there can no longer be changed, or cut off, without being found.

  onejob audit anchor >> /mnt/worm/onejob-anchors.jsonl
  onejob audit verify --anchor /mnt/worm/onejob-anchors.jsonl`,
		Flags: auditFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return withStore(ctx, env, c, func(store realStore) error {
				heads, err := store.AuditHeads(ctx, c.String("owner"))
				if err != nil {
					return err
				}
				for _, h := range heads {
					line, err := json.Marshal(viewOfHead(h))
					if err != nil {
						return err
					}
					if err := printJSONLine(env.Stdout, line); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func auditVerifyCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "recompute every chain; 1 if one does not hold",
		Description: `Finds what was edited, taken out or moved. Entries cut off the end of a chain,
and a chain that was written anew as a whole, are found only against an anchor:
see "onejob audit anchor". The ends of the chains go to stdout.`,
		Flags: auditFlags(
			&cli.StringFlag{Name: "anchor", Usage: "`FILE` with ends that were kept elsewhere; - is stdin"}, outputFlag(),
		),
		Action: func(ctx context.Context, c *cli.Command) error { return runAuditVerify(ctx, env, c) },
	}
}

func runAuditVerify(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	owner := c.String("owner")
	anchors, err := readAnchors(env, c, owner)
	if err != nil {
		return err
	}
	return withStore(ctx, env, c, func(store realStore) error {
		ends, err := store.AuditHeads(ctx, owner)
		if err != nil {
			return err
		}
		for _, h := range ends {
			anchors = append(anchors, onejob.AuditAnchor{AuditHead: h, From: "the store's own end of the chain"})
		}
		heads, faults, err := onejob.VerifyAudit(onejob.AuditChains(ctx, store, owner), anchors)
		if err != nil {
			return err
		}
		return printVerified(env, c, heads, faults)
	})
}

func printVerified(env Env, c *cli.Command, heads []onejob.AuditHead, faults []onejob.AuditFault) error {
	list := rows{headings: []string{"OWNER", "SEQ", "AT", "HASH"}}
	views := make([]headView, len(heads))
	for i, h := range heads {
		views[i] = viewOfHead(h)
		item, err := json.Marshal(views[i])
		if err != nil {
			return err
		}
		list.items = append(list.items, item)
		list.cells = append(list.cells, []string{clean(h.Owner), strconv.FormatInt(h.Seq, 10), when(h.At), views[i].Hash})
	}
	type faultView struct {
		Owner string `json:"owner"`
		Seq   int64  `json:"seq"`
		What  string `json:"what"`
	}
	broken := make([]faultView, len(faults))
	for i, f := range faults {
		broken[i] = faultView(f)
	}
	if err := list.printItems(env, c, map[string]any{"items": views, "faults": broken}); err != nil {
		return err
	}
	for _, f := range faults {
		say(env, "%s", clean(f.Error()))
	}
	if c.String("anchor") == "" {
		say(env, "compared with no anchor: entries cut off an end are not found")
	}
	if len(faults) > 0 {
		return &exitError{code: ExitFailed, message: "the audit does not hold"}
	}
	return nil
}

// maxAnchorLine bounds a line of an anchor file.
const maxAnchorLine = 64 << 10

// readAnchors reads a file of heads, one a line. A file without any is refused: to
// be compared with nothing would look like having been compared.
func readAnchors(env Env, c *cli.Command, owner string) ([]onejob.AuditAnchor, error) {
	path := c.String("anchor")
	if path == "" {
		return nil, nil
	}
	from := env.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, usage(c, "the anchor cannot be read: %w", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxAnchorLine)
	var anchors []onejob.AuditAnchor
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		head, err := headOf(lines.Bytes())
		if err != nil {
			return nil, usage(c, "%s:%d: %w", path, n, err)
		}
		if owner == "" || owner == head.Owner {
			anchors = append(anchors, onejob.AuditAnchor{AuditHead: head, From: "the anchor"})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, usage(c, "%s:%d: %w", path, n+1, err)
	}
	if len(anchors) == 0 {
		return nil, usage(c, "%s holds no end of a chain to compare with", path)
	}
	return anchors, nil
}

func headOf(line []byte) (onejob.AuditHead, error) {
	var v headView
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return onejob.AuditHead{}, errors.New("it is not a line that \"onejob audit anchor\" wrote")
	}
	hash, err := hex.DecodeString(v.Hash)
	if err != nil || len(hash) != 32 || v.Owner == "" || v.Seq < 1 {
		return onejob.AuditHead{}, fmt.Errorf("an end of a chain has an owner, a seq from 1 and a hash of 64 hexadecimal digits")
	}
	return onejob.AuditHead{Owner: v.Owner, Seq: v.Seq, At: v.At, Hash: hash}, nil
}
