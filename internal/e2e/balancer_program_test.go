package e2e_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// change is one replacement in a configuration as shipped.
type change struct{ from, to string }

// balancerProgram is a load balancer that we ship a configuration for.
type balancerProgram struct {
	name    string
	config  string   // below deploy
	hasty   []change // so that a test need not wait for timeouts
	replays []change // what turns it into the configuration that we warn of
	listen  string   // as shipped
	place   func(t *testing.T, dir, config string) (args []string)
	passes  *regexp.Regexp // in its log: one POST, and how often it was passed on
	count   func(passed string) int
}

func balancerPrograms() []balancerProgram {
	return []balancerProgram{
		{
			name: "nginx", config: "nginx.conf", listen: "127.0.0.1:8080", place: placeNginx,
			hasty:   []change{{"proxy_read_timeout 15s;", "proxy_read_timeout 300ms;"}},
			replays: []change{{"proxy_next_upstream error timeout;", "proxy_next_upstream error timeout http_503 non_idempotent;"}},
			passes:  regexp.MustCompile(`"POST [^"]*" .* at (.*)`),
			count:   func(nodes string) int { return 1 + strings.Count(nodes, ",") },
		},
		{
			name: "haproxy", config: "haproxy.cfg", listen: "127.0.0.1:8080", place: placeHAProxy,
			hasty: []change{{"timeout server 15s", "timeout server 300ms"}},
			replays: []change{
				{"retry-on conn-failure empty-response", "retry-on all-retryable-errors"},
				{"http-request disable-l7-retry if METH_POST", ""},
			},
			passes: regexp.MustCompile(`"POST [^"]*" .* retries \+?(\d+)`),
			count:  func(retries string) int { n, _ := strconv.Atoi(retries); return 1 + n },
		},
	}
}

// front is a running load balancer.
type front struct {
	program balancerProgram
	addr    string
	log     func() string
}

// find is where the program is. Debian keeps it off the path of ordinary users.
func (p balancerProgram) find() string {
	for _, name := range []string{p.name, "/usr/sbin/" + p.name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start starts the program before two addresses, as shipped but for the changes.
func (p balancerProgram) start(t *testing.T, first, second string, changes ...change) *front {
	t.Helper()
	binary := p.find()
	if binary == "" {
		t.Skipf("%s is not installed", p.name)
	}
	f := &front{program: p, addr: freeAddr(t)}
	config := readFile(t, "deploy", p.config)
	for _, c := range append([]change{{p.listen, f.addr}, {"10.0.0.11:4545", first}, {"10.0.0.12:4545", second}}, changes...) {
		if strings.Count(config, c.from) != 1 {
			t.Fatalf("%s has %d times %q; want 1", p.config, strings.Count(config, c.from), c.from)
		}
		config = strings.Replace(config, c.from, c.to, 1)
	}
	dir := t.TempDir()
	cmd, said := exec.Command(binary, p.place(t, dir, config)...), &syncBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	f.log = func() string {
		written, _ := os.ReadFile(filepath.Join(dir, "access.log")) // HAProxy has none: it says everything
		return said.tail(1<<24) + string(written)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopGently(cmd)
		if t.Failed() {
			t.Logf("the end of what %s said:\n%.4000s", p.name, said.tail(4000))
		}
	})
	if !eventually(10*time.Second, f.accepts) {
		t.Fatalf("%s does not listen:\n%s", p.name, said.tail(4000))
	}
	return f
}

func (f *front) accepts() bool {
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// stopGently ends a program that has children: they end with it if it is asked.
func stopGently(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
}

// passed counts the POSTs in the log, and how often they were passed on.
func (f *front) passed() (posts, passes int) {
	for _, m := range f.program.passes.FindAllStringSubmatch(f.log(), -1) {
		posts++
		passes += f.program.count(m[1])
	}
	return posts, passes
}

// placeNginx puts the configuration where a distribution's own would include it.
func placeNginx(t *testing.T, dir, config string) []string {
	t.Helper()
	const log = "/var/log/nginx/onejob.log"
	if !strings.Contains(config, log) {
		t.Fatalf("nginx.conf does not log to %s", log)
	}
	config = strings.Replace(config, log, "access.log", 1)
	write(t, filepath.Join(dir, "onejob.conf"), config)
	var own strings.Builder
	if os.Geteuid() == 0 {
		fmt.Fprintln(&own, "user root;")
	}
	fmt.Fprintln(&own, "worker_processes 2; daemon off; pid nginx.pid; error_log stderr;")
	fmt.Fprintln(&own, "events {}")
	fmt.Fprintln(&own, "http {")
	for _, temp := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&own, "  %s_temp_path %s;\n", temp, filepath.Join(dir, temp))
	}
	fmt.Fprintln(&own, "  include onejob.conf;")
	fmt.Fprintln(&own, "}")
	write(t, filepath.Join(dir, "nginx.conf"), own.String())
	return []string{"-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}
}

// placeHAProxy leaves the program its rights where there are none to drop.
func placeHAProxy(t *testing.T, dir, config string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		config = regexp.MustCompile(`(?m)^ +(user|group) haproxy`).ReplaceAllString(config, "")
	}
	file := filepath.Join(dir, "haproxy.cfg")
	write(t, file, config)
	return []string{"-db", "-f", file}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
