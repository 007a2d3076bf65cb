package frontdoor

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/onejob-dev/onejob/internal/httpapi"
)

type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// listModels serves GET /openai/v1/models.
func (d *doors) listModels(w http.ResponseWriter, _ *http.Request, _ httpapi.Visit) error {
	list := struct {
		Object string      `json:"object"`
		Data   []modelInfo `json:"data"`
	}{Object: "list", Data: []modelInfo{}}
	for _, name := range d.names() {
		list.Data = append(list.Data, modelInfo{ID: name, Object: "model", Created: max(0, d.opts.Since.Unix()), OwnedBy: "onejob"})
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	write(w, "application/json", body)
	return nil
}

func write(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the caller is gone; what was done is recorded
}
