package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
)

// Exit codes. They are never renumbered.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2 // of the command, the configuration, or the request
	ExitNotFound     = 3
	ExitConflict     = 4
	ExitBlocked      = 5 // by an attempt whose outcome is unknown
	ExitNotCertified = 6
	ExitFracture     = 7
	ExitUnreachable  = 8 // the server, the store or a provider
	ExitInterrupted  = 130
)

// usageError is a command that was not written right.
type usageError struct {
	command string // as in "onejob jobs list"
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(c *cli.Command, format string, args ...any) error {
	return &usageError{command: c.FullName(), err: fmt.Errorf(format, args...)}
}

// exitError ends the program with a code. Its message may be empty when all has
// been said.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

// exitCode returns the code that an error ends the program with.
func exitCode(ctx context.Context, err error) int {
	var exit *exitError
	var faults *config.Error
	var problem *problem
	var e *onejob.Error
	var misused *usageError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &misused), errors.As(err, &faults):
		return ExitUsage
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, errUnreachable):
		return ExitUnreachable
	case errors.As(err, &problem):
		return exitOfCode(problem.Code)
	case errors.As(err, &e):
		if e.Code == onejob.CodeStoreUnavailable && e.Err == nil {
			return ExitFailed // it was reached, and is not fit
		}
		return exitOfCode(e.Code)
	}
	return ExitFailed
}

// exitOfCode is the one place where a code of the API becomes an exit code.
func exitOfCode(code onejob.Code) int {
	switch code {
	case onejob.CodeKeyMissing, onejob.CodeKeyInvalid, onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical,
		onejob.CodeInvalidJob, onejob.CodeInvalidResolution, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		onejob.CodeInvalidArgument:
		return ExitUsage
	case onejob.CodeNotFound, onejob.CodeResultExpired:
		return ExitNotFound
	case onejob.CodeKeyConflict, onejob.CodeKeyExpired, onejob.CodeJobTerminal, onejob.CodeAttemptTerminal,
		onejob.CodeVersionMismatch, onejob.CodeClaimLost, onejob.CodeAttemptNotUnknown,
		onejob.CodeRequestInProgress, onejob.CodeJobNotFinished:
		return ExitConflict
	case onejob.CodeAttemptUnresolved, onejob.CodeOutcomeUnknown, onejob.CodeQuarantined:
		return ExitBlocked
	case onejob.CodeFailoverNotCertified:
		return ExitNotCertified
	case onejob.CodeStoreUnavailable, onejob.CodeDraining, onejob.CodeRestoreUnconfirmed:
		return ExitUnreachable
	case onejob.CodeUnauthenticated, onejob.CodeForbidden, onejob.CodeQuotaExceeded, onejob.CodeOverloaded,
		onejob.CodeProviderFailed, onejob.CodeInternal, onejob.CodeInvalidTransition:
		return ExitFailed
	}
	return ExitFailed
}
