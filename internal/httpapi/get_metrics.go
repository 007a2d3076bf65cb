package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// getMetrics serves GET /metrics.
func (a *api) getMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.opts.Metrics == nil {
		return &onejob.Error{Code: onejob.CodeNotFound, Message: "this server keeps no metrics"}
	}
	a.opts.Metrics.ServeHTTP(w, r)
	return nil
}

func getMetricsDoc() operation {
	return operation{
		id: "getMetrics", summary: "Metrics, for Prometheus",
		answers:  []answer{{status: 200, says: "The metrics of this process", contentType: "text/plain"}},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}
