package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// countTimeout bounds a question for which the provider answers a number.
const countTimeout = 30 * time.Second

// countTokens serves POST /anthropic/v1/messages/count_tokens. It is a question and no
// job: nothing is executed or recorded, and who repeats it asks again.
func (d *doors) countTokens(w http.ResponseWriter, r *http.Request, v httpapi.Visit) error {
	body, err := v.ReadJSON(w, r)
	if err != nil {
		return err
	}
	if _, err := onejob.Canonical(body); err != nil { // nobody records it, who would look
		return err
	}
	asked, err := read(body, APIMessages)
	if err != nil {
		return err
	}
	m, refuse := d.find(asked.Model, APIMessages)
	if refuse != nil {
		return refuse
	}
	n, err := m.count(r.Context(), body)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return &onejob.Error{Code: onejob.CodeInvalidJob, Message: fmt.Sprintf("the model %q cannot be asked for a count", asked.Model)}
	case err != nil:
		return &onejob.Error{Code: onejob.CodeProviderFailed, Message: err.Error(), Err: err}
	}
	write(w, "application/json", fmt.Appendf(nil, `{"input_tokens":%d}`, n))
	return nil
}

func (m Model) count(ctx context.Context, body []byte) (int, error) {
	if m.Counter == nil {
		return 0, errors.ErrUnsupported
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return m.Counter.CountTokens(ctx, body)
}
