package arch_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageIsExplained(t *testing.T) {
	t.Parallel()
	said, named := map[string]string{}, map[string]string{}
	for _, s := range tree(t) {
		if s.test {
			continue
		}
		named[s.room] = s.file.Name.Name
		if text := s.file.Doc.Text(); text != "" {
			said[s.room] = text
		}
	}
	for room, name := range named {
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(said[room], want) {
			t.Errorf("the package in %s has no comment that begins with %q", room, want)
		}
	}
}

// public are the rooms that users import.
var public = []string{
	".", "store/memory", "store/sqlite", "store/postgres", "store/doorbell", "store/grouped", "store/storetest",
	"provider/...", "engine", "contract", "verification", "fracture", "sim", "webhook",
}

func TestEverythingPublicIsExplained(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		if s.test || !withinAny(s.room, public) || strings.Contains(s.path, "/internal/") {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range unexplained(decl) {
				t.Errorf("%s:%d: %s has no comment", s.path, s.line(decl), name)
			}
		}
	}
}

// unexplained lists the exported names of a declaration that no comment is about.
func unexplained(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && ofExported(d.Recv) && d.Doc.Text() == "" {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			names = append(names, unexplainedSpec(spec, d.Doc)...)
		}
		return names
	}
	return nil
}

func unexplainedSpec(spec ast.Spec, ofGroup *ast.CommentGroup) []string {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc.Text() == "" && ofGroup.Text() == "" {
			return []string{s.Name.Name}
		}
	case *ast.ValueSpec:
		if s.Doc.Text() != "" || s.Comment.Text() != "" || ofGroup.Text() != "" {
			return nil
		}
		var names []string
		for _, name := range s.Names {
			if name.IsExported() {
				names = append(names, name.Name)
			}
		}
		return names
	}
	return nil
}

// ofExported reports whether a method's receiver is of an exported type. A
// function has none.
func ofExported(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	typ := recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// unwanted are words that say nothing, or another word's thing.
var unwanted = []string{"Task", "Manager", "Util", "Utils", "Helper", "Helpers", "Impl", "Info", "Data", "Common"}

func TestPublicNamesUseTheWordsOfTheGlossary(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		if s.test || !withinAny(s.room, public) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.InterfaceType); ok {
				return false // its words may be somebody else's
			}
			for _, name := range declared(n) {
				for _, word := range words(name.Name) {
					if name.IsExported() && slices.Contains(unwanted, word) {
						t.Errorf("%s:%d: %s has the word %s in it", s.path, s.line(name), name.Name, word)
					}
				}
			}
			return true
		})
	}
}

// declared lists the names that a node declares.
func declared(n ast.Node) []*ast.Ident {
	switch d := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{d.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{d.Name}
	case *ast.ValueSpec:
		return d.Names
	case *ast.Field:
		return d.Names
	}
	return nil
}

// words takes a name apart at its capitals.
func words(name string) []string {
	var parts []string
	from := 0
	for i := 1; i <= len(name); i++ {
		if i == len(name) || (token.IsExported(name[i:]) && !token.IsExported(name[i-1:])) {
			parts = append(parts, name[from:i])
			from = i
		}
	}
	return parts
}
