package onejob_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestAnErrorIsMatchedByItsCode(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("submit: %w", &onejob.Error{Code: onejob.CodeKeyConflict, Message: "another request", JobID: "job_1"})
	if !errors.Is(err, onejob.ErrKeyConflict) {
		t.Errorf("%v is not ErrKeyConflict", err)
	}
	if errors.Is(err, onejob.ErrKeyExpired) {
		t.Errorf("%v is ErrKeyExpired", err)
	}
	if bare := (&onejob.Error{Code: onejob.CodeKeyConflict}); errors.Is(bare, errors.New(bare.Error())) {
		t.Error("an error of another type matches by its text")
	}
	for sentinel, code := range map[*onejob.Error]onejob.Code{
		onejob.ErrKeyConflict: onejob.CodeKeyConflict, onejob.ErrKeyExpired: onejob.CodeKeyExpired,
		onejob.ErrNotFound: onejob.CodeNotFound, onejob.ErrAttemptUnresolved: onejob.CodeAttemptUnresolved,
		onejob.ErrClaimLost: onejob.CodeClaimLost, onejob.ErrJobTerminal: onejob.CodeJobTerminal,
		onejob.ErrStoreUnavailable: onejob.CodeStoreUnavailable,
	} {
		if !errors.Is(&onejob.Error{Code: code}, sentinel) {
			t.Errorf("an error with code %s is not its sentinel", code)
		}
	}
}

func TestAnErrorUnwrapsToItsCause(t *testing.T) {
	t.Parallel()
	err := &onejob.Error{Code: onejob.CodeStoreUnavailable, Err: context.DeadlineExceeded}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not unwrap to its cause", err)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	conflict := &onejob.Error{Code: onejob.CodeKeyConflict}
	for _, tt := range []struct {
		name string
		err  error
		want onejob.Code
	}{
		{"ItsOwn", conflict, onejob.CodeKeyConflict},
		{"OfAWrappedOne", fmt.Errorf("submit: %w", conflict), onejob.CodeKeyConflict},
		{"TheOutermost", &onejob.Error{Code: onejob.CodeInternal, Err: conflict}, onejob.CodeInternal},
		{"AnythingElseIsInternal", errors.New("boom"), onejob.CodeInternal},
		{"NoErrorIsInternalToo", nil, onejob.CodeInternal},
	} {
		if got := onejob.CodeOf(tt.err); got != tt.want {
			t.Errorf("%s: CodeOf(%v) = %s; want %s", tt.name, tt.err, got, tt.want)
		}
	}
}

func TestAnErrorIsNeverSilent(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk full")
	for _, tt := range []struct {
		err  *onejob.Error
		want string
	}{
		{&onejob.Error{Code: "a-code", Message: "what happened", Err: cause}, "a-code: what happened: disk full"},
		{&onejob.Error{Code: "a-code", Message: "what happened"}, "a-code: what happened"},
		{&onejob.Error{Code: "a-code", Err: cause}, "a-code: disk full"},
		{&onejob.Error{Code: "a-code"}, "a-code"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %q; want %q", got, tt.want)
		}
	}
	for _, code := range onejob.Codes() {
		if (&onejob.Error{Code: code}).Error() == "" {
			t.Errorf("an error with code %s says nothing", code)
		}
	}
}

func TestUnavailableKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	if err := onejob.Unavailable(nil); err != nil {
		t.Errorf("Unavailable(nil) = %v; want nil", err)
	}
	known := fmt.Errorf("create: %w", onejob.ErrKeyConflict)
	if err := onejob.Unavailable(known); err != known {
		t.Errorf("Unavailable(%v) = %v; want it unchanged", known, err)
	}
	cause := errors.New("dial 10.0.0.1: connection refused")
	err := onejob.Unavailable(cause)
	e := wantError(t, err, onejob.CodeStoreUnavailable)
	if !errors.Is(err, cause) || e.RetryAfter != time.Second {
		t.Errorf("Unavailable = %v, retry after %s; want the cause kept and a second", err, e.RetryAfter)
	}
	if strings.Contains(e.Message, "10.0.0.1") {
		t.Errorf("the message %q shows the cause", e.Message)
	}
}

func TestCodesListsEveryCodeOnce(t *testing.T) {
	t.Parallel()
	listed := onejob.Codes()
	declared := declaredCodes(t)
	for _, code := range declared {
		if !slices.Contains(listed, code) {
			t.Errorf("Codes() leaves out %s", code)
		}
	}
	if len(listed) != len(declared) {
		t.Errorf("Codes() has %d codes, error.go %d", len(listed), len(declared))
	}
	slug := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for i, code := range listed {
		if !slug.MatchString(string(code)) || slices.Contains(listed[:i], code) {
			t.Errorf("code %q is no slug, or listed twice", code)
		}
	}
}

// declaredCodes reads the constants of type Code from the source.
func declaredCodes(t *testing.T) []onejob.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []onejob.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" || len(spec.Values) != 1 {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, onejob.Code(text))
		return true
	})
	return codes
}

func TestAProvidersErrorCarriesItsProof(t *testing.T) {
	t.Parallel()
	for _, proof := range []error{onejob.ErrNotSent, onejob.ErrRefused} {
		err := fmt.Errorf("call: %w", &onejob.CallError{Proof: proof, Failure: onejob.Failure{Code: "dial", Message: "refused"}})
		if !errors.Is(err, proof) || err.Error() != "call: dial: refused" {
			t.Errorf("%v does not carry %v", err, proof)
		}
	}
	doubt := &onejob.CallError{Failure: onejob.Failure{Code: "reset", Message: "after the body"}}
	if errors.Is(doubt, onejob.ErrNotSent) || errors.Is(doubt, onejob.ErrRefused) {
		t.Errorf("%v proves something", doubt)
	}
}
