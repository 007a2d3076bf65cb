package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/onejob-dev/onejob/internal/loadgen"
)

// bars show how far a load is, on a terminal. Elsewhere they show nothing.
type bars struct {
	on    bool
	shown *mpb.Progress
}

func newBars(env Env) *bars {
	b := &bars{on: colours(env, env.Stderr)}
	out := env.Stderr
	if !b.on {
		out = io.Discard
	}
	b.shown = mpb.New(mpb.WithOutput(out), mpb.WithWidth(44), mpb.WithRefreshRate(150*time.Millisecond))
	return b
}

func (b *bars) add(total int64, name string, say func() string) *mpb.Bar {
	return b.shown.New(total, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("╸").Padding("─"),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+"  ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return "  " + say() })),
	)
}

// load shows a load until stop is called.
func (b *bars) load(l *loadgen.Load, length time.Duration) (stop func()) {
	if !b.on {
		return func() {}
	}
	bar := b.add(length.Milliseconds(), "load", func() string {
		n, elapsed := l.Counts()
		return fmt.Sprintf("%s of %s   %s accepted, %s replayed, %s not",
			elapsed.Round(time.Second), length, grouped3(n.Accepted), grouped3(n.Replayed), grouped3(n.Submitted-n.Accepted-n.Replayed))
	})
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			_, elapsed := l.Counts()
			bar.SetCurrent(min(elapsed.Milliseconds(), length.Milliseconds()-1))
			select {
			case <-over:
				bar.Abort(true)
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// looking shows how many jobs were looked for until stop is called.
func (b *bars) looking(total int64) (told func(int64), stop func()) {
	if !b.on || total == 0 {
		return func(int64) {}, func() {}
	}
	bar := b.add(total, "check", func() string { return grouped3(total) + " acknowledged jobs are looked for" })
	return bar.SetCurrent, func() { bar.Abort(true) }
}

// close takes the bars away.
func (b *bars) close() { b.shown.Wait() }
