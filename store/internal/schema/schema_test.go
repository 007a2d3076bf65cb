package schema_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/internal/schema"
)

func read(t *testing.T, texts ...string) schema.Steps {
	t.Helper()
	files := fstest.MapFS{}
	for i, text := range texts {
		files["0000"+string(rune('1'+i))+"_x.sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := schema.Read(files, "make a new one")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// applied is what the steps remember of themselves, to a version.
func applied(t *testing.T, s schema.Steps, version int) schema.Found {
	t.Helper()
	found := schema.Found{Version: int64(version)}
	for i := range version {
		_, text, err := s.Text(i)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(text, "'")
		found.Digests = append(found.Digests, parts[len(parts)-2])
	}
	return found
}

func TestASchemaIsTakenIfItsStepsAreThisPrograms(t *testing.T) {
	t.Parallel()
	one, two := "-- +goose Up\nCREATE TABLE a (x int); -- a table\n", "CREATE TABLE b (x int);"
	s := read(t, one, two)
	whole := applied(t, s, 2)
	for name, tt := range map[string]struct {
		found        schema.Found
		known, check string // what the refusals say; empty: none
	}{
		"UpToDate":         {whole, "", ""},
		"None":             {schema.Found{}, "", "migrate up"},
		"OneStepOfTwo":     {applied(t, s, 1), "", "migrate up"},
		"OfANewerProgram":  {schema.Found{Version: 3, Digests: append(whole.Digests[:2:2], "x")}, "newer program", "newer program"},
		"WithoutADigest":   {schema.Found{Version: 2}, "step 1", "make a new one"},
		"WithOneDigest":    {schema.Found{Version: 2, Digests: whole.Digests[:1]}, "step 2", "make a new one"},
		"OfAnotherFirst":   {applied(t, read(t, "CREATE TABLE a (y int);", two), 2), "step 1", "make a new one"},
		"OfAnotherSecond":  {applied(t, read(t, one, two+two), 2), "step 2", "make a new one"},
		"HalfOfAnother":    {applied(t, read(t, "CREATE TABLE a (y int);", two), 1), "step 1", "make a new one"},
		"WithAnotherWords": {applied(t, read(t, "-- here\n-- +goose Up\nCREATE  TABLE a\n  (x int);\n", two), 2), "", ""},
	} {
		for what, err := range map[string]error{tt.known: s.Known(tt.found), tt.check: s.Check(tt.found)} {
			if what == "" && err != nil || what != "" && (onejob.CodeOf(err) != onejob.CodeStoreUnavailable || !strings.Contains(err.Error(), what)) {
				t.Errorf("%s: %v; want %q", name, err, what)
			}
		}
	}
}

func TestAStepIsAppliedWithWhatRemembersIt(t *testing.T) {
	t.Parallel()
	s := read(t, "CREATE TABLE a (x int);")
	got, err := fs.ReadFile(s, "00001_x.sql")
	_, want, _ := s.Text(0)
	if err != nil || string(got) != want || !strings.Contains(want, "INSERT INTO schema_steps (version, digest) VALUES (1, '") {
		t.Errorf("the step is %q, %v; want %q", got, err, want)
	}
	if names, err := fs.Glob(s, "*.sql"); err != nil || len(names) != 1 {
		t.Errorf("the steps are %v, %v; want one", names, err)
	}
}
