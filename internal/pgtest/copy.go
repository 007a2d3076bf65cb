package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The databases of this process's cluster that tests get copies of, by the SQL that
// made them.
var templates struct {
	sync.Mutex
	names map[string]string
}

// Copy returns the URL of a database in which sql was run, which is dropped when the
// test ends. On the process's own cluster sql is run once and its outcome copied, which
// costs less than running it again; on somebody's server, who may not let us make
// databases, it is run in a schema as that of [URL].
func Copy(t testing.TB, sql string) string {
	t.Helper()
	if os.Getenv(EnvURL) != "" {
		u := URL(t)
		execute(t, t.Context(), u, sql)
		return u
	}
	server := usable(t)
	template := templateOf(t, server, sql)
	name := newName()
	manage(t, t.Context(), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		manage(t, ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return withDatabase(t, server, name)
}

func templateOf(t testing.TB, server, sql string) string {
	t.Helper()
	templates.Lock()
	defer templates.Unlock()
	if name := templates.names[sql]; name != "" {
		return name
	}
	name := newName()
	manage(t, t.Context(), "CREATE DATABASE "+name)
	execute(t, t.Context(), withDatabase(t, server, name), sql)
	if templates.names == nil {
		templates.names = map[string]string{}
	}
	templates.names[sql] = name
	return name
}

func newName() string { return "onejob_" + strings.ToLower(rand.Text()) }

func withDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
