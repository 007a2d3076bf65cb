package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// What a connection may cost. Requests that hold lift the two in the middle.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

type closingKey struct{}

// writeTimeoutOf is how long the server of r gives its callers to read an answer.
func writeTimeoutOf(r *http.Request) time.Duration {
	srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || srv.WriteTimeout <= 0 {
		return writeTimeout
	}
	return srv.WriteTimeout
}

// Server returns a server of handler that bounds what a connection may do. When
// it is shut down, requests that wait and streams end at once with what they know.
func Server(handler http.Handler, log *slog.Logger) *http.Server {
	closing, closed := context.WithCancel(context.Background())
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), closingKey{}, closing)
		},
	}
	if log != nil {
		srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	}
	srv.RegisterOnShutdown(closed)
	return srv
}

// stopWhenClosing calls f when the server of ctx begins to shut down. stop
// releases what that takes.
func stopWhenClosing(ctx context.Context, f func()) (stop func() bool) {
	closing, ok := ctx.Value(closingKey{}).(context.Context)
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(closing, f)
}
