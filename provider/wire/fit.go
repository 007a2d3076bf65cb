package wire

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Fit is the input of req as a target takes its parameters: mapped by moves, as
// [WithMap] does it, unless it was rendered for the target. What cannot be fitted is
// the error of a call of which nothing was sent; another target may take it.
func Fit(req onejob.Request, moves map[string]string) (input []byte, dropped []string, err error) {
	if req.Rendered {
		return req.Input, nil, nil
	}
	input, dropped, err = WithMap(req.Input, moves)
	if err != nil {
		return nil, nil, Unfit(err.Error())
	}
	if len(dropped) > 0 && req.Dropped != nil {
		req.Dropped(strings.Join(dropped, ","))
	}
	return input, dropped, nil
}

// upstreamMember is the member by which aggregators are told whom to ask.
const upstreamMember = "provider"

// Address puts into the body of a request which model is asked and, if any are named,
// which upstreams an aggregator may ask: these, and no others where they fail. Every other
// byte is left as it is. It reports whether the answer is asked for as a stream.
func Address(input []byte, model json.RawMessage, upstreams []string) (body []byte, streams bool, err error) {
	object, err := ReadObject(input)
	if err != nil {
		return nil, false, err
	}
	if streams, err = object.WantsStream(); err != nil {
		return nil, false, err
	}
	body, err = object.With("model", model)
	if err != nil || len(upstreams) == 0 {
		return body, streams, err
	}
	value, err := json.Marshal(struct {
		Only           []string `json:"only"`
		AllowFallbacks bool     `json:"allow_fallbacks"`
	}{Only: upstreams})
	if err != nil {
		return nil, false, err
	}
	body, err = WithMember(body, upstreamMember, value)
	return body, streams, err
}

// Unfit is the error for an input that one target does not take, and another may.
// Nothing left. Message must be free of secrets.
func Unfit(message string) error {
	return unsent("input_refused", message, elsewhere)
}

// WithDropped notes in what a provider said which parameters of the caller's it was
// not sent. It is to be given to the answer or error of one call only.
func WithDropped(a onejob.Answer, err error, dropped []string) (onejob.Answer, error) {
	if len(dropped) == 0 {
		return a, err
	}
	evidence := &a.Evidence
	var told *onejob.CallError
	if errors.As(err, &told) {
		evidence = &told.Evidence
	}
	evidence.DroppedParams = strings.Join(dropped, ",")
	return a, err
}
