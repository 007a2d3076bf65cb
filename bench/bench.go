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
	var able []contestant
	for _, one := range chosen(c, b.settings) {
		if missing := b.services.missing(one); missing != "" {
			h.LeftOut = append(h.LeftOut, leftOut{Name: one.label(), Missing: missing})
			continue
		}
		able = append(able, one)
	}
	b.progress.begin(c.title, rounds*len(able))
	var err error
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

func (s settings) wants(contest string) bool { return slices.Contains(s.contests, contest) }
