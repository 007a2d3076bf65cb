// Package demo acts out what onejob is for: each fracture that makes one click
// into two jobs, against a real server that it starts, counted at the provider.
//
// Nothing is staged. The server is this program's own `serve` on a throw-away
// store, reached over HTTP; the provider is a fake one that counts how often it
// did the work. A verdict is PASS only if the counts are right.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options says how to act.
type Options struct {
	// Program is the onejob binary to start servers with.
	Program string
	// Store is a store URL without data in it. Empty: a throw-away SQLite file
	// for every act.
	Store string
	// JSON prints one object a line instead of a tale.
	JSON bool
	// Color marks verdicts for a terminal.
	Color bool
}

// act is one fracture: what is done, and whether it held.
type act struct {
	name  string
	short string // completes "onejob demo NAME shows …"
	play  func(ctx context.Context, s *stage) error
}

// acts are played in this order by "all".
var acts = []act{
	{"double-click", "two simultaneous clicks become one job", playDoubleClick},
	{"mismatch", "a key never answers for another request", playMismatch},
	{"timeout", "a slow provider is unknown, not failed, and blocks a second try", playTimeout},
	{"reverse-finish", "the second to finish loses, whatever it brings", playReverseFinish},
	{"reconcile", "a provider that never answers is asked, not run again", playReconcile},
	{"cancel", "a cancel is a request: what the provider did is what counts", playCancel},
	{"race", "of two lanes one wins, and the other is kept with its cost", playRace},
	{"worker", "a frozen worker's attempt is unknown, and its late answer never wins twice", playWorker},
	{"webhook", "one end is told once, under one id, however often it is sent", playWebhook},
	{"failover", "only a target that was shown to meet the contract takes over", playFailover},
	{"stream", "what was shown of an answer is shown again, and not written twice", playStream},
	{"restart", "kill -9 loses nothing and sends nothing twice", playRestart},
}

// Names lists the acts in the order they are played.
func Names() []string {
	names := make([]string, len(acts))
	for i, a := range acts {
		names[i] = a.name
	}
	return names
}

// Describe returns a line for each act, for a command's help.
func Describe() string {
	var b strings.Builder
	for _, a := range acts {
		fmt.Fprintf(&b, "  %-15s %s\n", a.name, a.short)
	}
	return b.String()
}

// ErrFailed says that an act did not pass.
var ErrFailed = errors.New("the demo found a fracture")

// Play plays the named acts ("all" means every one) and writes to out. It returns
// [ErrFailed] unless every one passed.
func Play(ctx context.Context, out io.Writer, names []string, opts Options) error {
	if len(names) == 0 || slices.Contains(names, "all") {
		names = Names()
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no demo %q; there are %s and all", name, strings.Join(Names(), ", "))
		}
	}
	passed := true
	for _, a := range acts {
		if slices.Contains(names, a.name) {
			passed = playOne(ctx, out, a, opts) && passed
		}
	}
	if !passed {
		return ErrFailed
	}
	return nil
}

// playOne reports whether an act passed.
func playOne(ctx context.Context, out io.Writer, a act, opts Options) bool {
	tale := newTale(out, a, opts)
	s, err := newStage(tale, opts)
	if err == nil {
		err = a.play(ctx, s)
		s.close()
	}
	return tale.verdict(err)
}
