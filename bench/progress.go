package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// progress says on a terminal how far a contest is. Elsewhere it is silent.
type progress struct {
	to          *os.File // nil: nobody watches
	title       string
	done, turns int
	began       time.Time
}

func newProgress(to *os.File) *progress {
	if !isatty.IsTerminal(to.Fd()) {
		return &progress{}
	}
	return &progress{to: to}
}

func (p *progress) begin(title string, turns int) {
	p.title, p.done, p.turns, p.began = title, 0, turns, time.Now()
}

const barWidth = 24

// step tells whose turn begins.
func (p *progress) step(name string) {
	if p.to != nil {
		turns := max(p.turns, p.done+1)
		filled := barWidth * p.done / turns
		left := "" // nothing is known before the first turn is over
		if p.done > 0 {
			each := time.Since(p.began) / time.Duration(p.done)
			left = fmt.Sprintf("%s left", (each * time.Duration(turns-p.done)).Round(time.Second))
		}
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K[%s%s] %d/%d %s: %s %s", strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), p.done, turns, p.title, name, left)
	}
	p.done++
}

func (p *progress) clear() {
	if p.to != nil {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
}

// say tells of something that is not a turn.
func (p *progress) say(what string) {
	if p.to != nil {
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K%s: %s", p.title, what)
	}
}
