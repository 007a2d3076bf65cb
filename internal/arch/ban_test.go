package arch_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// ban is something that is written nowhere but where it is allowed.
type ban struct {
	what    string // pkg.Name of a call or a value; pkg.* is anything of the package
	except  []string
	command bool // but a command may
	tests   bool // also in tests
	why     string
}

var bans = []ban{
	{what: "fmt.Print", except: []string{"internal/cli/..."}, command: true, why: "a library is silent"},
	{what: "fmt.Println", except: []string{"internal/cli/..."}, command: true, why: "a library is silent"},
	{what: "fmt.Printf", except: []string{"internal/cli/..."}, command: true, why: "a library is silent"},
	{what: "log.*", why: "logs are structured; use log/slog"},
	{what: "os.Exit", command: true, why: "it skips what was deferred"},
	{what: "os.Getenv", except: []string{"cmd/...", "internal/pgtest"}, why: "the environment comes in through cli.Env"},
	{what: "http.DefaultClient", except: []string{"internal/demo"}, why: "it has no bound, and follows redirects"},
	{what: "http.DefaultTransport", why: "it reads the environment, and is everybody's"},
	{what: "rand.Seed", tests: true, why: "chance is seeded where it is made"},
	{what: "ioutil.*", tests: true, why: "it is long gone"},
}

func TestWhatIsWrittenNowhere(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		packages := packageNames(s)
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !packages[x.Name] {
				return true
			}
			for _, b := range bans {
				if b.bans(s, x.Name, sel.Sel.Name) {
					t.Errorf("%s:%d: %s.%s: %s", s.path, s.line(sel), x.Name, sel.Sel.Name, b.why)
				}
			}
			return true
		})
	}
}

// packageNames are the names under which a file knows packages of the standard library.
func packageNames(s *source) map[string]bool {
	names := map[string]bool{}
	for i, imported := range s.imports() {
		name := imported[strings.LastIndex(imported, "/")+1:]
		if given := s.file.Imports[i].Name; given != nil {
			name = given.Name
		}
		names[name] = isStandard(imported)
	}
	return names
}

func (b *ban) bans(s *source, pkg, name string) bool {
	if (s.test && !b.tests) || (s.file.Name.Name == "main" && b.command) || withinAny(s.room, b.except) {
		return false
	}
	return b.what == pkg+"."+name || b.what == pkg+".*"
}

func TestNothingHappensBeforeMain(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init", s.path, s.line(f))
			}
		}
	}
}

// The pure rules get the time from whoever asks.
func TestTheGroundFloorReadsNoClock(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		if s.test || s.room != "." {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && isSelector(call.Fun, "time", "Now", "Since", "Until", "Sleep", "After") {
				t.Errorf("%s:%d: the root package reads the clock; take it from Options.NowFunc", s.path, s.line(call))
			}
			return true
		})
	}
}

// A test sleeps in a bubble of testing/synctest, where it takes no time; in a loop
// that ends as soon as it can; or with a comment beside it that says why.
func TestNoTestWaitsForTimeToPass(t *testing.T) {
	t.Parallel()
	bubbles := map[string]bool{}
	for _, s := range tree(t) {
		bubbles[s.room] = bubbles[s.room] || slices.Contains(s.imports(), "testing/synctest")
	}
	for _, s := range tree(t) {
		if !s.test || bubbles[s.room] {
			continue
		}
		explained := map[int]bool{}
		for _, group := range s.file.Comments {
			explained[s.line(group)] = true
		}
		for _, sleep := range sleeps(s.file) {
			if !explained[s.line(sleep)] {
				t.Errorf("%s:%d: a test sleeps; poll with a deadline, or use testing/synctest", s.path, s.line(sleep))
			}
		}
	}
}

// sleeps lists the calls of time.Sleep outside loops.
func sleeps(root ast.Node) []ast.Node {
	var found []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return false
		case *ast.CallExpr:
			if isSelector(x.Fun, "time", "Sleep") {
				found = append(found, x)
			}
		}
		return true
	})
	return found
}

func isSelector(e ast.Expr, pkg string, names ...string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, sel.Sel.Name)
}

// unfinished is what a comment says when something is left for later.
var unfinished = []string{"TODO", "FIXME", "XXX", "HACK"}

func TestNothingIsLeftForLater(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		for _, group := range s.file.Comments {
			for _, mark := range unfinished {
				if strings.Contains(group.Text(), mark) && s.room != "internal/arch" {
					t.Errorf("%s:%d: a comment says %s", s.path, s.line(group), mark)
				}
			}
		}
	}
}
