// Command bifrost serves chat completions through the core of Bifrost, as a library, so
// that it can be measured beside onejob. It prints its address.
//
// It is a module of its own, built when the benchmark runs it: its dependencies take
// longer to compile than all of the benchmark.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bytedance/sonic"
	bifrost "github.com/maximhq/bifrost/core"
	"github.com/maximhq/bifrost/core/schemas"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bifrost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var a account
	flag.StringVar(&a.primary, "provider", "", "`URL` of the provider, without /v1")
	flag.StringVar(&a.fallback, "fallback", "", "`URL` of the provider that is called next")
	flag.IntVar(&a.network.DefaultRequestTimeoutInSeconds, "timeout", 0, "seconds that a provider has; 0: as Bifrost has it")
	flag.IntVar(&a.network.MaxRetries, "retries", 0, "retries at each provider")
	flag.Parse()
	core, err := bifrost.Init(ctx, schemas.BifrostConfig{
		Account: &a, InitialPoolSize: schemas.DefaultInitialPoolSize, Logger: bifrost.NewDefaultLogger(schemas.LogLevelError),
	})
	if err != nil {
		return err
	}
	defer core.Shutdown()
	return serve(ctx, &gateway{core: core, fallbacks: a.fallbacks()})
}

// serve serves until ctx ends.
func serve(ctx context.Context, g *gateway) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", g.complete)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// gateway translates between HTTP and the library.
type gateway struct {
	core      *bifrost.Bifrost
	fallbacks []schemas.Fallback
}

// chat is what it reads of a request.
type chat struct {
	Model       string                `json:"model"`
	Messages    []schemas.ChatMessage `json:"messages"`
	MaxTokens   *int                  `json:"max_tokens"`
	Temperature *float64              `json:"temperature"`
}

func (g *gateway) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has left
	}
	var c chat
	if err := sonic.Unmarshal(body, &c); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer, failure := g.core.ChatCompletionRequest(r.Context(), &schemas.BifrostChatRequest{
		Provider: schemas.OpenAI, Model: c.Model, Input: c.Messages, Fallbacks: g.fallbacks,
		Params: &schemas.ChatParameters{MaxCompletionTokens: c.MaxTokens, Temperature: c.Temperature},
	})
	if failure != nil {
		w.WriteHeader(http.StatusBadGateway)
		_ = sonic.ConfigDefault.NewEncoder(w).Encode(failure)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = sonic.ConfigDefault.NewEncoder(w).Encode(answer)
}
