package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
	_ "modernc.org/sqlite" // the driver
)

// goqiteLife is a message sent, received and deleted, a transaction each: what the
// library has, on the pool of one connection that its documentation tells to use.
type goqiteLife struct {
	db *sql.DB
	q  *goqite.Queue
}

func openGoqite(ctx context.Context, s *services, _ int) (entrant, error) { return newGoqite(ctx, s) }

func newGoqite(ctx context.Context, s *services) (*goqiteLife, error) {
	path, err := s.newFile()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	schema, err := moduleFile(ctx, "maragu.dev/goqite", "schema_sqlite.sql")
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &goqiteLife{db, goqite.New(goqite.NewOpts{DB: db, Name: "jobs"})}, nil
}

func (g *goqiteLife) live(ctx context.Context, _ string) error {
	if err := g.q.Send(ctx, goqite.Message{Body: input}); err != nil {
		return err
	}
	m, err := g.q.Receive(ctx) // anybody's: each caller has sent one
	if err != nil || m == nil {
		return errors.Join(err, errors.New("nothing was received"))
	}
	return g.q.Delete(ctx, m.ID)
}

func (g *goqiteLife) close() error { return g.db.Close() }

// goqiteRunner is goqite with its own runner, which polls.
type goqiteRunner struct {
	*goqiteLife
	stop context.CancelFunc
	done chan struct{}
}

// startGoqite has the runner poll at an interval; zero is its default.
func startGoqite(interval time.Duration) openStart {
	return func(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
		life, err := newGoqite(ctx, s)
		if err != nil {
			return nil, err
		}
		g := &goqiteRunner{goqiteLife: life, done: make(chan struct{})}
		runner := jobs.NewRunner(jobs.NewRunnerOpts{Queue: life.q, Limit: 100, PollInterval: interval})
		runner.Register(kind, func(_ context.Context, input []byte) error {
			begun(input)
			return nil
		})
		ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			defer close(g.done)
			runner.Start(ctx)
		}()
		return g, nil
	}
}

func (g *goqiteRunner) submit(ctx context.Context, key string) error {
	_, err := jobs.Create(ctx, g.q, kind, goqite.Message{Body: inputWith(key)})
	return err
}

func (g *goqiteRunner) close() error {
	g.stop()
	<-g.done
	return g.goqiteLife.close()
}
