package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
)

var (
	_ onejob.Prober    = (*Provider)(nil)
	_ onejob.Canceller = (*Provider)(nil)
)

// Errors of a question that resolves nothing.
var (
	errOtherWork = errors.New("the provider answered about another response")
	errNoID      = errors.New("the attempt has no response id to ask about")
)

// maxIDBytes bounds the provider's own id. A longer one is none.
const maxIDBytes = 200

// background makes the body ask for a response that goes on without a connection,
// and is kept so that it can be looked up.
func background(body []byte) ([]byte, error) {
	for _, name := range []string{"store", "background"} { // the last comes to stand first
		if string(wire.Member(body, name)) == "false" {
			return nil, fmt.Errorf("the input says %s: false, and this target works in the background, which needs it true", name)
		}
		var err error
		if body, err = wire.WithMember(body, name, json.RawMessage("true")); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// Probe looks a response up by its id. That it is not found proves nothing by
// itself: the provider forgets responses. With [APIChat] it returns
// [errors.ErrUnsupported].
func (p *Provider) Probe(ctx context.Context, req onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
	s, err := p.ask(ctx, http.MethodGet, "", req)
	switch {
	case err != nil:
		return onejob.ProbeAnswer{}, err
	case s.Status == http.StatusNotFound && s.Trouble == "" && s.IsJSON:
		return onejob.ProbeAnswer{}, nil
	case s.Status != http.StatusOK || s.Trouble != "" || !s.IsJSON:
		return onejob.ProbeAnswer{}, unsettled(s)
	case idOf(s) != req.ProviderID:
		return onejob.ProbeAnswer{}, errOtherWork
	}
	a, err := p.asked.Read(s)
	if err != nil {
		return onejob.ProbeAnswer{}, unsettled(s)
	}
	if statusOf(s) == "cancelled" {
		a.Outcome, a.Failure = onejob.OutcomeCancelled, &onejob.Failure{Code: "cancelled", Message: "the provider gave the response up"}
	}
	a.ProviderID = req.ProviderID
	return onejob.ProbeAnswer{Found: true, Answer: a}, nil
}

// Cancel asks the provider to give a background response up. Nil means that it
// heard, not that the response ended: look it up.
func (p *Provider) Cancel(ctx context.Context, req onejob.ProbeRequest) error {
	s, err := p.ask(ctx, http.MethodPost, "/cancel", req)
	if err == nil && s.Status != http.StatusOK {
		err = unsettled(s)
	}
	return err
}

// ask sends one question about a response. Its id stays one segment of the path.
func (p *Provider) ask(ctx context.Context, method, verb string, req onejob.ProbeRequest) (*wire.Seen, error) {
	switch {
	case p.opts.API != APIResponses:
		return nil, errors.ErrUnsupported
	case slices.Contains([]string{"", ".", ".."}, req.ProviderID):
		return nil, errNoID
	}
	header := p.header(onejob.Request{})
	header.Del("Content-Type")
	about := onejob.Request{JobID: req.JobID, AttemptID: req.AttemptID}
	return p.client.Send(ctx, about, wire.Message{Method: method, URL: p.url + "/" + url.PathEscape(req.ProviderID) + verb, Header: header}), nil
}

// unsettled is the error of a question whose answer settles nothing.
func unsettled(s *wire.Seen) error {
	switch {
	case s.Status != 0:
		return fmt.Errorf("the provider answered %d, which settles nothing", s.Status)
	case s.Evidence.Error != "":
		return errors.New(s.Evidence.Error)
	}
	return errors.New("no answer came")
}

func member(s *wire.Seen, name string) any {
	object, _ := s.JSON.(map[string]any)
	return object[name]
}

func statusOf(s *wire.Seen) string {
	status, _ := member(s, "status").(string)
	return status
}

func idOf(s *wire.Seen) string {
	id, _ := member(s, "id").(string)
	if len(id) > maxIDBytes {
		return ""
	}
	return id
}

// inspectResponse says what the state of a response proves. A state that is not
// known here proves nothing but that the answer is not what was promised.
func inspectResponse(s *wire.Seen) {
	switch status := statusOf(s); status {
	case "queued", "in_progress":
		s.Finding, s.ProviderID = wire.FindingAccepted, idOf(s)
	case "completed":
		if !hasOutput(s) {
			s.Finding, s.Detail = wire.FindingUnusable, "the response is completed, and its output is gone"
		}
	case "incomplete":
		inspectIncomplete(s)
	case "failed":
		wire.SaysFailed(s)
	case "cancelled":
		s.Finding, s.Detail = wire.FindingFailed, "the provider gave the response up"
	case "":
		wire.SaysFailed(s)
		if s.Finding == "" {
			s.Finding, s.Detail = wire.FindingUnusable, "the response has no status"
		}
	default:
		s.Finding, s.Detail = wire.FindingUnusable, "the response is in a state that is not known"
	}
}

// inspectIncomplete decides about a response that was cut. It was executed. One that
// reached the bound on its length has the output that was asked for, as a chat that
// ends with "length" has. One that was withheld failed. Of any other the result
// cannot be trusted.
func inspectIncomplete(s *wire.Seen) {
	details, _ := member(s, "incomplete_details").(map[string]any)
	reason, _ := details["reason"].(string)
	switch {
	case reason == "max_output_tokens" && hasMessage(s):
	case reason == "max_output_tokens":
		s.Finding, s.Detail = wire.FindingFailed, "the response reached max_output_tokens before it said anything"
	case reason == "content_filter":
		s.Finding, s.Detail = wire.FindingFailed, "the response was cut by the provider's content filter"
	default:
		s.Finding, s.Detail = wire.FindingUnusable, "the response is incomplete, for no reason that is known"
	}
}

func hasOutput(s *wire.Seen) bool {
	output, _ := member(s, "output").([]any)
	return len(output) > 0
}

// hasMessage reports whether the output says something, thoughts left out.
func hasMessage(s *wire.Seen) bool {
	output, _ := member(s, "output").([]any)
	return slices.ContainsFunc(output, func(item any) bool {
		object, _ := item.(map[string]any)
		return object["type"] == "message"
	})
}
