package arch_test

import (
	"go/ast"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// connectors open a database.
var connectors = map[string][]string{
	"pgxpool": {"New", "NewWithConfig"},
	"pgx":     {"Connect", "ConnectConfig", "ConnectWithOptions"},
	"pgconn":  {"Connect", "ConnectConfig"},
	"stdlib":  {"OpenDB", "OpenDBFromPool"},
	"sql":     {"Open", "OpenDB"},
}

// A key that was read from a replica that lagged missed the first payment's answer,
// and a second payment was made (Airbnb's account of avoiding
// double payments). So whatever decides goes through the one handle of the store,
// and there is no other to be taken by mistake.
func TestAStoreHasOneHandleAndNoneOfAReplica(t *testing.T) {
	t.Parallel()
	opened := map[string]int{}
	for _, s := range tree(t) {
		if s.test || withinAny(s.room, []string{"internal/pgtest", "internal/bench/...", "examples/..."}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for pkg, names := range connectors {
				if isSelector(call.Fun, pkg, names...) {
					opened[s.path]++
				}
			}
			return true
		})
	}
	want := map[string]int{
		"store/postgres/postgres.go":      1,
		"store/postgres/migrate.go":       1, // one connection, for the schema alone
		"store/sqlite/connection.go":      1,
		"internal/cli/doctor_postgres.go": 1, // looks at the server's state, never at a job
	}
	if diff := cmp.Diff(want, opened); diff != "" {
		t.Errorf("databases are opened in (-want +got):\n%s", diff)
	}
	if pools := poolFields(t); len(pools) != 1 {
		t.Errorf("the PostgreSQL store keeps pools in %v; want one", pools)
	}
}

// poolFields lists the structs of the PostgreSQL store that hold a pool for good.
func poolFields(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, s := range tree(t) {
		if s.test || s.room != "store/postgres" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			typ, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := typ.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range fields.Fields.List {
				pointer, ok := f.Type.(*ast.StarExpr)
				if ok && isSelector(pointer.X, "pgxpool", "Pool") {
					for _, name := range f.Names {
						found[typ.Name.Name+"."+name.Name] = true
					}
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}
