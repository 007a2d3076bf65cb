package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// bench is one run: what is shared by its contests.
type bench struct {
	services *services
	settings settings
	progress *progress
}

// measureAll holds the contests that were asked for, one after the other.
func measureAll(ctx context.Context, s settings) (r report, err error) {
	b := &bench{settings: s, progress: newProgress(os.Stderr)}
	if b.services, err = startServices(ctx); err != nil {
		return r, err
	}
	defer func() { _ = b.services.stop() }() // they are thrown away
	defer b.progress.clear()
	for _, c := range allContests() {
		if !s.wants(c.name) {
			continue
		}
		held, err := b.hold(ctx, c)
		if err != nil {
			return r, fmt.Errorf("contest %s: %w", c.name, err)
		}
		r.Contests = append(r.Contests, held)
	}
	r.Goals = goalsOf(r.Contests)
	return r, nil
}

// hold measures everybody who can take part in a contest.
func (b *bench) hold(ctx context.Context, c contest) (held, error) {
	rounds := b.settings.rounds
	if c.once {
		rounds = 1
	}
	h := held{Name: c.name, Title: c.title, About: c.about, Machine: thisMachine(), Rounds: rounds, Turn: b.settings.length.String()}
	able, out, err := b.able(ctx, c)
	if h.LeftOut = out; err != nil {
		return h, err
	}
	b.progress.begin(c.title, rounds*len(able))
	if c.run != nil {
		if len(able) > 0 {
			h.Rows, err = c.run(ctx, b)
		}
		return h, err
	}
	h.Rows, err = b.takeTurns(ctx, c.name, able, rounds)
	if err == nil && c.after != nil {
		c.after(h.Rows)
	}
	return h, err
}

// able are those who can take part in a contest, and those who cannot.
func (b *bench) able(ctx context.Context, c contest) (able []contestant, out []leftOut, err error) {
	b.progress.begin(c.title, 0)
	for _, one := range chosen(c, b.settings) {
		b.progress.say("what " + one.label() + " needs")
		missing, err := b.services.missing(ctx, one)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", one.label(), err)
		}
		if missing != "" {
			out = append(out, leftOut{Name: one.label(), Missing: missing})
			continue
		}
		able = append(able, one)
	}
	return able, out, nil
}

func (s settings) wants(contest string) bool { return slices.Contains(s.contests, contest) }
