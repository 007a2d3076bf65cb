package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
)

//go:embed docs.html docs.css
var docsFiles embed.FS

// docsPage is the page at /docs: made once, it loads nothing from anywhere.
type docsPage struct {
	html   []byte
	policy string
}

// docsRoute is one line of the page.
type docsRoute struct{ Method, Path, Role, Summary, Description string }

func newDocsPage(routes []route) (docsPage, error) {
	css, err := docsFiles.ReadFile("docs.css")
	if err != nil {
		return docsPage{}, err
	}
	page, err := template.ParseFS(docsFiles, "docs.html")
	if err != nil {
		return docsPage{}, err
	}
	lines := make([]docsRoute, len(routes))
	for i, rt := range routes {
		lines[i] = docsRoute{rt.method(), rt.path(), string(rt.role), rt.doc.summary, rt.doc.description}
	}
	var html bytes.Buffer
	if err := page.Execute(&html, map[string]any{"Style": template.CSS(css), "Routes": lines}); err != nil {
		return docsPage{}, err
	}
	sum := sha256.Sum256(css)
	return docsPage{
		html:   html.Bytes(),
		policy: apiPolicy + "; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}, nil
}

// getDocs serves GET /docs.
func (a *api) getDocs(w http.ResponseWriter, _ *http.Request) error {
	page, err := a.page()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", page.policy)
	writeBytes(w, http.StatusOK, "text/html; charset=utf-8", page.html)
	return nil
}

func getDocsDoc() operation {
	return operation{
		id: "getDocs", summary: "This API on one page",
		answers: []answer{{status: 200, says: "A page", contentType: "text/html"}},
	}
}
