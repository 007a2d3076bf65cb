//go:build sdks

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStockNodeClients(t *testing.T) {
	t.Parallel()
	dir := installStockClients(t)
	s := newShop(t)
	for _, c := range []stock{
		{name: "OpenAIChat", ask: askNode(dir, "openai-chat.mjs"), ownOption: true},
		{name: "OpenAIResponses", ask: askNode(dir, "openai-responses.mjs"), ownOption: true},
		{name: "AnthropicMessages", ask: askNode(dir, "anthropic.mjs"), ownOption: true},
		{name: "VercelAI", ask: askNode(dir, "ai.mjs"), repeatsAnyway: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s.meet(t, c)
		})
	}
}

func TestStockNodeClientsAreAnsweredByTargetsOfTheOtherAPI(t *testing.T) {
	t.Parallel()
	dir, p := installStockClients(t), newPairShop(t)
	for _, c := range []struct {
		stock
		path string
	}{
		{stock{name: "OpenAIChat", ask: askNode(dir, "openai-chat.mjs")}, messagesPath},
		{stock{name: "AnthropicMessages", ask: askNode(dir, "anthropic.mjs")}, chatPath},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p.meet(t, c.stock, c.path, true)
		})
	}
}

// A hash of the request and a window of time would make one of them, and a retry that
// is not known as one would make seven.
func TestFiveEqualCallsOfAStockClientAreFiveThoughTwoLoseTheirConnections(t *testing.T) {
	t.Parallel()
	dir := installStockClients(t)
	s := newShop(t)
	v := s.visit(t, stock{name: "OpenAIChat", ask: askNode(dir, "openai-five.mjs")}, false)
	v.script("late=1500ms", "late=1500ms", "late=1500ms", "late=1500ms", "late=1500ms")
	v.proxy.drop, v.proxy.losing = dropWhenExecuted, 2
	v.proxy.executed = func() bool { return v.executions() >= 5 }
	a := v.ask(t)
	ids := strings.Fields(a.Text)
	slices.Sort(ids)
	if a.Error != "" || len(ids) != 5 || len(slices.Compact(ids)) != 5 {
		t.Errorf("got %+v; want five answers, no two the same", a)
	}
	if n, asked := v.executions(), len(v.proxy.passed()); n != 5 || asked != 7 {
		t.Errorf("%d executions of %d requests; want 5 of 7", n, asked)
	}
}

// installStockClients installs the pinned libraries, once for all tests.
func installStockClients(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a minute and a registry; -short leaves it out")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: %v", program, err)
		}
	}
	dir, err := stockClients()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// stockClients is the folder with the libraries, which is thrown away with the programs.
// Their install scripts are not run.
var stockClients = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(program), "nodejs")
	if err := os.CopyFS(dir, os.DirFS("nodejs")); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install the clients: %w\n%s", err, out)
	}
	return dir, nil
})

func askNode(dir, script string) func(*testing.T, question) answered {
	return func(t *testing.T, q question) (a answered) {
		t.Helper()
		runNode(t, dir, script, q, &a)
		return a
	}
}

// runNode asks by a program of Node.js, in a process of its own. It sees nothing of
// the environment: libraries read credentials and addresses there.
func runNode(t *testing.T, dir, script string, question, reply any) {
	t.Helper()
	asked, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", script)
	node.Dir, node.Env = dir, []string{"PATH=" + os.Getenv("PATH")}
	node.Stdin = bytes.NewReader(asked)
	var complaint bytes.Buffer
	node.Stderr = &complaint
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, complaint.Bytes())
	}
	if err := json.Unmarshal(out, reply); err != nil {
		t.Fatalf("%s prints %q: %v", script, out, err)
	}
}
