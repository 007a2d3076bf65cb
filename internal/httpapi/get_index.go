package httpapi

import "net/http"

// Index says what this is and where to go on.
type Index struct {
	Name    string `json:"name"`
	Says    string `json:"says"`
	OpenAPI string `json:"openapi"`
	Docs    string `json:"docs"`
}

// getIndex serves GET /.
func (a *api) getIndex(w http.ResponseWriter, _ *http.Request) error {
	body, err := encode(Index{Name: "onejob", Says: "One job per intent.", OpenAPI: "/openapi.json", Docs: "/docs"})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func getIndexDoc() operation {
	return operation{
		id: "getIndex", summary: "What this is",
		answers: []answer{{status: 200, says: "Where to go on", body: Index{}}},
	}
}
