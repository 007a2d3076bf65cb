package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
)

// runProxy serves the least that can stand between a caller and a provider: it passes
// on what it gets. It keeps connections to the provider, of which the standard library
// keeps two. With a second argument, a file, it keeps both sides of a call, too. It
// prints its address.
func runProxy(ctx context.Context, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("want the provider's URL, and maybe a file")
	}
	provider, err := url.Parse(args[0])
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(provider) },
		Transport: &http.Transport{MaxIdleConnsPerHost: maxOpen, MaxIdleConns: maxOpen},
	}
	if len(args) == 1 {
		return announce(ctx, proxy)
	}
	f, err := os.Create(args[1])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return announce(ctx, keeping(proxy, &flushedFile{file: f}))
}

// keeping is the least that a proxy can do to be durable: what is asked is on the disk
// before it is sent, and what is answered before it is given.
func keeping(proxy *httputil.ReverseProxy, kept *flushedFile) http.Handler {
	proxy.ModifyResponse = func(r *http.Response) (err error) {
		r.Body, err = kept.keep(r.Body)
		return err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := kept.keep(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = body
		proxy.ServeHTTP(w, r)
	})
}

// flushedFile is a file whose writers share flushes.
type flushedFile struct {
	writing sync.Mutex
	file    *os.File
	written int // times

	flushing sync.Mutex
	flushed  int // of those written
}

// keep reads a body to its end, and gives it back once it is on the disk.
func (f *flushedFile) keep(body io.ReadCloser) (io.ReadCloser, error) {
	text, err := io.ReadAll(body)
	if err == nil {
		err = errors.Join(body.Close(), f.append(append(text, '\n')))
	}
	return io.NopCloser(bytes.NewReader(text)), err
}

func (f *flushedFile) append(line []byte) error {
	f.writing.Lock()
	_, err := f.file.Write(line)
	f.written++
	own := f.written
	f.writing.Unlock()
	if err != nil {
		return err
	}
	f.flushing.Lock()
	defer f.flushing.Unlock()
	if f.flushed >= own { // by somebody who came later
		return nil
	}
	f.writing.Lock()
	all := f.written
	f.writing.Unlock()
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.flushed = all
	return nil
}

func startProxy(ctx context.Context, _ *services, provider string) (*door, error) {
	return startProxyWith(ctx, provider)
}

// startKeepingProxy starts one that keeps what passes.
func startKeepingProxy(ctx context.Context, s *services, provider string) (*door, error) {
	dir, err := os.MkdirTemp(s.dir, "proxy-")
	if err != nil {
		return nil, err
	}
	return startProxyWith(ctx, provider, filepath.Join(dir, "calls"))
}

func startProxyWith(ctx context.Context, args ...string) (*door, error) {
	cmd, err := child(ctx, roleProxy, args...)
	if err != nil {
		return nil, err
	}
	at, err := announced(cmd)
	return &door{cmd: cmd, calls: calls{URL: at + "/v1/chat/completions", Model: model}}, err
}
