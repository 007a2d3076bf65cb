// Package schema tells a store's schema from another one of the same version.
//
// Until the first release migrations are edited in place. A store that was made by an
// earlier build then has the version that this program knows, and other tables. So each
// step remembers a digest of its own text in the table schema_steps, in the transaction
// that applies it.
package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Steps are the migrations of a store.
type Steps struct {
	files   fs.FS
	names   []string
	digests []string
	anew    string
}

// Read reads the migrations in files, whose names begin with their versions: 1, 2 and so
// on. anew says how somebody makes a new store and keeps the old one.
func Read(files fs.FS, anew string) (Steps, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return Steps{}, err
	}
	s := Steps{files: files, names: names, anew: anew}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return Steps{}, err
		}
		s.digests = append(s.digests, digest(string(text)))
	}
	return s, nil
}

var comment = regexp.MustCompile(`--[^\n]*`)

// digest is the same for two texts that differ in comments and blanks alone.
func digest(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(comment.ReplaceAllString(text, "")), " ")))
	return hex.EncodeToString(sum[:])
}

// Current is the version of the last step.
func (s Steps) Current() int64 { return int64(len(s.names)) }

// stamp is the statement that remembers a step.
func (s Steps) stamp(i int) string {
	return fmt.Sprintf("\nINSERT INTO schema_steps (version, digest) VALUES (%d, '%s');\n", i+1, s.digests[i])
}

// Text returns a step as it is applied, with the statement that remembers it.
func (s Steps) Text(i int) (name, text string, err error) {
	body, err := fs.ReadFile(s.files, s.names[i])
	return s.names[i], string(body) + s.stamp(i), err
}

// Open implements [fs.FS]: the steps as they are applied.
func (s Steps) Open(name string) (fs.File, error) {
	f, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	for i := range s.names {
		if s.names[i] == name {
			return stamped{f, io.MultiReader(f, strings.NewReader(s.stamp(i)))}, nil
		}
	}
	return f, nil
}

// stamped is a step with the statement that remembers it.
type stamped struct {
	fs.File
	text io.Reader
}

func (f stamped) Read(b []byte) (int, error) { return f.text.Read(b) }

// Found is what a store has.
type Found struct {
	Version int64    // zero: no schema
	Digests []string // of its steps, as they remember them; nil: none do
}

// Same reports whether a step, counted from zero, was applied as this program has it.
func (s Steps) Same(f Found, i int) bool {
	return i < len(f.Digests) && i < len(s.digests) && f.Digests[i] == s.digests[i]
}

// Known refuses a store that this program cannot go on from: one of a newer program, and
// one whose steps are not this program's.
func (s Steps) Known(f Found) error {
	if f.Version > s.Current() {
		return refuse("the schema is at version %d, made by a newer program; this one knows %d", f.Version, s.Current())
	}
	for i := range int(f.Version) {
		if !s.Same(f, i) {
			return refuse("the schema was made by another build, and step %d of it is not what this program knows by that number. Nothing was changed. Go on with that build, or make a new store and keep this one: %s", i+1, s.anew)
		}
	}
	return nil
}

// Check refuses a store that is not up to date as well.
func (s Steps) Check(f Found) error {
	if err := s.Known(f); err != nil {
		return err
	}
	if f.Version < s.Current() {
		return refuse("the schema is at version %d and this program needs %d: run `onejob migrate up`", f.Version, s.Current())
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &onejob.Error{Code: onejob.CodeStoreUnavailable, Message: fmt.Sprintf(format, args...)}
}
