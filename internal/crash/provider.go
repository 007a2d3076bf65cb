package main

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
)

// provider is a provider with points after the request and after the answer.
type provider struct {
	*httpcall.Provider
	*point
}

func (p provider) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	sent := req.Sent
	req.Sent = func() {
		_ = p.at("send", after) // never in doubt
		if sent != nil {
			sent()
		}
	}
	answer, err := p.Provider.Call(ctx, req)
	_ = p.at("answer", after)
	return answer, err
}

// withPoints puts points around the providers of targets.
func withPoints(targets []onejob.Target, p *point) ([]onejob.Target, error) {
	for i := range targets {
		if targets[i].Provider == nil {
			continue
		}
		inner, ok := targets[i].Provider.(*httpcall.Provider)
		if !ok {
			return nil, fmt.Errorf("target %s is not of provider http", targets[i].Name)
		}
		targets[i].Provider = provider{inner, p}
	}
	return targets, nil
}
