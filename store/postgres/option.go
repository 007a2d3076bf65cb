package postgres

import (
	"errors"
	"log/slog"

	"github.com/onejob-dev/onejob"
)

// Durability is what an acknowledgement must have survived.
type Durability string

const (
	// Local : the primary's own disk. A failover to an asynchronous standby loses
	// acknowledged jobs and may run them twice.
	Local Durability = "local"
	// Replicated : a synchronous standby's disk as well.
	Replicated Durability = "replicated"
)

// Options tunes a [Store]. The zero value is ready to use.
type Options struct {
	// MaxConns bounds the connections to the database.
	//
	// Zero means 16.
	MaxConns int

	// Migrate brings the schema up to date before opening it. Without it an
	// outdated schema is refused.
	Migrate bool

	// Durability is what the server must promise; one that does not is refused.
	//
	// Empty means [Local].
	Durability Durability

	// Seen is the highest number of the store's generation known from outside the
	// database. A database behind it, or behind what this process has seen since, was
	// restored from a backup: the first connection to it says so.
	//
	// Zero: none is known.
	Seen int64

	// Logger hears of rows that the database would not take. Nil discards.
	Logger *slog.Logger
}

const defaultMaxConns = 16

func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.MaxConns < 0 {
		errs = append(errs, errors.New("MaxConns is negative"))
	}
	if o.Seen < 0 {
		errs = append(errs, errors.New("Seen is negative"))
	}
	switch o.Durability {
	case "", Local, Replicated:
	default:
		errs = append(errs, errors.New("Durability is local or replicated"))
	}
	if err := errors.Join(errs...); err != nil {
		return o, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options: " + err.Error(), Err: err}
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.Durability == "" {
		o.Durability = Local
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
