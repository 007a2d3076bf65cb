package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// AnyModel is the name under which [Options.Models] keeps the mind of every model
// that is not there under its own. Without it an unknown model is refused.
const AnyModel = "*"

// models are the minds that there are, and what is counted of them.
type models struct {
	mu       sync.Mutex
	minds    map[string]Mind
	answered *bounded[int] // by model, since the last reset
	repeats  *bounded[int] // by the request, of flaky minds
}

func newModels(minds map[string]Mind, max int) (*models, error) {
	m := &models{answered: newBounded[int](maxModels, 0), repeats: newBounded[int](max, 0)}
	return m, m.replace(minds)
}

// replace forgets what was counted too.
func (m *models) replace(minds map[string]Mind) error {
	var errs []error
	for name, mind := range minds {
		if err := mind.check(); err != nil {
			errs = append(errs, fmt.Errorf("model %q: %w", name, err))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(errs) == 0 {
		m.minds = maps.Clone(minds)
	}
	m.answered.clear()
	m.repeats.clear()
	return errors.Join(errs...)
}

// change sets and, where the mind is nil, removes some.
func (m *models) change(minds map[string]*Mind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := maps.Clone(m.minds)
	if next == nil {
		next = map[string]Mind{}
	}
	for name, mind := range minds {
		if mind == nil {
			delete(next, name)
		} else {
			next[name] = *mind
		}
		m.answered.put(name, 0, 0)
	}
	m.minds = next
}

func (m *models) all() map[string]Mind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.minds)
}

// any reports whether any model has a mind.
func (m *models) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.minds) > 0
}

func (m *models) find(name string) (Mind, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mind, found := m.minds[name]
	if !found {
		mind, found = m.minds[AnyModel]
	}
	return mind, found
}

// next counts an answer of the model and returns how many it gave before.
func (m *models) next(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.answered.get(name)
	m.answered.put(name, n+1, 0)
	return n
}

// repeat counts a request and returns how often it came before.
func (m *models) repeat(body []byte) int {
	sum := sha256.Sum256(body)
	digest := string(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.repeats.get(digest)
	m.repeats.put(digest, n+1, 0)
	return n
}

// Models returns the models that have a mind, and which.
func (p *Provider) Models() map[string]Mind { return p.models.all() }

// SetModel gives a model a mind, from the next request on; what [AnyModel] is among
// the names of models says there. It fails on a mind with unknown lies and changes
// nothing then.
func (p *Provider) SetModel(name string, mind Mind) error {
	if err := mind.check(); err != nil {
		return err
	}
	p.models.change(map[string]*Mind{name: &mind})
	return nil
}

// RemoveModel takes the mind from a model. While others have one, it is unknown then.
func (p *Provider) RemoveModel(name string) { p.models.change(map[string]*Mind{name: nil}) }

// modelsRequest is the body of POST /sim/models; null removes a model.
type modelsRequest struct {
	Models map[string]*Mind `json:"models"`
}

// maxModels bounds the models that another process may set.
const maxModels = 10_000

func (p *Provider) serveModels(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		writeJSON(w, map[string]any{"models": p.Models()})
		return
	}
	var req modelsRequest
	if !readJSON(w, r, &req) {
		return
	}
	if len(p.Models())+len(req.Models) > maxModels {
		http.Error(w, "sim: too many models", http.StatusTooManyRequests)
		return
	}
	p.models.change(req.Models)
	w.WriteHeader(http.StatusNoContent)
}

// modelObject is a model in a list of them, in the fields of both vendors.
type modelObject struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"` // Unix seconds
	OwnedBy     string `json:"owned_by"`
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func modelNamed(name string) modelObject {
	return modelObject{
		ID: name, Object: "model", Created: 1_767_225_600, OwnedBy: "sim",
		Type: "model", DisplayName: name, CreatedAt: "2026-01-01T00:00:00Z",
	}
}

// lookUpModel answers GET …/models and …/models/{name}. False: it asks for neither,
// or no model has a mind.
func (c *call) lookUpModel() (answer, bool) {
	minds := c.p.Models()
	_, name, found := strings.Cut(c.entry.Path, "/models")
	if !found || len(minds) == 0 || name != "" && name[0] != '/' {
		return answer{}, false
	}
	delete(minds, AnyModel)
	if name = strings.TrimPrefix(name, "/"); name != "" {
		if _, known := minds[name]; !known {
			return c.modelDialect().failure(*unknownModel(name)), true
		}
		return jsonAnswer(http.StatusOK, modelNamed(name)), true
	}
	list := []modelObject{}
	for _, name := range slices.Sorted(maps.Keys(minds)) {
		list = append(list, modelNamed(name))
	}
	body := map[string]any{"object": "list", "data": list, "has_more": false, "first_id": nil, "last_id": nil}
	if len(list) > 0 {
		body["first_id"], body["last_id"] = list[0].ID, list[len(list)-1].ID
	}
	return jsonAnswer(http.StatusOK, body), true
}

// modelDialect is that of the vendor whose header is there.
func (c *call) modelDialect() dialect {
	if c.r.Header.Get("Anthropic-Version") != "" {
		return anthropic
	}
	return openAI
}

func unknownModel(name string) *failure {
	return &failure{
		Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Message: "The model `" + name + "` does not exist or you do not have access to it.",
	}
}
