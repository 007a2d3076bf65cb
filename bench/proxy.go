package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// runProxy serves the least that can stand between a caller and a provider: it passes
// on what it gets. It keeps connections to the provider, of which the standard library
// keeps two. It prints its address.
func runProxy(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("want the provider's URL")
	}
	provider, err := url.Parse(args[0])
	if err != nil {
		return err
	}
	return announce(ctx, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(provider) },
		Transport: &http.Transport{MaxIdleConnsPerHost: maxOpen, MaxIdleConns: maxOpen},
	})
}

func startProxy(ctx context.Context, _ *services, provider string) (*door, error) {
	cmd, err := child(ctx, roleProxy, provider)
	if err != nil {
		return nil, err
	}
	at, err := announced(cmd)
	return &door{cmd: cmd, calls: calls{URL: at + "/v1/chat/completions", Model: model}}, err
}
