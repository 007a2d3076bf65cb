package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/onejob-dev/onejob"

// source is one Go file of the module, whatever system it is built for.
type source struct {
	path   string // from the module's root
	room   string // its folder; "." is the root
	test   bool
	file   *ast.File
	inTree *token.FileSet
}

// imports lists what the file imports.
func (s *source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func (s *source) line(n ast.Node) int { return s.inTree.Position(n.Pos()).Line }

// sources parses the module once for all tests. Modules inside it are not part of it.
var sources = sync.OnceValues(func() ([]*source, error) {
	root := filepath.Join("..", "..")
	files := token.NewFileSet()
	var found []*source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(root, name)
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		found = append(found, &source{path: rel, room: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), file: file, inTree: files})
		return err
	})
	return found, err
})

// enter skips what is not part of the module.
func enter(root, dir string) error {
	base := filepath.Base(dir)
	if dir == root {
		return nil
	}
	if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func tree(t *testing.T) []*source {
	t.Helper()
	found, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("only %d files were found; the tests look in the wrong place", len(found))
	}
	return found
}
