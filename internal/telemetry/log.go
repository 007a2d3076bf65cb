package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"github.com/onejob-dev/onejob"
)

// LogFormat is how a log is written.
type LogFormat string

// The formats of a log.
const (
	// LogAuto is text on a terminal and JSON elsewhere. The zero value counts as it.
	LogAuto LogFormat = "auto"
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

// LogOptions tunes a log. The zero value is ready to use.
type LogOptions struct {
	Format LogFormat
	Level  slog.Level // zero: info
	// Plain leaves colours out, as NO_COLOR asks for. They are left out anyway
	// where there is no terminal.
	Plain bool
}

// NewLogger returns a log that is written to w. It returns
// [onejob.CodeInvalidArgument] for a format that does not exist.
func NewLogger(w io.Writer, opts LogOptions) (*slog.Logger, error) {
	terminal := isTerminal(w)
	text := false
	switch opts.Format {
	case LogAuto, "":
		text = terminal
	case LogText:
		text = true
	case LogJSON:
	default:
		return nil, &onejob.Error{
			Code:    onejob.CodeInvalidArgument,
			Message: fmt.Sprintf("there is no log format %q; there are auto, json and text", opts.Format),
		}
	}
	if text {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: opts.Level, NoColor: opts.Plain || !terminal})), nil
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: opts.Level})), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd())
}
