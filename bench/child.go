package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Roles of this program as a child of itself, so that what each costs is counted
// apart.
const (
	roleEcho     = "child-echo"     // a server that decodes and answers
	roleLoad     = "child-load"     // a generator of load
	roleProvider = "child-provider" // what gateways call
	roleProxy    = "child-proxy"    // a plain reverse proxy
	roleCalls    = "child-calls"    // a generator of calls to a gateway
	roleAlone    = "child-alone"    // a contestant's turn in a network of its own
)

// roleOf is what the program does as a child; nil when it is not one.
func roleOf(argument string) func(context.Context, []string) error {
	switch argument {
	case roleEcho:
		return runEcho
	case roleLoad:
		return answering(load.run)
	case roleProvider:
		return runProvider
	case roleProxy:
		return runProxy
	case roleCalls:
		return answering(calls.run)
	case roleAlone:
		return answering(alone.run)
	}
	return nil
}

// child is this program once more.
func child(ctx context.Context, role string, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{role}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// apart generates load in a process of its own.
func (l load) apart(ctx context.Context) (done loaded, err error) {
	return done, inChild(ctx, roleLoad, l, &done)
}

// inChild has a child do what question says, and reads what it answers.
func inChild(ctx context.Context, role string, question, reply any) error {
	cmd, err := child(ctx, role)
	if err != nil {
		return err
	}
	return answer(cmd, question, reply)
}

// answer runs a child and reads what it answers.
func answer(cmd *exec.Cmd, question, reply any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args[1:], " "), err)
	}
	return json.Unmarshal(out, reply)
}

// answering is the other side of inChild.
func answering[Q, A any](do func(Q, context.Context) (A, error)) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		var question Q
		if err := json.NewDecoder(os.Stdin).Decode(&question); err != nil {
			return err
		}
		reply, err := do(question, ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(reply)
	}
}

// announced starts a server that says in its first line where it is.
func announced(cmd *exec.Cmd) (url string, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop(cmd)
		return "", fmt.Errorf("%s does not say where it is: %w", cmd.Args[0], err)
	}
	return strings.TrimSpace(url), nil
}

// announce serves until ctx ends, and says where in a line.
func announce(ctx context.Context, h http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
